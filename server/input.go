package server

import (
	"context"
	"io"
	"net"

	"github.com/bellows-rm/bellows/input"
)

// inputProtocol is what a connection that carries input changes to: see package input.
const inputProtocol = "bellows-input"

// relay passes input from a client on to the program, and acknowledgements back, until one of them ends; it closes both. If the
// client ends without having ended the input, it will not come again, and the input ends. If this daemon ends, it will.
func (s *Server) relay(source net.Conn, sink io.ReadWriteCloser) {
	cut := func() { source.Close(); sink.Close() }
	defer cut()
	defer context.AfterFunc(s.leaving, cut)()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(source, sink)
		source.Close() // The program takes no more, or its end is near: the client asks again.
	}()
	buffer := make([]byte, input.MaxFrame)
	for {
		bytes, err := input.ReadFrame(source, buffer)
		if err != nil {
			break
		}
		if input.WriteFrame(sink, bytes) != nil || len(bytes) == 0 {
			<-back
			return
		}
	}
	if s.leaving.Err() == nil {
		_ = input.WriteFrame(sink, nil)
	}
	cut()
	<-back
}
