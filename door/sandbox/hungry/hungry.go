package hungry

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Command is the hidden command that makes a program of this project a hungry one. Its arguments are KIND (grow, swell
// or sort), the memory in MiB, and the number of reads of one MiB.
const Command = "demo-work"

// The results of Run other than 0.
const (
	workUsage = 2
	workWrong = 4 // a result is wrong
)

// Run runs one memory-hungry program, and returns its exit code. It checks all of its data: exit code 0 means that no
// data was lost on the way to swap and back.
func Run(args []string) int {
	if len(args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: bellows", Command, "KIND MIB READS")
		return workUsage
	}
	mib, err := strconv.Atoi(args[1])
	reads, err2 := strconv.Atoi(args[2])
	if err != nil || err2 != nil || mib < 4 || reads < 0 {
		fmt.Fprintf(os.Stderr, "%s %q %q: must be a number of MiB, at least 4, and a number of reads\n", args[0], args[1],
			args[2])
		return workUsage
	}
	right := false
	switch args[0] {
	case "grow":
		right = workAlong([]int{mib}, 0, reads)
	case "swell":
		right = workAlong([]int{mib / 4, mib, mib / 4, mib, mib / 4}, mib/2, reads)
	case "sort":
		right, err = workSort(mib)
	default:
		fmt.Fprintf(os.Stderr, "program %q: must be grow, swell or sort\n", args[0])
		return workUsage
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if !right {
		fmt.Fprintf(os.Stderr, "%s: the result is wrong\n", args[0])
		return workWrong
	}
	return 0
}

const (
	chunkBytes = 1 << 20
	chunkWords = chunkBytes / 8
)

// mapped returns memory from the kernel that unix.Munmap gives back: the program uses exactly that memory, whatever the
// Go runtime does.
func mapped(bytes int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		_ = unix.Madvise(m, unix.MADV_NOHUGEPAGE) // otherwise one byte would be charged as a whole page of 2 MiB
	}
	return m, err
}

// mix64 is the finaliser of SplitMix64: different inputs give different outputs.
func mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// set is a working set: chunks of 1 MiB, each with content of its own.
type set struct {
	chunks [][]byte
	random uint64
}

func (s *set) seed(i int) uint64 { return mix64(uint64(i + 1)) }

func (s *set) grow() error {
	m, err := mapped(chunkBytes)
	if err != nil {
		return err
	}
	seed := s.seed(len(s.chunks))
	for w := range chunkWords {
		binary.NativeEndian.PutUint64(m[8*w:], mix64(seed+uint64(w)))
	}
	s.chunks = append(s.chunks, m)
	return nil
}

func (s *set) shrink() error {
	last := len(s.chunks) - 1
	m := s.chunks[last]
	s.chunks = s.chunks[:last]
	return unix.Munmap(m)
}

// right reads a whole chunk.
func (s *set) right(i int) bool {
	seed, m := s.seed(i), s.chunks[i]
	for w := range chunkWords {
		if binary.NativeEndian.Uint64(m[8*w:]) != mix64(seed+uint64(w)) {
			return false
		}
	}
	return true
}

// workAlong grows and shrinks a working set from level to level, MiB, stays at each level for the given number of
// steps, and spreads its reads, of chunks drawn from the whole set, evenly over all steps.
func workAlong(levels []int, stay, reads int) bool {
	steps, at := 0, 0
	for _, level := range levels {
		steps += max(level-at, at-level) + stay
		at = level
	}
	var s set
	done := 0
	step := func() bool {
		done++
		for range reads*done/steps - reads*(done-1)/steps {
			s.random++
			if !s.right(int(mix64(s.random) % uint64(len(s.chunks)))) {
				return false
			}
		}
		return true
	}
	for _, level := range levels {
		for len(s.chunks) != level {
			change := s.grow
			if len(s.chunks) > level {
				change = s.shrink
			}
			if change() != nil || !step() {
				return false
			}
		}
		for range stay {
			if !step() {
				return false
			}
		}
	}
	for i := range s.chunks {
		if !s.right(i) {
			return false
		}
	}
	return true
}

// workSort draws numbers that fill half of its memory, sorts them in runs of 4 MiB as they are drawn, and merges the
// runs with the help of the other half.
func workSort(mib int) (right bool, err error) {
	const run = 4 * chunkWords
	words := mib / 8 * run
	var halves [2][]uint64
	for i := range halves {
		m, err := mapped(8 * words)
		if err != nil {
			return false, fmt.Errorf("sort: %w", err)
		}
		halves[i] = unsafe.Slice((*uint64)(unsafe.Pointer(&m[0])), words)
	}
	from, to := halves[0], halves[1]
	sum := uint64(0)
	for begin := 0; begin < words; begin += run {
		for i := range run {
			from[begin+i] = mix64(uint64(begin + i))
			sum += from[begin+i]
		}
		slices.Sort(from[begin : begin+run])
	}
	for width := run; width < words; width *= 2 {
		for begin := 0; begin < words; begin += 2 * width {
			middle, end := min(words, begin+width), min(words, begin+2*width)
			merge(to[begin:end], from[begin:middle], from[middle:end])
		}
		from, to = to, from
	}
	for i, v := range from {
		sum -= v
		if i > 0 && from[i-1] > v {
			return false, nil
		}
	}
	return sum == 0, nil
}

// merge merges a and b, both sorted, into out.
func merge(out, a, b []uint64) {
	for k := range out {
		if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
			out[k], a = a[0], a[1:]
		} else {
			out[k], b = b[0], b[1:]
		}
	}
}
