package profiler

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
)

// The size of one write and read of MeasureDisk, their total, and the time after which no further one starts.
const (
	diskBurst   = 4 << 20
	diskBursts  = 8
	diskLongest = 200 * time.Millisecond
)

// MeasureDisk returns the rate of the disk below a folder in bytes per second, past the page cache. It writes a file,
// reads it back and removes it; the fastest few MiB count, because neighbours only ever take time away. It takes about
// a fifth of a second, longer where a single piece takes longer. It is an error if the file system has no disk, or
// cannot bypass the page cache.
func MeasureDisk(dir string) (rate resource.Amount, err error) {
	path := filepath.Join(dir, fmt.Sprintf("disk-speed-%d", os.Getpid()))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_DIRECT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return 0, fmt.Errorf("measure the disk below %s: %w", dir, err)
	}
	defer unix.Close(fd)
	if err := os.Remove(path); err != nil { // its blocks are freed with the descriptor
		return 0, fmt.Errorf("measure the disk below %s: %w", dir, err)
	}
	piece, err := unix.Mmap(-1, 0, diskBurst, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE) // aligned
	if err != nil {
		return 0, fmt.Errorf("measure the disk below %s: %w", dir, err)
	}
	defer func() { _ = unix.Munmap(piece) }()
	for i := range piece { // a disk may compress zeros
		piece[i] = byte(i * i >> 7)
	}
	begun := time.Now()
	for i := 0; i < diskBursts && (i == 0 || time.Since(begun) < diskLongest); i++ {
		began := time.Now()
		for _, move := range []func(int, []byte, int64) (int, error){unix.Pwrite, unix.Pread} {
			if n, err := move(fd, piece, int64(i)*diskBurst); err != nil || n < diskBurst {
				return 0, fmt.Errorf("measure the disk below %s: %d of %d bytes: %w", dir, n, diskBurst, err)
			}
		}
		if took := time.Since(began); took > 0 {
			rate = max(rate, resource.Amount(2*diskBurst/took.Seconds()))
		}
	}
	return rate, nil
}

// DeviceNumber returns the number of a folder's device, such as "254:1".
func DeviceNumber(dir string) (string, error) {
	var s unix.Stat_t
	if err := unix.Stat(dir, &s); err != nil {
		return "", fmt.Errorf("find the disk below %s: %w", dir, err)
	}
	return fmt.Sprintf("%d:%d", unix.Major(s.Dev), unix.Minor(s.Dev)), nil
}
