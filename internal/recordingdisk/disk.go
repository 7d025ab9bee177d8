// Package recordingdisk is a disk for tests. It records every write and every flush, so that a test can reproduce what
// the disk might contain if the power had failed at any moment. The disk is a file of a FUSE file system that this
// process serves, with ext4 on it through a loop device.
package recordingdisk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

const (
	// sector is the size that a disk writes completely or not at all, bytes.
	sector = 512
	// superblock is where the first block of ext4 ends, bytes. The file system keeps its own state there, behind one
	// checksum and without a copy in the journal. It cannot be mounted if a part of that block is old: it relies on
	// disks to write the block as a whole.
	superblock = 4096
)

// prefix begins the names of the disks' folders; the number of the process follows.
const prefix = "bellows-recording-disk-"

// Disk is a disk that records. There is one file system on it, which is mounted at Path.
type Disk struct {
	dir    string
	server *fuse.Server

	mu      sync.Mutex
	content []byte
	base    []byte   // the content when recording began; nil while it does not record
	log     []record // writes and flushes since then

	arm  sync.Mutex // held for as long as a transfer takes, by all transfers of a slow disk
	pace Pace
	head int64         // where the last transfer ended
	debt time.Duration // what transfers still have to take: the clock is too coarse for one of them
}

// record is a write, or a flush if it has no data.
type record struct {
	offset int64
	data   []byte
}

// New makes a disk of the given size, bytes, with an empty ext4 on it, and removes both when the test ends. It skips
// the test, with the reason, where that is not possible.
func New(t testing.TB, size int64) *Disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount file systems")
	}
	for _, path := range []string{"/dev/fuse", "/dev/loop-control"} {
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err != nil {
			t.Skipf("needs %s: %v", path, err)
		} else {
			f.Close()
		}
	}
	for _, program := range []string{"mkfs.ext4", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs the program %s: %v", program, err)
		}
	}
	sweep(t)
	dir, err := os.MkdirTemp("", prefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		t.Fatal(err)
	}
	d := &Disk{dir: dir, content: make([]byte, size)}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Errorf("take the recording disk away: %v", err)
		}
	})
	for _, sub := range []string{"fuse", "mounted"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.serve(); err != nil {
		t.Skipf("needs to mount a FUSE file system: %v", err)
	}
	if err := run("mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", d.file()); err != nil {
		t.Fatal(err)
	}
	if err := d.mount(d.file()); err != nil {
		t.Skipf("needs to mount ext4 through a loop device: %v", err)
	}
	if err := d.sync(); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	d.base, d.log = append([]byte(nil), d.content...), nil
	d.mu.Unlock()
	return d
}

// Pace is how fast a disk with one arm is.
type Pace struct {
	Rate int64         // bytes per second of a transfer; 0 is as fast as memory
	Seek time.Duration // before a transfer that does not begin where the last one ended
}

// Slow makes the disk as slow as that, for whoever reads and writes, from now on. It records no more.
func (d *Disk) Slow(p Pace) {
	d.mu.Lock()
	d.base, d.log = nil, nil
	d.mu.Unlock()
	d.arm.Lock()
	defer d.arm.Unlock()
	d.pace = p
}

// move takes the time of a transfer.
func (d *Disk) move(offset, bytes int64) {
	d.arm.Lock()
	defer d.arm.Unlock()
	if d.pace.Rate == 0 {
		return
	}
	if offset != d.head {
		d.debt += d.pace.Seek
	}
	d.head = offset + bytes
	d.debt += time.Duration(float64(bytes) / float64(d.pace.Rate) * float64(time.Second))
	if d.debt >= time.Millisecond {
		began := time.Now()
		time.Sleep(d.debt)
		d.debt = max(d.debt-time.Since(began), -mostAhead)
	}
}

// mostAhead is the most that a slow disk catches up after this process was late.
const mostAhead = 20 * time.Millisecond

// Device returns the block device of the file system, major:minor.
func (d *Disk) Device() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(d.Path(), &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)), nil
}

func (d *Disk) file() string { return filepath.Join(d.dir, "fuse", "disk") }

// Path returns where the file system is mounted.
func (d *Disk) Path() string { return filepath.Join(d.dir, "mounted") }

// Now returns the number of writes and flushes recorded so far.
func (d *Disk) Now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

