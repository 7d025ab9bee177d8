package server

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cluster"
)

type peerKey struct{}

// withPeer is the http.Server's ConnContext: it asks the kernel who connected.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	p, err := peerOf(c)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// peer returns who sent a request.
func peer(ctx context.Context) (cluster.Credentials, error) {
	p, ok := ctx.Value(peerKey{}).(cluster.Credentials)
	if !ok {
		return p, Errorf(Denied, "the kernel does not say who is calling")
	}
	return p, nil
}

// peerOf asks the kernel with whose rights the other end of a connection connected.
func peerOf(c net.Conn) (cluster.Credentials, error) {
	u, ok := c.(syscall.Conn)
	if !ok {
		return cluster.Credentials{}, fmt.Errorf("peer of %s: not a socket", c.RemoteAddr())
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return cluster.Credentials{}, fmt.Errorf("peer of the connection: %w", err)
	}
	var p cluster.Credentials
	var asked error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); asked == nil {
			p.UID, p.GID = cred.Uid, cred.Gid
			p.Groups, asked = peerGroups(fd)
		}
	})
	if err == nil {
		err = asked
	}
	if err != nil {
		return cluster.Credentials{}, fmt.Errorf("peer of the connection: %w", err)
	}
	if known, err := user.LookupId(strconv.Itoa(int(p.UID))); err == nil {
		p.User = known.Username
	}
	return p, nil
}

// peerGroups returns the supplementary groups of a peer. Linux tells them since 4.13.
func peerGroups(fd uintptr) ([]uint32, error) {
	for room := 64; ; room *= 4 {
		groups := make([]uint32, room)
		size := uint32(4 * room)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return groups[:size/4], nil
		case errno != unix.ERANGE || room > 1<<16:
			return nil, errno
		}
	}
}
