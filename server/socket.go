package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

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

// CheckSocket returns why Listen could not make a socket at path, as far as that is known without making it. A daemon that
// answers there is no such reason.
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
