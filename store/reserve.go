package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable"
)

// A store reserves space on its disk: a file next to it, which is removed when the disk is full. The freed space is for
// recording how jobs and tasks ended.
const (
	reserveFile  = "reserve"
	reserveLeast = 1 << 20 // bytes; a disk on which less would be reserved is too small for a reserve
	reserveMost  = 16 << 20
	reserveShare = 50 // 1 / this fraction of the disk
)

func (s *Store) reserve() string { return filepath.Join(filepath.Dir(s.path), reserveFile) }

// SetAside reserves the space, unless it is reserved already. The error is ErrFull while less than twice the space is
// free.
func (s *Store) SetAside() error {
	if _, err := os.Lstat(s.reserve()); err == nil {
		return nil
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(s.path), &disk); err != nil {
		return s.explain("reserve space for", err)
	}
	size, free := ReserveOn(&disk)
	if size == 0 {
		return nil
	}
	if free < 2*size {
		return s.explain("reserve space for", ErrFull)
	}
	f, err := durable.Create(s.reserve())
	if err != nil {
		return s.explain("reserve space for", err)
	}
	if err = errors.Join(f.Allocate(size), f.Close()); err != nil {
		return s.explain("reserve space for", errors.Join(err, durable.RemoveAll(s.reserve())))
	}
	return nil
}

// ReserveOn returns how much space a store reserves on a disk, in bytes, 0 if the disk is too small for a reserve, and how much
// is free. While less than twice the reserve is free, the store cannot reserve it, and no task starts.
func ReserveOn(disk *unix.Statfs_t) (size, free int64) {
	free = int64(disk.Bavail) * disk.Bsize
	if size = min(reserveMost, int64(disk.Blocks)*disk.Bsize/reserveShare); size < reserveLeast {
		size = 0
	}
	return size, free
}

// Give frees the reserved space if err says that the disk is full. It returns true if the failed write may be tried
// again.
func (s *Store) Give(err error) bool {
	if !errors.Is(err, ErrFull) && !causedBy(err, ErrFull) {
		return false
	}
	if _, err := os.Lstat(s.reserve()); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return durable.RemoveAll(s.reserve()) == nil
}
