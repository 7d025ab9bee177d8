package spark

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// scratch has folders for the files of JVMs, one on each disk that the user states for Spark. They are removed when the
// JVM has ended; those of a launcher that was killed are removed by the next one. A lock on each folder says that its
// launcher lives.
type scratch struct {
	roots []string
	locks []*os.File
}

const scratchPrefix = "bellows-spark-"

// newScratch makes folders in those of SPARK_LOCAL_DIRS, or else of the system, and removes abandoned ones.
func newScratch() (*scratch, error) {
	s := &scratch{}
	for _, base := range localDirs() {
		sweep(base)
		if err := s.add(base); err != nil {
			s.end()
			return nil, fmt.Errorf("make a folder for files of Spark in %s: %w", base, err)
		}
	}
	return s, nil
}

// localDirs returns the folders in which there are to be files.
func localDirs() (dirs []string) {
	for dir := range strings.SplitSeq(os.Getenv("SPARK_LOCAL_DIRS"), ",") {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		dirs = []string{os.TempDir()}
	}
	return dirs
}

// add makes a folder, and locks it.
func (s *scratch) add(base string) error {
	for {
		dir, err := os.MkdirTemp(base, scratchPrefix)
		if err != nil {
			return err
		}
		f, err := lockDir(dir)
		if err == nil {
			s.roots, s.locks = append(s.roots, dir), append(s.locks, f)
			return nil
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) { // It was swept before it was locked.
			return errors.Join(err, os.Remove(dir))
		}
	}
}

// lockDir locks a folder, which must still exist then.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweep removes the folders of launchers that have ended, of this user.
func sweep(base string) {
	found, _ := filepath.Glob(filepath.Join(base, scratchPrefix+"*"))
	for _, dir := range found {
		info, err := os.Lstat(dir)
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
			continue
		}
		if f, err := lockDir(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
}

// folders makes the folders of a JVM.
func (s *scratch) folders(number int) (dirs []string, err error) {
	for _, root := range s.roots {
		dir := filepath.Join(root, fmt.Sprint(number))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// remove removes the folders of a JVM that has ended.
func (s *scratch) remove(number int) {
	for _, root := range s.roots {
		_ = os.RemoveAll(filepath.Join(root, fmt.Sprint(number)))
	}
}

// end removes all folders.
func (s *scratch) end() {
	for i, root := range s.roots {
		_ = os.RemoveAll(root)
		_ = s.locks[i].Close()
	}
}
