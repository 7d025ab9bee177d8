package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/durable/statedir"
)

// mark says, outside of the store, how far the store had come: a store that has been lost or replaced does not know
// that itself. It is a small file beside the state directory, whose name has the ending Mark, so that it outlasts the
// directory, too. Where that cannot be written it is in the directory. Its lines have a fixed length and are
// overwritten in place, which needs no space on a full disk.
type mark struct {
	mu    sync.Mutex
	paths []string // where it may be; the first that can be written is used
	why   error    // why that is not the first of all
	file  *os.File // nil until it is written
	says  said
}

// said is what a mark says; the zero value is what a mark says that is missing or cannot be read.
type said struct {
	commits int64         // how many the store has had at least. It is written after each, and not synced
	jobs    cluster.JobID // no job has a higher number. It is synced before a job has
}

// Mark is what the name of the mark of a state directory has in addition to the name of the directory.
const Mark = ".mark"

const (
	markLine  = "%-8s%20d\n"
	lineSize  = 29   // bytes
	markBlock = 1024 // numbers of jobs that are reserved at once
)

// openMark reads the mark of a state directory.
func openMark(dir string) (*mark, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	m := &mark{paths: []string{dir + Mark, filepath.Join(dir, "mark")}}
	for _, path := range m.paths {
		found := readMark(path)
		m.says.commits, m.says.jobs = max(m.says.commits, found.commits), max(m.says.jobs, found.jobs)
	}
	return m, nil
}

// readMark reads a mark. Beside the state directory there may be files of other users, which say nothing.
func readMark(path string) (s said) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return s
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return s
	}
	text := make([]byte, 2*lineSize)
	_, _ = f.ReadAt(text, 0)
	_, _ = fmt.Sscanf(string(text[:lineSize]), "commits %d\n", &s.commits)
	_, _ = fmt.Sscanf(string(text[lineSize:]), "jobs %d\n", &s.jobs)
	return s
}

// reserve returns once no loss of power can undo that numbers of jobs up to one are in use.
func (m *mark) reserve(job cluster.JobID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if job <= m.says.jobs {
		return nil
	}
	was := m.says.jobs
	m.says.jobs = job + markBlock
	if err := m.write(true); err != nil {
		m.says.jobs = was
		return fmt.Errorf("reserve numbers of jobs: %w", err)
	}
	return nil
}

// count notes how many commits the store has had. A mark that cannot be written says too little, which does no harm.
func (m *mark) count(commits int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.says.commits = max(m.says.commits, commits)
	_ = m.write(false)
}

// reset makes the mark say what is true of another store.
func (m *mark) reset(s said) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.says = s
	return m.write(true)
}

// write writes the mark in the first place where that is possible, and through to the disk if sync is set.
func (m *mark) write(sync bool) (err error) {
	for len(m.paths) > 0 {
		err = m.writeTo(m.paths[0], sync)
		if err == nil || len(m.paths) == 1 || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return err
		}
		m.why, m.paths = err, m.paths[1:]
		_ = m.close()
	}
	return err
}

func (m *mark) writeTo(path string, sync bool) (err error) {
	if m.file == nil {
		if m.file, err = statedir.Open(path, 0); err != nil {
			return err
		}
		sync = true // the name, too
		if err := durable.SyncDir(filepath.Dir(path)); err != nil {
			return errors.Join(err, m.close())
		}
	}
	durable.Before(durable.OpWrite, path)
	text := fmt.Appendf(nil, markLine+markLine, "commits", m.says.commits, "jobs", m.says.jobs)
	if !sync {
		text = text[:lineSize] // the other line is as it was
	}
	if _, err := m.file.WriteAt(text, 0); err != nil || !sync {
		return err
	}
	durable.Before(durable.OpSync, path)
	return m.file.Sync()
}

func (m *mark) close() (err error) {
	if m.file != nil {
		err = m.file.Close()
		m.file = nil
	}
	return err
}

// Unmarked returns why the mark is not beside the state directory, so that it is lost with that; nil if it is there,
// or has not been written yet.
func (s *Store) Unmarked() error {
	s.mark.mu.Lock()
	defer s.mark.mu.Unlock()
	return s.mark.why
}
