package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// isMember reports whether a user is a member of g. A missing group has no members.
func isMember(g *api.Group, c *cluster.Credentials) bool {
	return g != nil && (c.GID == g.GID || slices.Contains(c.Groups, g.GID))
}

// Door says who may connect to a socket. The zero value admits the daemon's user and root.
type Door struct {
	Mode  fs.FileMode // permission bits of the socket, to read and write; 0 is 0600
	Group *api.Group  // of the socket; nil is that of the daemon
}

// set sets group and mode of a socket.
func (d *Door) set(path string) error {
	if d.Group != nil {
		if err := os.Chown(path, -1, int(d.Group.GID)); err != nil {
			return err
		}
	}
	return os.Chmod(path, cmp.Or(d.Mode, 0o600))
}

// makeFolder makes the folder of a socket. The error says so if those whom the door admits cannot pass through it.
func (d *Door) makeFolder(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	switch err := os.Mkdir(dir, 0o755); {
	case err == nil:
		return os.Chmod(dir, 0o755) // whatever the umask is
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	const passes = 0o011 // for the group and all others; the group of a folder may be another than that of the socket
	if d.Mode&0o077 != 0 && info.Mode()&passes == 0 {
		return fmt.Errorf("other users cannot reach it, because its folder has mode %#o: name a socket elsewhere with "+
			"--socket", info.Mode().Perm())
	}
	return nil
}

// Listen opens the socket at path, for the users whom the door admits. A socket that a killed daemon left behind is
// replaced; a socket with a live daemon is an error. The folder is made if it is missing. Closing the listener
// removes the socket.
func Listen(path string, door Door) (net.Listener, error) {
	if err := door.makeFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("socket %s: another daemon answers there", path)
	}
	switch exists, err := socketAt(path); {
	case err != nil:
		return nil, err
	case exists:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the socket of a daemon that is gone: %w", err)
		}
	}
	// No user may connect between the creation of the socket and the setting of its mode: it gets its name last.
	hidden, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, fmt.Errorf("make the socket: %w", err)
	}
	defer os.RemoveAll(hidden)
	first := filepath.Join(hidden, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: first, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make the socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err = door.set(first); err == nil {
		err = os.Rename(first, path)
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("make the socket %s: %w", path, err)
	}
	return &listener{UnixListener: l, path: path}, nil
}

// listener removes its socket when it is closed.
type listener struct {
	*net.UnixListener
	path string
}

func (l *listener) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		_ = os.Remove(l.path)
	}
	return err
}

// socketAt reports whether there is a socket at path. The error says that there is something else.
func socketAt(path string) (exists bool, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, nil // Listen fails where it makes the socket, if at all.
	}
	if info.Mode().Type() != fs.ModeSocket {
		return true, fmt.Errorf("socket %s: the path exists and is no socket", path)
	}
	return true, nil
}

// CheckSocket returns why Listen could not make a socket at path, as far as that is known without making it. A daemon
// that answers there is no such reason.
func CheckSocket(path string) error {
	if _, err := socketAt(path); err != nil {
		return err
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		err := unix.Access(dir, unix.W_OK|unix.X_OK)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir):
			return fmt.Errorf("socket %s: this user cannot make it in %s: %w", path, dir, err)
		}
	}
}
