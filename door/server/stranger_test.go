package server

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
)

// The client sends nothing to a socket on which another user listens, regardless of the socket's name.
func TestStrangerOnTheSocket(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to listen as another user")
	}
	const stranger = 12345
	socket := filepath.Join(t.TempDir(), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: socket}); err != nil {
		t.Fatal(err)
	}
	listening := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread with the other user ends with this goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, stranger, stranger, stranger); errno != 0 {
			listening <- errno
			return
		}
		listening <- unix.Listen(fd, 5) // the kernel records the user who listens
	}()
	if err := <-listening; err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), socket)
	l, err := net.FileListener(f)
	_ = f.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan int, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(heard)
				return
			}
			n, _ := c.Read(make([]byte, 100))
			heard <- n
			_ = c.Close()
		}
	}()
	_, err = client.New(socket).Submit(context.Background(), api.Submission{Env: []string{"TOKEN=secret"}, Dir: "/"})
	if api.KindOf(err) != api.Denied ||
		!strings.HasSuffix(err.Error(), "user 12345 listens there, and is neither root nor you; nothing was sent") {
		t.Errorf("%v: %v", api.KindOf(err), err)
	}
	if n := <-heard; n != 0 {
		t.Errorf("the stranger heard %d bytes", n)
	}
}

// A daemon that accepts a submission and does not answer does not block its client for ever.
func TestSubmitToDaemonThatHangs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := Listen(socket, Door{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // no call accepts connections
	c := client.New(socket)
	if c.Patience != time.Minute {
		t.Errorf("it waits for %v", c.Patience)
	}
	c.Patience = 50 * time.Millisecond
	_, err = c.Submit(context.Background(), api.Submission{Dir: "/"})
	if want := "has not answered for 50ms; it may have accepted the job: `bellows ps` shows it then"; api.KindOf(
		err) != api.Unavailable || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v: %v", api.KindOf(err), err)
	}
}
