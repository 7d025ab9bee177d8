package input

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// pipe is the pipe of a program that takes any number of bytes, a few at a time, and reads no more after most of them.
type pipe struct {
	bytes.Buffer
	most   int
	closed bool
}

func (p *pipe) Write(b []byte) (int, error) {
	if p.Len()+len(b) > p.most {
		n, _ := p.Buffer.Write(b[:p.most-p.Len()])
		return n, errors.New("broken pipe")
	}
	return p.Buffer.Write(b)
}

func (p *pipe) Close() error { p.closed = true; return nil }

// fragile breaks after a given number of bytes were written to it.
type fragile struct {
	net.Conn
	left int
}

func (f *fragile) Write(b []byte) (int, error) {
	if len(b) > f.left {
		n, _ := f.Conn.Write(b[:f.left])
		f.left = 0
		return n, errors.Join(io.ErrClosedPipe, f.Conn.Close())
	}
	f.left -= len(b)
	return f.Conn.Write(b)
}

// TestInputSurvivesConnections sends random bytes over connections that break at random places, in either direction.
func TestInputSurvivesConnections(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		sent := make([]byte, random.IntN(4*window))
		for i := range sent {
			sent[i] = byte(random.Uint32())
		}
		program := &pipe{most: len(sent)}
		if random.IntN(4) == 0 && len(sent) > 0 {
			program.most = random.IntN(len(sent))
		}
		source, sink := NewSource(slowly{bytes.NewReader(sent), random.IntN(MaxFrame) + 1}), NewSink(program)
		for connections := 1; ; connections++ {
			here, there := net.Pipe()
			served := make(chan error, 1)
			patience := 1 << 30
			if connections < 20 {
				patience = random.IntN(3 * MaxFrame)
			}
			ways := []net.Conn{here, there}
			ways[seed%2] = &fragile{ways[seed%2], patience / (1 + int(seed%2)*2000)}
			go func() { served <- errors.Join(sink.Serve(ways[1]), ways[1].Close()) }()
			err := source.Send(ways[0])
			<-served
			if err == nil {
				break
			}
			if Foreign(err) || connections > 20 {
				t.Fatalf("seed %d: connection %d: %v", seed, connections, err)
			}
		}
		source.Stop()
		if !program.closed || !bytes.Equal(program.Bytes(), sent[:program.most]) {
			t.Fatalf("seed %d: %d bytes came of %d, closed %v", seed, program.Len(), program.most, program.closed)
		}
	}
}

// slowly returns at most a given number of bytes per read.
type slowly struct {
	r    io.Reader
	most int
}

func (s slowly) Read(b []byte) (int, error) { return s.r.Read(b[:min(len(b), s.most)]) }

// endless counts how much of it was read.
type endless struct {
	read chan int
	stop chan struct{}
}

func (e endless) Read(b []byte) (int, error) {
	select {
	case e.read <- len(b):
		return len(b), nil
	case <-e.stop:
		return 0, io.EOF
	}
}

// TestInputHoldsBack shows that a program that does not read holds its source back, whatever is waiting.
func TestInputHoldsBack(t *testing.T) {
	e := endless{make(chan int), make(chan struct{})}
	defer close(e.stop)
	source := NewSource(e)
	here, there := net.Pipe()
	reader, writer := io.Pipe() // Nobody reads.
	sink := NewSink(writer)
	served, sent := make(chan error, 1), make(chan error, 1)
	go func() { served <- sink.Serve(there) }()
	go func() { sent <- source.Send(here) }()
	total := 0
	for held := false; !held; {
		select {
		case n := <-e.read:
			if total += n; total > window+2*MaxFrame {
				t.Fatalf("%d bytes were read for a program that reads none", total)
			}
		case <-time.After(time.Second / 2):
			held = total > window-MaxFrame // It reads as far as its window reaches.
		}
	}
	_ = reader.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	source.Stop()
}

func TestInputOfSomebodyElse(t *testing.T) {
	here, there := net.Pipe()
	go func() { _ = taken{bytes: 10}.write(there) }()
	err := NewSource(bytes.NewReader(nil)).Send(here)
	if !Foreign(err) {
		t.Errorf("a source that sent nothing was told that 10 bytes were taken: %v", err)
	}
}

func TestFrameTooLarge(t *testing.T) {
	if _, err := ReadFrame(bytes.NewReader([]byte{0, 1, 0, 1, 'x'}), make([]byte, MaxFrame)); err == nil {
		t.Error("a frame of 65537 bytes was read")
	}
}
