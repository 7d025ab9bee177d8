package store

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable"
)

// A store reserves space on its disk: a file next to it, which is made shorter when the disk is full. The freed space
// is for recording how jobs and tasks ended, a little at a time, because other processes take what is left of it.
const (
	reserveFile  = "reserve"
	reserveLeast = 1 << 20 // bytes; a disk on which less would be reserved is too small for a reserve
	reserveMost  = 16 << 20
	reserveShare = 50       // 1 / this fraction of the disk
	reserveSlice = 64 << 10 // bytes that are freed at once
)

func (s *Store) reserve() string { return filepath.Join(filepath.Dir(s.path), reserveFile) }

// SetAside reserves the space, unless all of it is reserved already. The error is ErrFull if afterwards less than as
// much would be free. On a disk that is too small for a reserve, that is the same share of it.
func (s *Store) SetAside() error {
	size, has, err := s.room()
	if err != nil || size <= has {
		return err
	}
	f, err := durable.Open(s.reserve())
	if err != nil {
		return s.explain("reserve space for", err)
	}
	if err = f.Allocate(size); err != nil {
		err = errors.Join(err, f.Truncate(has))
	}
	return s.explain("reserve space for", errors.Join(err, f.Close()))
}

// room returns how many bytes are to be reserved, and how many are. The error is ErrFull if there is no room for
// SetAside.
func (s *Store) room() (size, has int64, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(s.path), &disk); err != nil {
		return 0, 0, s.explain("reserve space for", err)
	}
	size, free := ReserveOn(&disk)
	has = s.reserved()
	if free < max(0, size-has)+min(reserveMost, int64(disk.Blocks)*disk.Bsize/reserveShare) {
		err = s.explain("reserve space for", ErrFull)
	}
	return size, has, err
}

// Full returns ErrFull if the last write failed for want of space, and there is still no room for SetAside.
func (s *Store) Full() error {
	if !s.full.Load() {
		return nil
	}
	_, _, err := s.room()
	return err
}

// reserved returns how many bytes are reserved.
func (s *Store) reserved() int64 {
	info, err := os.Lstat(s.reserve())
	if err != nil {
		return 0
	}
	return info.Size()
}

// ReserveOn returns how much space a store reserves on a disk, in bytes, 0 if the disk is too small for a reserve,
// and how much is free. While less than twice the reserve is free, the store cannot reserve it, and no task starts.
func ReserveOn(disk *unix.Statfs_t) (size, free int64) {
	free = int64(disk.Bavail) * disk.Bsize
	if size = min(reserveMost, int64(disk.Blocks)*disk.Bsize/reserveShare); size < reserveLeast {
		size = 0
	}
	return size, free
}

// IsFull reports whether an error says that the disk is full, whoever has written.
func IsFull(err error) bool { return errors.Is(err, ErrFull) || causedBy(err, ErrFull) }

// Give frees a part of the reserved space if err says that the disk is full. It returns true if the failed write may
// be tried again.
func (s *Store) Give(err error) bool {
	has := s.reserved()
	if !IsFull(err) || has == 0 {
		return false
	}
	if has <= reserveSlice {
		return durable.RemoveAll(s.reserve()) == nil
	}
	f, err := durable.Open(s.reserve())
	if err != nil {
		return false
	}
	return errors.Join(f.Truncate(has-reserveSlice), f.Close()) == nil
}
