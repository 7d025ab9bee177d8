package profiler

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/resource"
)

// SwapFile is a file that the kernel swaps to until it is closed. Close it.
type SwapFile struct{ path string }

// NewSwapFile makes a swap file of size bytes in dir and turns it on, with the highest priority. It needs root. It refuses
// if the machine swaps elsewhere already: nobody could tell what was measured.
func NewSwapFile(dir string, size resource.Amount) (*SwapFile, error) {
	if others, err := os.ReadFile("/proc/swaps"); err != nil {
		return nil, fmt.Errorf("make a swap file: %w", err)
	} else if lines := strings.Split(strings.TrimSpace(string(others)), "\n"); len(lines) > 1 {
		return nil, fmt.Errorf("make a swap file: the machine already swaps to %s: it must be off while this is measured", strings.Fields(lines[1])[0])
	}
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("bellows-swap-%d", os.Getpid())), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a swap file: %w", err)
	}
	s := &SwapFile{f.Name()}
	defer f.Close()
	if err := s.format(f, size); err != nil {
		os.Remove(s.path)
		return nil, fmt.Errorf("make swap file %s: %w", s.path, err)
	}
	if err := s.on(); err != nil {
		os.Remove(s.path)
		return nil, fmt.Errorf("swap to %s: %w", s.path, err)
	}
	return s, nil
}

// Path returns where the file is.
func (s *SwapFile) Path() string { return s.path }

// format gives the file its blocks, which must have no holes, and the header that mkswap(8) writes: at byte 1024 version 1
// and the number of the last page, and a signature at the end of the first page.
func (s *SwapFile) format(f *os.File, size resource.Amount) error {
	page := resource.Amount(os.Getpagesize())
	size = size / page * page
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size)); err != nil {
		return err
	}
	const header, signature = 1024, "SWAPSPACE2"
	first := make([]byte, page)
	binary.NativeEndian.PutUint32(first[header:], 1)
	binary.NativeEndian.PutUint32(first[header+4:], uint32(size/page-1))
	copy(first[len(first)-len(signature):], signature)
	if _, err := f.WriteAt(first, 0); err != nil {
		return err
	}
	return f.Sync()
}

func (s *SwapFile) on() error {
	const prefer, highest = 0x8000, 0x7fff // SWAP_FLAG_PREFER and its priority
	return s.call(unix.SYS_SWAPON, prefer|highest)
}

func (s *SwapFile) call(number, flags uintptr) error {
	path, err := unix.BytePtrFromString(s.path)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(number, uintptr(unsafe.Pointer(path)), flags, 0); errno != 0 {
		return errno
	}
	return nil
}

// Close turns swapping to the file off and removes it.
func (s *SwapFile) Close() error {
	if err := s.call(unix.SYS_SWAPOFF, 0); err != nil {
		return fmt.Errorf("stop swapping to %s (then remove it): %w", s.path, err)
	}
	if err := os.Remove(s.path); err != nil {
		return fmt.Errorf("remove the swap file: %w", err)
	}
	return nil
}
