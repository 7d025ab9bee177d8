package boundeddisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/fusedisk"
)

// Check is how fast a disk was under one kind of transfers.
type Check struct {
	What     string          `json:"what"`
	Achieved resource.Amount `json:"achieved_bytes_per_s"`
}

// DropCaches writes all dirty pages and empties the page cache: the next reads come from disks. It needs root.
func (d *Disk) DropCaches() error {
	if err := fusedisk.Sync(d.path); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		return fmt.Errorf("drop the page cache: %w", err)
	}
	return nil
}

// Verify measures how fast the disk is, by files which it removes: buffered writes until they are on the disk, buffered
// reads of what is not in memory, reads past the page cache, and buffered writes and reads at the same time. Each takes
// about the given time.
func (d *Disk) Verify(each time.Duration) (checks []Check, err error) {
	const block = 1 << 20
	size := max(4*block, int64(float64(d.speed)*each.Seconds())/block*block)
	first, second := filepath.Join(d.Path(), "verify-1"), filepath.Join(d.Path(), "verify-2")
	defer func() { err = errors.Join(err, os.RemoveAll(first), os.RemoveAll(second)) }()
	write := func(path string, size int64) error {
		return through(path, os.O_CREATE|os.O_RDWR, size, (*os.File).Write)
	}
	read := func(path string, flags int, size int64) error { return through(path, flags, size, (*os.File).Read) }
	for _, c := range []struct {
		what string
		do   func() error
	}{
		{"buffered writes", func() error { return write(first, size) }},
		{"buffered reads", func() error { return read(first, os.O_RDONLY, size) }},
		{"direct reads", func() error { return read(first, os.O_RDONLY|unix.O_DIRECT, size) }},
		{"buffered writes and reads", func() error {
			var writing sync.WaitGroup
			var failed error
			writing.Go(func() { failed = write(second, size/2) })
			err := read(first, os.O_RDONLY, size/2)
			writing.Wait()
			return errors.Join(err, failed)
		}},
	} {
		if err := d.DropCaches(); err != nil {
			return nil, err
		}
		begun := time.Now()
		before, err := d.Meter()
		if err == nil {
			err = c.do()
		}
		took := time.Since(begun)
		after, failed := d.Meter()
		if err := errors.Join(err, failed); err != nil {
			return nil, fmt.Errorf("verify the speed of the disk: %w", err)
		}
		rate := float64(after.Total()-before.Total()) / took.Seconds()
		checks = append(checks, Check{c.what, resource.Amount(rate)})
	}
	return checks, nil
}

// Holds reports whether the speed that was achieved is near the stated one: at most a tenth more, and at least four
// fifths.
func (d *Disk) Holds(c Check) bool {
	return c.Achieved <= d.speed*11/10 && c.Achieved >= d.speed*4/5
}

// through transfers the given number of bytes of a file in blocks, and waits until they are on the disk.
func through(path string, flags int, size int64, transfer func(*os.File, []byte) (int, error)) error {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	const block, page = 1 << 20, 4096
	memory := make([]byte, block+page)
	aligned := memory[(page-int(uintptr(unsafe.Pointer(&memory[0]))%page))%page:][:block]
	for done := int64(0); done < size && err == nil; done += block {
		_, err = transfer(f, aligned)
	}
	return errors.Join(err, f.Sync(), f.Close())
}
