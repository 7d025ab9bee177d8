package server

import (
	"context"
	"io"
	"net"

	"github.com/bellows-rm/bellows/node/input"
)

// relay passes input from a client to the program, and acknowledgements back, until one of them ends; it closes both.
// If the client disconnects without having ended the input, it will not connect again, and relay ends the input. If
// this daemon ends, the client connects again.
func (s *Server) relay(ctx context.Context, source net.Conn, sink io.ReadWriteCloser) {
	cut := func() { source.Close(); sink.Close() }
	defer cut()
	defer context.AfterFunc(s.leaving, cut)()
	// its token is not valid any more: as if the client had disconnected
	defer context.AfterFunc(ctx, func() { source.Close() })()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(source, sink)
		source.Close() // The program reads no more, or is about to end: the client connects again.
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
