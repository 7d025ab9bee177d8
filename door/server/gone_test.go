package server

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
)

// A daemon may be killed at any moment of a request: before it is accepted, before it is sent, before it is answered.
func TestDaemonIsKilledMeanwhile(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	for range 2000 {
		if _, err := client.New(socket).Wait(context.Background(), 1); api.KindOf(err) != api.Unavailable {
			t.Fatalf("%v: %v", api.KindOf(err), err)
		}
	}
}
