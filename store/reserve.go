package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable"
)

// A store has space on its disk that nothing else can take: a file beside it, which goes when the disk is full. What it
// frees is for recording how things ended.
const (
	reserveFile  = "reserve"
	reserveLeast = 1 << 20 // bytes; a disk of which less would be set aside is too small for it
	reserveMost  = 16 << 20
	reserveShare = 50 // one part of so many of the disk
)

func (s *Store) reserve() string { return filepath.Join(filepath.Dir(s.path), reserveFile) }

// SetAside sets the space aside, unless it is. The error is an ErrFull as long as the disk has not twice as much free.
func (s *Store) SetAside() error {
	if _, err := os.Lstat(s.reserve()); err == nil {
		return nil
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(s.path), &disk); err != nil {
		return s.explain("set space aside for", err)
	}
	size := min(reserveMost, int64(disk.Blocks)*disk.Bsize/reserveShare)
	if size < reserveLeast {
		return nil
	}
	if int64(disk.Bavail)*disk.Bsize < 2*size {
		return s.explain("set space aside for", ErrFull)
	}
	f, err := durable.Create(s.reserve())
	if err != nil {
		return s.explain("set space aside for", err)
	}
	if err = errors.Join(f.Allocate(size), f.Close()); err != nil {
		return s.explain("set space aside for", errors.Join(err, durable.RemoveAll(s.reserve())))
	}
	return nil
}

// Give frees the space that was set aside if err says that the disk is full; true says that what failed may be tried again.
func (s *Store) Give(err error) bool {
	if !errors.Is(err, ErrFull) && !causedBy(err, ErrFull) {
		return false
	}
	if _, err := os.Lstat(s.reserve()); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return durable.RemoveAll(s.reserve()) == nil
}
