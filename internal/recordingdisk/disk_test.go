package recordingdisk

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/internal/testswap"
)

// Flushed data is on the disk after a cut; data that was not flushed may be missing.
func TestCut(t *testing.T) {
	d := New(t, 16<<20)
	if err := durable.Write(filepath.Join(d.Path(), "first"), []byte("flushed")); err != nil {
		t.Fatal(err)
	}
	first := d.Now()
	if err := durable.Replace(filepath.Join(d.Path(), "second"), []byte("not flushed")); err != nil {
		t.Fatal(err)
	}
	beside := d.Now()
	if err := d.Unmount(); err != nil {
		t.Fatal(err)
	}
	if first == 0 {
		t.Fatal("nothing was recorded")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, at := range []int{first, beside, d.Now()} {
		if err := d.MountAfterCut(at, random); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(d.Path(), "first")); err != nil || string(text) != "flushed" {
			t.Errorf("after %d of %d records: %q, %v", at, d.Now(), text, err)
		}
		if _, err := os.Stat(filepath.Join(d.Path(), "second")); at == first && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after %d records there is what was written later: %v", at, err)
		}
		if err := d.Unmount(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.MountForgetful(0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(d.Path(), "first")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a disk that forgets has kept it: %v", err)
	}
	if err := d.Unmount(); err != nil {
		t.Fatal(err)
	}
}

// Whatever was lost, the file system can be mounted; also if that includes the superblock, which unmounting writes
// last.
func TestCutAtTheSuperblock(t *testing.T) {
	d := New(t, 16<<20)
	if err := durable.Write(filepath.Join(d.Path(), "first"), []byte("flushed")); err != nil {
		t.Fatal(err)
	}
	if err := d.Unmount(); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		if err := d.MountAfterCut(d.Now()-1, random); err != nil { // the last record is its flush
			t.Fatal(err)
		}
		if err := d.Unmount(); err != nil {
			t.Fatal(err)
		}
	}
}

// A slow disk takes its time for each byte that is read, and for each move of its arm. Only the least time is tested,
// which no load on the machine makes shorter; TestArm tests the rest.
func TestSlow(t *testing.T) {
	const file, block, rate, seek = 8 << 20, 128 << 10, 32 << 20, 8 * time.Millisecond
	const idle = 100 * time.Millisecond // for which the arm may have been before, and catches up
	d := New(t, 64<<20)
	var files []*os.File
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(d.Path(), name)
		if err := durable.Write(path, make([]byte, file)); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	d.Slow(Pace{Rate: rate, Seek: seek})
	memory := testswap.Memory[byte](block)
	read := func(files ...*os.File) time.Duration {
		began := time.Now()
		for at := int64(0); at < file; at += block {
			for _, f := range files { // in turn, so that the arm moves for each block
				if _, err := f.ReadAt(memory, at); err != nil {
					t.Fatal(err)
				}
			}
		}
		return time.Since(began)
	}
	const transfer, moves = file * time.Second / rate, 2 * (file / block) * seek
	if took, least := read(files[0]), transfer-idle; took < least {
		t.Errorf("a file was read in %v, want at least %v", took, least)
	}
	if took, least := read(files...), 2*transfer+moves-idle; took < least {
		t.Errorf("two files were read in turn in %v, want at least %v", took, least)
	}
}
