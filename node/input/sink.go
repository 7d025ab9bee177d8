package input

import "io"

// Sink is the destination of input: the pipe of a program. It serves one connection after another.
type Sink struct {
	pipe   io.WriteCloser
	taken  taken
	buffer []byte
}

// NewSink returns a sink that writes to a pipe, and closes the pipe when the input has ended.
func NewSink(pipe io.WriteCloser) *Sink {
	return &Sink{pipe: pipe, buffer: make([]byte, MaxFrame)}
}

// Serve takes frames from a connection until the connection breaks, which is the error, or the input is over: its
// source has ended it, or the program reads no more.
func (s *Sink) Serve(c io.ReadWriter) error {
	for {
		if err := s.taken.write(c); err != nil || s.taken.over {
			return err
		}
		bytes, err := ReadFrame(c, s.buffer)
		if err != nil {
			return err
		}
		n, err := s.pipe.Write(bytes)
		s.taken.bytes += uint64(n)
		if len(bytes) == 0 || err != nil {
			s.End()
		}
	}
}

// End ends the input.
func (s *Sink) End() {
	if !s.taken.over {
		s.taken.over = true
		_ = s.pipe.Close() // Nothing of ours is left in it.
	}
}

// Over reports whether the input has ended.
func (s *Sink) Over() bool { return s.taken.over }