// sync writes what the kernel has of the file system, and of no other: other ones may hang.
func (d *Disk) sync() error {
	f, err := os.Open(d.Path())
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

// MountAfterCut mounts at Path what the disk might contain if the power had failed after the first at records:
// everything that was flushed, and a random part of the later writes, down to single sectors except in the superblock.
// Unmount the recording file system first, and call Unmount for this one later.
func (d *Disk) MountAfterCut(at int, random *rand.Rand) error {
	return d.mountImage(d.afterCut(at, random))
}

// MountForgetful is MountAfterCut of a faulty disk: it lost all writes after the first at records, flushed or not.
func (d *Disk) MountForgetful(at int) error { return d.mountImage(d.prefix(at)) }

func (d *Disk) prefix(at int) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	image := append([]byte(nil), d.base...)
	for _, r := range d.log[:at] {
		copy(image[r.offset:], r.data)
	}
	return image
}

func (d *Disk) afterCut(at int, random *rand.Rand) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	image := append([]byte(nil), d.base...)
	flushed := 0
	for i, r := range d.log[:at] {
		if r.data == nil {
			flushed = i
		}
	}
	for i, r := range d.log[:at] {
		if i < flushed || random.IntN(3) == 0 {
			copy(image[r.offset:], r.data)
			continue
		}
		if random.IntN(2) == 0 {
			continue
		}
		for from, to := r.offset, int64(0); from < r.offset+int64(len(r.data)); from = to {
			to = min(max(from+sector, superblock), r.offset+int64(len(r.data)))
			if random.IntN(2) == 0 {
				copy(image[from:to], r.data[from-r.offset:])
			}
		}
	}
	return image
}

func (d *Disk) mountImage(image []byte) error {
	path := filepath.Join(d.dir, "image")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		return err
	}
	return d.mount(path)
}

// mount makes the kernel release the loop device together with the file system.
func (d *Disk) mount(file string) error {
	return run("mount", "-t", "ext4", "-o", "loop,nodiscard", file, d.Path())
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func (d *Disk) close() error {
	// It does not wait for files that a failed test has left open there.
	if err := unix.Unmount(d.Path(), unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	if d.server != nil {
		if err := d.server.Unmount(); err != nil {
			if err := unix.Unmount(filepath.Join(d.dir, "fuse"), unix.MNT_DETACH); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(d.dir)
}

// sweep removes what killed tests left behind.
func sweep(t testing.TB) {
	t.Helper()
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(mounts) - 1; i >= 0; i-- {
		_, rest, ok := strings.Cut(mounts[i].Mountpoint, "/"+prefix)
		text, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(text)
		if !ok || err != nil || unix.Kill(pid, 0) == nil {
			continue
		}
		t.Logf("a test that was killed left %s", mounts[i].Mountpoint)
		if err := unix.Unmount(mounts[i].Mountpoint, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", mounts[i].Mountpoint, err)
		}
	}
}

// serve mounts the FUSE file system, which has one file.
func (d *Disk) serve() error {
	root := &fs.Inode{}
	server, err := fs.Mount(filepath.Join(d.dir, "fuse"), root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "bellows-recording-disk", MaxWrite: 1 << 17},
		OnAdd: func(ctx context.Context) {
			root.AddChild("disk", root.NewPersistentInode(ctx, &file{disk: d}, fs.StableAttr{Mode: syscall.S_IFREG}), false)
		}})
	d.server = server
	return err
}

// file is the disk as the kernel sees it.
type file struct {
	fs.Inode
	disk *Disk
}

// Getattr implements fs.NodeGetattrer.
func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o600, uint64(len(f.disk.content))
	return 0
}

// Setattr implements fs.NodeSetattrer: times and modes do not matter here, and the size stays.
func (f *file) Setattr(ctx context.Context, h fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return f.Getattr(ctx, h, out)
}

// Open implements fs.NodeOpener. Nothing of the disk is kept elsewhere: what is read again is transferred again.
func (f *file) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

// Read implements fs.NodeReader.
func (f *file) Read(_ context.Context, _ fs.FileHandle, to []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	d := f.disk
	d.move(offset, int64(len(to)))
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	if offset < int64(len(d.content)) {
		n = copy(to, d.content[offset:])
	}
	return fuse.ReadResultData(to[:n]), 0
}

// Write implements fs.NodeWriter.
func (f *file) Write(_ context.Context, _ fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	d := f.disk
	d.move(offset, int64(len(data)))
	d.mu.Lock()
	defer d.mu.Unlock()
	if offset+int64(len(data)) > int64(len(d.content)) {
		return 0, syscall.ENOSPC
	}
	copy(d.content[offset:], data)
	if d.base != nil {
		d.log = append(d.log, record{offset, append([]byte(nil), data...)})
	}
	return uint32(len(data)), 0
}

// Fsync implements fs.NodeFsyncer: a flush of the disk.
func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.base != nil {
		d.log = append(d.log, record{})
	}
	return 0
}
