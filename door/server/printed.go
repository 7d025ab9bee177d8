package server

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// printed is the file with the output of a task's run, and the position of the reader. Dropped output is a hole in the
// file.
type printed struct {
	file *os.File
	at   int64
	// all says that no output may be dropped from here on: the program waits for this reader; see agent.output.
	all    bool
	buffer []byte
}

func openPrinted(path string, at int64, all bool) (*printed, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &printed{file: f, at: at, all: all, buffer: make([]byte, 64<<10)}
	return p, p.hold()
}

// hold locks the part of the file that has not been read yet.
func (p *printed) hold() error {
	if !p.all {
		return nil
	}
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: p.at}
	err := unix.FcntlFlock(p.file.Fd(), unix.F_OFD_SETLK, &lock)
	if err == nil && p.at > 0 {
		lock = unix.Flock_t{Type: unix.F_UNLCK, Whence: io.SeekStart, Len: p.at}
		err = unix.FcntlFlock(p.file.Fd(), unix.F_OFD_SETLK, &lock)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", p.file.Name(), err)
	}
	return nil
}

// copy copies the available output to w, with a line in place of dropped output. last says that no more output will
// follow.
func (p *printed) copy(w io.Writer, last bool) (some bool, err error) {
	for {
		begin, err := unix.Seek(int(p.file.Fd()), p.at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // no more data: all is read, or the end was dropped
			if !last {
				return some, nil
			}
			info, err := p.file.Stat()
			if err == nil && info.Size() > p.at {
				err = p.skip(w, info.Size())
			}
			return some, err
		}
		if err == nil && begin > p.at {
			err = p.skip(w, begin)
		}
		if err == nil {
			err = p.copySome(w)
		}
		if err != nil {
			return some, err
		}
		some = true
	}
}

// skip moves to a position and writes a line that says how many bytes were skipped.
func (p *printed) skip(w io.Writer, to int64) error {
	_, err := fmt.Fprintf(w, "\n[bellows: %d bytes were left out here]\n", to-p.at)
	p.at = to
	return err
}

// copySome copies a part of the next data, if that is still data after the read; otherwise the read may have returned a
// hole.
func (p *printed) copySome(w io.Writer) error {
	n, err := p.file.ReadAt(p.buffer, p.at)
	if err != nil && err != io.EOF {
		return err
	}
	fd := int(p.file.Fd())
	if begin, err := unix.Seek(fd, p.at, unix.SEEK_DATA); err != nil || begin != p.at {
		return nil
	}
	end, err := unix.Seek(fd, p.at, unix.SEEK_HOLE)
	if err != nil {
		return nil
	}
	n = int(min(int64(n), end-p.at))
	if _, err := w.Write(p.buffer[:n]); err != nil {
		return err
	}
	p.at += int64(n)
	return p.hold()
}
