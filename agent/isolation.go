package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/durable"
)

// A program can have temporary folders and a network of its own. Its first stage is then cloned into new namespaces of the
// kernel, which only root can make: the driver refuses the jobs of other daemons.

// namespaces returns the flags with which the first stage is cloned; 0 if the program shares all with the system.
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

// makeTmp makes the private temporary folder of a container: below that of the system, so that it has the same disk, in a
// folder that other users cannot enter. The path is recorded before, so that the folder is removed in any case.
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

// removeTmp removes the private temporary folder of a container that has ended, if it has one.
func (f folder) removeTmp() error {
	var path string
	err := f.get(tmpRecord, &path)
	if err == nil {
		err = durable.RemoveAll(path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// isolate sets up the namespaces of this process, the first stage of a program.
func (f folder) isolate(l *cluster.Launch) error {
	if l.PrivateTmp {
		var path string
		if err := f.get(tmpRecord, &path); err != nil {
			return err
		}
		if err := mountTmp(tmpIn(path)); err != nil {
			return fmt.Errorf("mount a private temporary folder: %w", err)
		}
	}
	if l.NoNetwork {
		if err := raiseLoopback(); err != nil {
			return fmt.Errorf("set up a private network: %w", err)
		}
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

// mountTmp mounts a folder in place of the temporary folders of the system.
func mountTmp(path string) error {
	// What is mounted here stays here; what the system mounts later arrives here, too.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	source := fmt.Sprintf("/proc/self/fd/%d", dir.Fd()) // the first mount may hide the path
	for _, target := range tmpDirs {
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	return nil
}

// raiseLoopback lets programs in the network namespace of this process connect to each other.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
