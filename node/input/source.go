package input

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// window is the largest number of unacknowledged bytes that a source keeps: the bytes on their way to the program.
const window = 4 * MaxFrame

// Source is the origin of input. It reads ahead up to its window.
type Source struct {
	mu      sync.Mutex
	changed sync.Cond
	kept    []byte // read and not acknowledged
	base    uint64 // number of bytes before kept
	end     error  // why no more bytes follow: io.EOF, or the error of reading
	stopped bool
}

// NewSource returns a source that reads from r. It reads in a goroutine that ends with r, or with the first bytes of r
// after Stop.
func NewSource(r io.Reader) *Source {
	s := &Source{}
	s.changed.L = &s.mu
	go s.fill(r)
	return s
}

// Stop makes the source read and send no more.
func (s *Source) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.changed.Broadcast()
}

func (s *Source) fill(r io.Reader) {
	buffer := make([]byte, MaxFrame)
	for {
		n, err := r.Read(buffer)
		s.mu.Lock()
		for len(s.kept)+n > window && !s.stopped {
			s.changed.Wait()
		}
		s.kept = append(s.kept, buffer[:n]...)
		if err != nil {
			s.end = err
		}
		over := s.stopped || s.end != nil
		s.changed.Broadcast()
		s.mu.Unlock()
		if over {
			return
		}
	}
}

// Err returns the error that stopped the reading of the source; nil if the source was read to its end, or not yet.
func (s *Source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == io.EOF {
		return nil
	}
	return s.end
}

// errForeign says that a sink has taken bytes that this source never sent.
var errForeign = errors.New("another source has sent input to the program")

// Send sends over a connection until the program takes no more, which is nil, or the connection breaks, which is an
// error. After an error, Send may continue over another connection, unless Foreign is true for the error. It closes the
// connection.
func (s *Source) Send(c io.ReadWriteCloser) error {
	first, err := readTaken(c)
	if err == nil {
		err = s.acknowledge(first)
	}
	if err != nil || first.over {
		return errors.Join(err, c.Close())
	}
	heard := make(chan error, 1)
	broken := false // guarded by s.mu
	go func() {
		err := s.hear(c)
		s.mu.Lock()
		broken = true
		s.changed.Broadcast()
		s.mu.Unlock()
		heard <- errors.Join(err, c.Close())
	}()
	if err := s.sendFrom(c, first.bytes, &broken); err != nil {
		_ = c.Close()
	}
	return <-heard
}

// Foreign reports whether an error of Send says that the connection works, but the program has another source.
func Foreign(err error) bool { return errors.Is(err, errForeign) }

// hear reads acknowledgements until the program takes no more input.
func (s *Source) hear(c io.Reader) error {
	for {
		t, err := readTaken(c)
		if err == nil {
			err = s.acknowledge(t)
		}
		if err != nil || t.over {
			return err
		}
	}
}

// acknowledge drops the bytes that were taken.
func (s *Source) acknowledge(t taken) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.bytes < s.base || t.bytes-s.base > uint64(len(s.kept)) {
		return fmt.Errorf("%w: it has taken %d bytes, and this source has sent %d to %d", errForeign, t.bytes, s.base,
			s.base+uint64(len(s.kept)))
	}
	s.kept = append(s.kept[:0], s.kept[t.bytes-s.base:]...)
	s.base = t.bytes
	s.changed.Broadcast()
	return nil
}

// sendFrom sends all bytes from an offset on, and then the end of the input. It returns early once the connection is
// broken or the source stopped.
func (s *Source) sendFrom(w io.Writer, at uint64, broken *bool) error {
	buffer := make([]byte, 0, MaxFrame)
	for {
		s.mu.Lock()
		for at >= s.base+uint64(len(s.kept)) && s.end == nil && !*broken && !s.stopped {
			s.changed.Wait()
		}
		if *broken || s.stopped {
			s.mu.Unlock()
			return nil
		}
		from := s.kept[min(at-s.base, uint64(len(s.kept))):]
		buffer = append(buffer[:0], from[:min(len(from), MaxFrame)]...)
		s.mu.Unlock()
		if err := WriteFrame(w, buffer); err != nil || len(buffer) == 0 {
			return err
		}
		at += uint64(len(buffer))
	}
}
