// Package recordingdisk is a disk for tests. It records every write and every flush, so that a test can reproduce what
// the disk might contain if the power had failed at any moment.
package recordingdisk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/internal/fusedisk"
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
	*fusedisk.Disk
	content *content
}

// content is what is on the disk.
type content struct {
	mu    sync.Mutex
	bytes []byte
	base  []byte   // the bytes when recording began; nil while it does not record
	log   []record // writes and flushes since then
	arm   fusedisk.Arm
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
	if why := fusedisk.Need(); why != "" {
		t.Skip(why)
	}
	swept, err := fusedisk.Sweep(prefix)
	if err != nil {
		t.Error(err)
	}
	for _, at := range swept {
		t.Logf("a test that was killed left %s", at)
	}
	c := &content{bytes: make([]byte, size)}
	disk, err := fusedisk.New("", prefix, c)
	if err != nil {
		t.Skip(err)
	}
	d := &Disk{disk, c}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("take the recording disk away: %v", err)
		}
	})
	const journal = 4
	if err := d.Format(journal); err != nil {
		t.Fatal(err)
	}
	if err := d.Mount(d.File()); err != nil {
		t.Skipf("needs to mount ext4 through a loop device: %v", err)
	}
	if err := fusedisk.Sync(d.Path()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.base, c.log = append([]byte(nil), c.bytes...), nil
	c.mu.Unlock()
	return d
}

// Pace is the speed of a disk with one arm.
type Pace = fusedisk.Pace

// Slow limits the disk to a pace from now on. The disk no longer records.
func (d *Disk) Slow(p Pace) {
	d.content.mu.Lock()
	d.content.base, d.content.log = nil, nil
	d.content.mu.Unlock()
	d.content.arm.Set(p)
}

// Device returns the block device of the file system, major:minor.
func (d *Disk) Device() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(d.Path(), &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)), nil
}

// Now returns the number of writes and flushes recorded so far.
func (d *Disk) Now() int {
	d.content.mu.Lock()
	defer d.content.mu.Unlock()
	return len(d.content.log)
}

// MountAfterCut mounts at Path what the disk might contain if the power had failed after the first at records:
// everything that was flushed, and a random part of the later writes, down to single sectors except in the superblock.
// Unmount the recording file system first, and call Unmount for this one later.
func (d *Disk) MountAfterCut(at int, random *rand.Rand) error {
	return d.mountImage(d.content.afterCut(at, random))
}

// MountForgetful is MountAfterCut of a faulty disk: it lost all writes after the first at records, flushed or not.
func (d *Disk) MountForgetful(at int) error { return d.mountImage(d.content.prefix(at)) }

func (c *content) prefix(at int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	image := append([]byte(nil), c.base...)
	for _, r := range c.log[:at] {
		copy(image[r.offset:], r.data)
	}
	return image
}

func (c *content) afterCut(at int, random *rand.Rand) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	image := append([]byte(nil), c.base...)
	flushed := 0
	for i, r := range c.log[:at] {
		if r.data == nil {
			flushed = i
		}
	}
	for i, r := range c.log[:at] {
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
	path := filepath.Join(d.Dir(), "image")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		return err
	}
	return d.Mount(path)
}

// Size implements fusedisk.Content.
func (c *content) Size() int64 { return int64(len(c.bytes)) }

// ReadAt implements fusedisk.Content.
func (c *content) ReadAt(block []byte, offset int64) error {
	c.arm.Move(offset, int64(len(block)))
	c.mu.Lock()
	defer c.mu.Unlock()
	copy(block, c.bytes[offset:])
	return nil
}

// WriteAt implements fusedisk.Content.
func (c *content) WriteAt(block []byte, offset int64) error {
	c.arm.Move(offset, int64(len(block)))
	c.mu.Lock()
	defer c.mu.Unlock()
	copy(c.bytes[offset:], block)
	if c.base != nil {
		c.log = append(c.log, record{offset, append([]byte(nil), block...)})
	}
	return nil
}

// Flush implements fusedisk.Content.
func (c *content) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base != nil {
		c.log = append(c.log, record{})
	}
	return nil
}
