package peercred

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Credentials asks the kernel for the user at the other end: for a server the user who connected, for a client the user
// who listens.
func Credentials(c net.Conn) (cred *unix.Ucred, err error) {
	err = Control(c, func(fd uintptr) (err error) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	return cred, err
}

// Control runs ask on the descriptor of a connection.
func Control(c net.Conn, ask func(fd uintptr) error) error {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return fmt.Errorf("peer of %s: not a socket", c.RemoteAddr())
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return fmt.Errorf("peer of the connection: %w", err)
	}
	var asked error
	err = raw.Control(func(fd uintptr) { asked = ask(fd) })
	if err := errors.Join(err, asked); err != nil {
		return fmt.Errorf("peer of the connection: %w", err)
	}
	return nil
}
