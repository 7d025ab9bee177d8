package swap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
)

// ErrRefused marks errors that say in one sentence which part of a request cannot be met: nothing was changed.
var ErrRefused = errors.New("refused")

// refusal is an error whose text is complete for a user.
type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == ErrRefused }

func refuse(format string, operands ...any) error { return refusal(fmt.Sprintf(format, operands...)) }

// Priorities of swap devices.
const (
	// AsLast makes a device the last to be filled.
	AsLast = -1
	// Highest makes a device the first to be filled.
	Highest = 0x7fff
)

// Least and most bytes of a swap device: the kernel requires ten pages, and its header counts pages in 32 bits.
const (
	leastSize = resource.MiB
	mostSize  = resource.Amount(1<<32-1) * 4 * resource.KiB
)

func checkSize(size resource.Amount) error {
	if size < leastSize || size > mostSize {
		return refuse("size %s: must be from %s to %s", resource.FormatMemory(size), resource.FormatMemory(leastSize),
			resource.FormatMemory(mostSize))
	}
	return nil
}

// FileID distinguishes a file from other files that had or will have its name. Inode numbers are reused, birth times
// are not.
type FileID struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Born   int64  `json:"born_ns,omitempty"` // 0 if the file system does not record it
}

// same compares device numbers only where it must: they can change with a restart.
func (a FileID) same(b FileID) bool {
	return a.Inode == b.Inode && a.Born == b.Born && (a.Born != 0 || a.Device == b.Device)
}

func identify(fd int, path string, flags int) (FileID, error) {
	var s unix.Statx_t
	if err := unix.Statx(fd, path, flags|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
		return FileID{}, err
	}
	id := FileID{Device: unix.Mkdev(s.Dev_major, s.Dev_minor), Inode: s.Ino}
	if s.Mask&unix.STATX_BTIME != 0 {
		id.Born = s.Btime.Sec*1e9 + int64(s.Btime.Nsec)
	}
	return id, nil
}

// MakeFile makes a swap file of size bytes, rounded down to pages, and turns it on. It calls noted, unless nil, with
// the identity of the file before the file has a name. A file without a name disappears if this process ends, so that
// no file is left behind that was not recorded. It needs root.
func MakeFile(path string, size resource.Amount, priority int, noted func(FileID) error) error {
	if err := checkFile(path, size); err != nil {
		return err
	}
	size -= size % resource.Amount(os.Getpagesize())
	made, err := writeFile(path, size, noted)
	if err != nil {
		return fmt.Errorf("make swap file %s: %w", path, err)
	}
	defer made.Close()
	if err = swapOnFile(path, made, priority); err == nil || errors.Is(err, ErrRefused) {
		return err
	}
	if failure := os.Remove(path); failure != nil {
		return fmt.Errorf("swap to %s: %w; and it cannot be removed: %w", path, err, failure)
	}
	if errors.Is(err, unix.EINVAL) {
		return refuse("file %s: its file system does not support swap files; try another folder, or zram", path)
	}
	return fmt.Errorf("swap to %s: %w", path, err)
}

