package machine

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// The service manager gets one message, and what the daemon starts does not know where to send others.
func TestServiceManagerKnows(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	if err := tellServiceManager("READY=1"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	if n, err := manager.Read(got); err != nil || string(got[:n]) != "READY=1" {
		t.Errorf("%q %v", got[:n], err)
	}
	if _, set := os.LookupEnv("NOTIFY_SOCKET"); set {
		t.Error("programs get NOTIFY_SOCKET")
	}
	if err := tellServiceManager("READY=1"); err != nil {
		t.Errorf("without a service manager: %v", err)
	}
}
