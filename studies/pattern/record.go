package pattern

import (
	"unsafe"

	"github.com/bellows-rm/bellows/core/resource"
)

// record is the data of all programs here: a key and seven words.
type record [8]uint64

const recordBytes = resource.Amount(unsafe.Sizeof(record{}))

// bytesOf views records as bytes, to write and read them in bulk. Spill files live no longer than the process, so they
// can use the machine's byte order.
func bytesOf(r []record) []byte {
	if len(r) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&r[0])), len(r)*int(recordBytes))
}

func byKey(a, b record) int {
	switch {
	case a[0] < b[0]:
		return -1
	case a[0] > b[0]:
		return 1
	}
	return 0
}

// mix spreads the bits of x (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// digest is the computation on a record, about 20 ns of work. Sums of digests do not depend on the order.
func (r *record) digest() uint64 {
	h := uint64(0)
	for _, word := range r {
		h = mix(h ^ word)
	}
	return h
}

// made returns a record with a key and words computed from the key.
func made(key uint64) (r record) {
	r[0] = key
	for i := 1; i < len(r); i++ {
		r[i] = key + uint64(i)
	}
	return r
}
