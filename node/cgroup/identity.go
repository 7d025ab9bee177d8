package cgroup

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// Identity distinguishes a group from all other groups that ever have the same path: the inode of its directory, on its
// device, in one run of the kernel. It is comparable and can be stored.
type Identity struct {
	Boot   string `json:"boot"` // The kernel's boot id; empty if the kernel does not report one.
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

func identify(dir, boot string) (Identity, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return Identity{}, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	return Identity{Boot: boot, Device: uint64(st.Dev), Inode: st.Ino}, nil
}
