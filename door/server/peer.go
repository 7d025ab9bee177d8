package server

import (
	"context"
	"errors"
	"net"
	"os/user"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/peercred"
	"github.com/bellows-rm/bellows/live/api"
)

type peerKey struct{}

// withPeer is the http.Server's ConnContext: it asks the kernel which user connected.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	p, err := peerOf(c)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// peer returns the sender of a request: what the rules of access.go need is in caller. The name is looked up here and
// not where connections are accepted: if the directory of users is slow, only this caller waits.
func peer(ctx context.Context) (cluster.Credentials, error) {
	p, ok := ctx.Value(peerKey{}).(cluster.Credentials)
	if !ok {
		return p, api.Errorf(api.Denied, "the kernel does not say who is calling")
	}
	if p.User == "" {
		p.User = users.name(p.UID)
	}
	return p, nil
}

// names are the names of users. A uid may be given to another user: a name is looked up again after nameLasts.
type names struct {
	known  sync.Map // of uint32 to knownName
	lookUp func(uid string) (*user.User, error)
}

// knownName is the name of a user at a time.
type knownName struct {
	name string
	at   time.Time
}

// nameLasts is for how long a name is not looked up again: a directory of users may be slow.
const nameLasts = 10 * time.Second

var users = names{lookUp: user.LookupId}

// name returns the name of a user, empty if the user has none. While names cannot be looked up, it is the last that was
// known.
func (n *names) name(uid uint32) string {
	var last knownName
	if known, ok := n.known.Load(uid); ok {
		if last = known.(knownName); time.Since(last.at) < nameLasts {
			return last.name
		}
	}
	u, err := n.lookUp(strconv.FormatUint(uint64(uid), 10))
	if _, gone := errors.AsType[user.UnknownUserIdError](err); gone {
		n.known.Delete(uid)
		return ""
	}
	if err != nil {
		return last.name // It may become known later.
	}
	n.known.Store(uid, knownName{u.Username, time.Now()})
	return u.Username
}

// peerOf asks the kernel which user connected at the other end.
func peerOf(c net.Conn) (cluster.Credentials, error) {
	cred, err := peercred.Credentials(c)
	if err != nil {
		return cluster.Credentials{}, err
	}
	p := cluster.Credentials{UID: cred.Uid, GID: cred.Gid}
	err = peercred.Control(c, func(fd uintptr) (err error) {
		p.Groups, err = peerGroups(fd)
		return err
	})
	if err != nil {
		return cluster.Credentials{}, err
	}
	return p, nil
}

// peerGroups returns the supplementary groups of a peer. Linux 4.13 and later report them.
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
