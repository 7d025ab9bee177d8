package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// makeZram swaps to bytes bytes of the device that comes with the module.
func makeZram(bytes int64) error {
	if err := os.WriteFile("/sys/block/zram0/disksize", fmt.Append(nil, bytes), 0); err != nil {
		return err
	}
	return makeSwap("/dev/zram0")
}

// makeSwap writes a swap header to a device and uses it. The header is the first page: from byte 1024 on a version
// (1), the number of the last page and the number of bad pages, and at the end of the page a signature.
func makeSwap(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	const page = 4096
	header := make([]byte, page)
	binary.LittleEndian.PutUint32(header[1024:], 1)
	binary.LittleEndian.PutUint32(header[1028:], uint32(size/page-1))
	copy(header[page-10:], "SWAPSPACE2")
	if _, err := f.WriteAt(header, 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	name, err := unix.BytePtrFromString(device)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(name)), 0, 0); errno != 0 {
		return fmt.Errorf("swap on %s: %w", device, errno)
	}
	return nil
}
