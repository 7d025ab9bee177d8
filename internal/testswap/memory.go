package testswap

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory returns n bytes of zeros for a program that is to use exactly that amount, or ends the program. The bytes
// are not part of the heap: the race detector, which doubles the memory of what it observes, does not observe them.
func Memory[T byte | uint64](bytes int) []T {
	block, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		fmt.Fprintf(os.Stderr, "map %d bytes: %v\n", bytes, err)
		os.Exit(1)
	}
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(&block[0])), bytes/int(unsafe.Sizeof(one)))
}