// checkFile refuses what cannot work, before anything is changed.
func checkFile(path string, size resource.Amount) error {
	if err := checkSize(size); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return refuse("file %s: exists already", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for %s: %w", path, err)
	}
	var s unix.Statfs_t
	dir := filepath.Dir(path)
	if err := unix.Statfs(dir, &s); errors.Is(err, fs.ErrNotExist) {
		return refuse("file %s: its folder does not exist", path)
	} else if err != nil {
		return fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	if name, bad := noSwapOn[int64(s.Type)]; bad {
		return refuse("file %s: %s; choose a folder on a disk, or zram", path, name)
	}
	block := resource.Amount(s.Bsize)
	return checkDisk(dir, size, resource.Amount(s.Blocks)*block, resource.Amount(s.Bavail)*block)
}

// noSwapOn are file systems on which swap files do not work, or not safely.
var noSwapOn = map[int64]string{
	unix.TMPFS_MAGIC:           "tmpfs is memory itself",
	unix.RAMFS_MAGIC:           "ramfs is memory itself",
	unix.OVERLAYFS_SUPER_MAGIC: "the kernel cannot swap to a file on overlayfs, the root file system of most containers",
	unix.BTRFS_SUPER_MAGIC:     "on btrfs files are copied when written, which swap files must not be",
	unix.NFS_SUPER_MAGIC:       "swapping over NFS can need memory to free memory",
	unix.SQUASHFS_MAGIC:        "squashfs cannot be written",
	unix.FUSE_SUPER_MAGIC:      "the kernel cannot swap to a file on FUSE",
	0x2fc12fc1:                 "swapping to ZFS can need memory to free memory",
	0xff534d42:                 "swapping over SMB can need memory to free memory",
}

// A swap file must leave this share of its disk free, at least marginLeast, and at most marginMost: a twentieth of a
// large disk would refuse a small swap file while tens of GiB are free.
const (
	marginShare = 20 // 1 / this share
	marginLeast = resource.GiB
	marginMost  = 8 * resource.GiB
)

// margin returns what a swap file must leave free of a disk with total bytes.
func margin(total resource.Amount) resource.Amount {
	return min(max(total/marginShare, marginLeast), marginMost)
}

func checkDisk(dir string, size, total, free resource.Amount) error {
	margin := margin(total)
	if size > free-margin {
		return refuse("size %s: the file system of %s has %s free, of which %s must stay free", resource.FormatMemory(size),
			dir, resource.FormatMemory(free), resource.FormatMemory(margin))
	}
	return nil
}

// swapOnFile swaps to the file at path if it is the file that was made, and not a replacement by a user who may write
// to the folder. The kernel is given the open file: its name could lead elsewhere a moment later.
func swapOnFile(path string, made *os.File, priority int) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOENT) {
		return refuse("file %s: was replaced during its creation by a user who may write to its folder", path)
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	is, err := f.Stat()
	if err != nil {
		return err
	}
	was, err := made.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(is, was) {
		return refuse("file %s: was replaced during its creation by a user who may write to its folder", path)
	}
	return swapOn(fmt.Sprintf("/proc/self/fd/%d", fd), priority)
}

// writeFile makes a file with all its blocks allocated, and gives it a name when it is complete. The caller closes it.
func writeFile(path string, size resource.Amount, noted func(FileID) error) (made *os.File, err error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := unix.Fallocate(fd, 0, 0, int64(size)); err != nil {
		return nil, fmt.Errorf("get the blocks of the file: %w", err)
	}
	if _, err := f.WriteAt(header(os.Getpagesize(), size), 0); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	if noted != nil {
		id, err := identify(fd, "", unix.AT_EMPTY_PATH)
		if err == nil {
			err = noted(id)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}

// header is the first page of a swap device, as mkswap(8) writes it: from byte 1024 on version 1, the number of the
// last page and the number of bad pages; then a UUID, which is left empty, and a label; a signature at the end.
func header(page int, size resource.Amount) []byte {
	const at, label, signature = 1024, "bellows", "SWAPSPACE2"
	first := make([]byte, page)
	binary.NativeEndian.PutUint32(first[at:], 1)
	binary.NativeEndian.PutUint32(first[at+4:], uint32(int64(size)/int64(page)-1))
	copy(first[at+28:at+44], label)
	copy(first[page-len(signature):], signature)
	return first
}

func swapOn(path string, priority int) error {
	const prefer = 0x8000 // SWAP_FLAG_PREFER: with a priority
	flags := uintptr(0)
	if priority >= 0 {
		flags = prefer | uintptr(min(priority, Highest))
	}
	return swapCall(unix.SYS_SWAPON, path, flags)
}

// TurnOff stops swapping to a device and brings its pages back into memory, which takes as long as reading them.
func TurnOff(path string) error {
	for {
		// Any signal to this process makes the kernel give up.
		if err := swapCall(unix.SYS_SWAPOFF, path, 0); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func swapCall(number uintptr, path string, flags uintptr) error {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(number, uintptr(unsafe.Pointer(name)), flags, 0); errno != 0 {
		return errno
	}
	return nil
}
