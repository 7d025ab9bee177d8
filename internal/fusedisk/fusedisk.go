// Package fusedisk makes disks of its own: the content of a disk is a file of a FUSE file system that this process
// serves, with ext4 on it through a loop device. The process that serves the content sees every transfer of the disk.
package fusedisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Content is what is on a disk. The kernel calls its methods at the same time, from many threads.
type Content interface {
	// Size is the size of the disk, bytes. It does not change.
	Size() int64
	// ReadAt and WriteAt transfer all of a block that lies on the disk, or fail.
	ReadAt(block []byte, offset int64) error
	WriteAt(block []byte, offset int64) error
	// Flush is called when all that was written must survive a loss of power.
	Flush() error
}

// Disk is a disk. There is at most one file system on it, which is mounted at Path.
type Disk struct {
	dir    string
	server *fuse.Server
}

// Need says in one clause what this machine lacks for such disks; empty if nothing is known to be missing.
func Need() string {
	if os.Geteuid() != 0 {
		return "needs root, to mount file systems"
	}
	for _, path := range []string{"/dev/fuse", "/dev/loop-control"} {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return fmt.Sprintf("needs %s: %v", path, err)
		}
		f.Close()
	}
	for _, program := range []string{"mkfs.ext4", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("needs the program %s: %v", program, err)
		}
	}
	return ""
}

// New serves content as a disk, in a new folder below parent. The name of the folder begins with the prefix and the
// number of this process, so that Sweep finds it. The disk has no file system yet.
func New(parent, prefix string, content Content) (*Disk, error) {
	dir, err := os.MkdirTemp(parent, prefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil, err
	}
	d := &Disk{dir: dir}
	for _, sub := range []string{"fuse", "mounted"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	if err == nil {
		d.server, err = serve(filepath.Join(dir, "fuse"), content)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mount a FUSE file system: %w", err), os.RemoveAll(dir))
	}
	return d, nil
}

// Dir returns the folder of the disk, which Close removes.
func (d *Disk) Dir() string { return d.dir }

// File returns the disk as a file.
func (d *Disk) File() string { return filepath.Join(d.dir, "fuse", "disk") }

// Path returns where the file system is mounted.
func (d *Disk) Path() string { return filepath.Join(d.dir, "mounted") }

// Format makes an empty ext4 on the disk, with a journal of the given size, MiB.
func (d *Disk) Format(journal int) error {
	return run("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-J", fmt.Sprintf("size=%d", journal),
		"-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", d.File())
}

// Mount mounts the ext4 in a file, which may be the disk itself, at Path. The kernel releases the loop device together
// with the file system.
func (d *Disk) Mount(file string) error {
	return run("mount", "-t", "ext4", "-o", "loop,nodiscard", file, d.Path())
}

// Sync writes what the kernel has of the file system of a folder, and of no other: other ones may hang.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// Unmount unmounts the file system at Path. It waits up to a minute until files there are closed.
func (d *Disk) Unmount() error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Unmount(d.Path(), 0)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			return fmt.Errorf("unmount %s: %w", d.Path(), err)
		}
	}
}

// Close removes the disk and its folder. It does not wait for files that are open on it.
func (d *Disk) Close() error {
	if err := unix.Unmount(d.Path(), unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := d.server.Unmount(); err != nil {
		if err := unix.Unmount(filepath.Join(d.dir, "fuse"), unix.MNT_DETACH); err != nil {
			return err
		}
	}
	return os.RemoveAll(d.dir)
}

// Sweep unmounts the disks with a prefix that killed processes have left behind, and removes their folders. It returns
// where the disks were mounted.
func Sweep(prefix string) (swept []string, err error) {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, err
	}
	for i := len(mounts) - 1; i >= 0; i-- {
		at := mounts[i].Mountpoint
		_, rest, ok := strings.Cut(at, "/"+prefix)
		text, _, _ := strings.Cut(rest, "-")
		pid, notNumber := strconv.Atoi(text)
		if !ok || notNumber != nil || unix.Kill(pid, 0) == nil {
			continue
		}
		swept = append(swept, at)
		if unmounting := unix.Unmount(at, unix.MNT_DETACH); unmounting != nil {
			err = errors.Join(err, fmt.Errorf("unmount %s: %w", at, unmounting))
		} else if filepath.Base(at) == "fuse" { // the one that was mounted first
			err = errors.Join(err, os.RemoveAll(filepath.Dir(at)))
		}
	}
	return swept, err
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// serve mounts a FUSE file system, which has one file, with the given content.
func serve(dir string, content Content) (*fuse.Server, error) {
	root := &fs.Inode{}
	return fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "bellows-disk", MaxWrite: 1 << 17},
		OnAdd: func(ctx context.Context) {
			root.AddChild("disk", root.NewPersistentInode(ctx, &file{content: content}, fs.StableAttr{Mode: syscall.S_IFREG}),
				false)
		}})
}

// file is the disk as the kernel sees it.
type file struct {
	fs.Inode
	content Content
}

// Getattr implements fs.NodeGetattrer.
func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o600, uint64(f.content.Size())
	return 0
}

// Setattr implements fs.NodeSetattrer: times and modes do not matter here, and the size stays.
func (f *file) Setattr(ctx context.Context, h fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return f.Getattr(ctx, h, out)
}

// Open implements fs.NodeOpener. The kernel caches nothing of the file, so that every transfer of the disk comes here.
func (f *file) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES, 0
}

// Read implements fs.NodeReader.
func (f *file) Read(_ context.Context, _ fs.FileHandle, to []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	to = to[:max(0, min(int64(len(to)), f.content.Size()-offset))]
	if len(to) == 0 {
		return fuse.ReadResultData(nil), 0
	}
	if err := f.content.ReadAt(to, offset); err != nil {
		return nil, syscall.EIO
	}
	return fuse.ReadResultData(to), 0
}

// Write implements fs.NodeWriter.
func (f *file) Write(_ context.Context, _ fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	if offset+int64(len(data)) > f.content.Size() {
		return 0, syscall.ENOSPC
	}
	if err := f.content.WriteAt(data, offset); err != nil {
		return 0, syscall.EIO
	}
	return uint32(len(data)), 0
}

// Fsync implements fs.NodeFsyncer: a flush of the disk.
func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	if err := f.content.Flush(); err != nil {
		return syscall.EIO
	}
	return 0
}
