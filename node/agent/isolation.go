package agent

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/durable"
)

// A program can have temporary folders and a network of its own. Its process is then cloned into new namespaces of the
// kernel, which only root can make: the agent of another user states so among its
// Capabilities.

// namespaces returns the flags with which its process is cloned; 0 if the program shares all with the system.
func namespaces(l *cluster.Launch) (flags uintptr) {
	if l.PrivateTmp {
		flags |= unix.CLONE_NEWNS
	}
	if l.NoNetwork {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// tmpRecord is the file in the folder of a container that has the path of its private temporary folder.
const tmpRecord = "private_tmp.json"

// makeTmp makes the private temporary folder of a container: below that of the system, so that it has the same disk,
// in a folder that other users cannot enter. The path is recorded before, so that the folder is removed in any case.
func (f folder) makeTmp() error {
	path := filepath.Join(os.TempDir(), "bellows-"+rand.Text())
	if err := f.put(tmpRecord, path); err != nil {
		return err
	}
	if err := durable.MakeDir(tmpIn(path)); err != nil {
		return err
	}
	return os.Chmod(tmpIn(path), 0o777|os.ModeSticky)
}

// tmpIn is what the program gets of the folder that makeTmp makes.
func tmpIn(path string) string { return filepath.Join(path, "tmp") }

// isolate sets up the namespaces of the process.
func (w *way) isolate(f folder, l *cluster.Launch) error {
	if l.PrivateTmp {
		var path string
		if err := f.get(tmpRecord, &path); err != nil {
			return err
		}
		dir, err := os.Open(tmpIn(path))
		if err != nil {
			return fmt.Errorf("mount a private temporary folder: %w", err)
		}
		w.doors = append(w.doors, dir)
		// What is mounted here stays here; what the system mounts later arrives here, too.
		w.must(fault("mount a private temporary folder"), unix.SYS_MOUNT, "", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
		// The folder is opened again, in the new namespace, in place of the file of the old one. The first mount may hide
		// the path.
		w.must(fault("open a private temporary folder"), unix.SYS_OPENAT, here, tmpIn(path), unix.O_PATH|unix.O_CLOEXEC)
		w.must(fault("open a private temporary folder"), unix.SYS_DUP3, 0, int(dir.Fd()), unix.O_CLOEXEC).takes = 1
		source := fmt.Sprintf("/proc/self/fd/%d", dir.Fd())
		for _, target := range tmpDirs {
			w.must(fault("mount a private temporary folder: %s", target), unix.SYS_MOUNT, source, target, "", unix.MS_BIND,
				"").harmless = unix.ENOENT
		}
	}
	if l.NoNetwork {
		// Programs can connect to each other.
		lo, err := unix.NewIfreq("lo")
		if err != nil {
			return fmt.Errorf("set up a private network: %w", err)
		}
		lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		w.must(fault("set up a private network"), unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		w.must(fault("set up a private network"), unix.SYS_IOCTL, 0, unix.SIOCSIFFLAGS, lo).takes = 1
	}
	return nil
}

// tmpDirs are the temporary folders of the system.
var tmpDirs = []string{"/tmp", "/var/tmp"}

// hidden says that the private temporary folder of a program hides what the system has at a path, if that is so.
func hidden(l *cluster.Launch, path string) string {
	for _, dir := range tmpDirs {
		if l.PrivateTmp && strings.HasPrefix(filepath.Clean(path), dir+"/") {
			return fmt.Sprintf("; the job has a private temporary folder, which hides %s of the system", dir)
		}
	}
	return ""
}
