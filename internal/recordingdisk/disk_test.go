package recordingdisk

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
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

// A slow disk gives one reader its rate, and several much less of it, because its arm moves between them.
func TestSlow(t *testing.T) {
	const file, rate = 16 << 20, 32 << 20
	d := New(t, 64<<20)
	for _, name := range []string{"a", "b"} {
		if err := durable.Write(filepath.Join(d.Path(), name), make([]byte, file)); err != nil {
			t.Fatal(err)
		}
	}
	d.Slow(Pace{Rate: rate, Seek: 8 * time.Millisecond})
	read := func(names ...string) float64 {
		var all sync.WaitGroup
		began := time.Now()
		for _, name := range names {
			all.Go(func() {
				f, err := os.OpenFile(filepath.Join(d.Path(), name), os.O_RDONLY|unix.O_DIRECT, 0)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, testswap.Memory[byte](128<<10)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return float64(len(names)) * file / time.Since(began).Seconds()
	}
	one, two := read("a"), read("a", "b")
	t.Logf("one reader: %.1f MiB/s, two: %.1f MiB/s", one/(1<<20), two/(1<<20))
	if one > 1.1*rate || two > 0.6*one {
		t.Errorf("one reader gets %.0f bytes per second, two %.0f, of %d", one, two, int64(rate))
	}
}
