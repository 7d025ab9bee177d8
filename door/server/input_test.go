package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/input"
)

// program reads input.
type program struct {
	bytes.Buffer
	closed chan struct{}
}

func (p *program) Close() error { close(p.closed); return nil }

// feeding returns a driver that connects to a program, and a channel that reports how the connection ended.
func feeding() (d *fake, p *program, served chan error) {
	d, p, served = newFake(), &program{closed: make(chan struct{})}, make(chan error, 1)
	here, there := net.Pipe()
	d.input = here
	go func() { served <- input.NewSink(p).Serve(there) }()
	return d, p, served
}

func TestInputReachesProgram(t *testing.T) {
	d, p, served := feeding()
	c, _ := start(t, d, fakeProfiles{})
	connection, err := c.Input(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("line\n", 100_000)
	if err := input.NewSource(strings.NewReader(text)).Send(connection); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if p.String() != text {
		t.Errorf("%d bytes came of %d", p.Len(), len(text))
	}
}

// A client may send input before it has read that the connection was taken over, even together with the request.
func TestInputWithTheRequest(t *testing.T) {
	d, p, served := feeding()
	_, socket := start(t, d, fakeProfiles{})
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	var sent bytes.Buffer
	sent.WriteString("POST /v1/jobs/1/input HTTP/1.1\r\nHost: bellows\r\nConnection: Upgrade\r\nUpgrade: " +
		input.Protocol + "\r\n\r\n")
	text := strings.Repeat("line\n", 100)
	for _, frame := range []string{text, ""} {
		if err := input.WriteFrame(&sent, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sent.WriteTo(c); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c, 3*8); err != nil { // acknowledgements: of nothing, of each frame
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if p.String() != text {
		t.Errorf("%d bytes came of %d", p.Len(), len(text))
	}
}

// A client that disconnects sends no more input; a client whose daemon ends connects again.
func TestInputEndsWithItsClient(t *testing.T) {
	for _, daemon := range []bool{false, true} {
		d, p, served := feeding()
		s := New(d, &fakePools{}, fakeProfiles{}, api.Daemon{}, slog.New(slog.DiscardHandler))
		here, there := net.Pipe()
		relayed := make(chan struct{})
		go func() { s.relay(t.Context(), there, d.input); close(relayed) }()
		if err := readSome(here); err != nil {
			t.Fatal(err)
		}
		if err := input.WriteFrame(here, []byte("half a ")); err != nil {
			t.Fatal(err)
		}
		if err := readSome(here); err != nil {
			t.Fatal(err)
		}
		if daemon {
			s.leave()
		} else {
			here.Close()
		}
		<-relayed
		err := <-served // It ends with the connection, before or after the client notices.
		ended := false
		select {
		case <-p.closed:
			ended = true
		default:
		}
		if ended == daemon || p.String() != "half a " {
			t.Errorf("daemon ends %v: the input ended %v, %v, %q", daemon, ended, err, p)
		}
	}
}

// readSome reads an acknowledgement.
func readSome(c net.Conn) error {
	_, err := c.Read(make([]byte, 8))
	return err
}
