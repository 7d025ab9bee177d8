package paging

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// DeviceOf describes the kind of device that a folder is on, as "virtio disk, solid state", without naming it.
func DeviceOf(dir string) string {
	var s unix.Stat_t
	if err := unix.Stat(dir, &s); err != nil {
		return "unknown"
	}
	return describeDevice("/sys", unix.Major(s.Dev), unix.Minor(s.Dev))
}

// describeDevice reads the kernel's description of a block device below sys.
func describeDevice(sys string, major, minor uint32) string {
	dir, err := filepath.EvalSymlinks(filepath.Join(sys, "dev", "block", fmt.Sprintf("%d:%d", major, minor)))
	if err != nil {
		return "unknown"
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
		dir = filepath.Dir(dir)
	}
	kind := "disk"
	if driver, err := os.Readlink(filepath.Join(dir, "device", "driver")); err == nil {
		kind = strings.TrimSuffix(filepath.Base(driver), "_blk") + " disk"
	}
	switch rotates, _ := os.ReadFile(filepath.Join(dir, "queue", "rotational")); strings.TrimSpace(string(rotates)) {
	case "0":
		kind += ", solid state"
	case "1":
		kind += ", said to rotate"
	}
	return kind
}

// KernelRelease returns the version of the running kernel, or "unknown".
func KernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
