package recordingdisk

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/bellows-rm/bellows/durable"
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
