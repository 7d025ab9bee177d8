package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
)

// me is the user of this test.
var me = cluster.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}

// startOutput returns the output that goes to a new file, the end of the pipe to print into, and a function that
// waits until all is copied. The time in which readers come is over.
func startOutput(t *testing.T, dir string, limit int64) (path string, print *os.File, finish func()) {
	t.Helper()
	path = filepath.Join(dir, "out")
	var all outputs
	print, err := all.add(path, me, limit)
	if err != nil {
		t.Fatal(err)
	}
	all.all[0].begun = time.Now().Add(-readersCome)
	all.begin()
	return path, print, all.finish
}

// data returns the parts of a file that are no holes, as offsets of begin and end, with their contents.
func data(t *testing.T, path string) (parts [][2]int64, size int64, text []byte) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if size, err = f.Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	for at := int64(0); ; {
		begin, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return parts, size, text
		}
		if err != nil {
			t.Fatal(err)
		}
		if at, err = unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE); err != nil {
			t.Fatal(err)
		}
		part := make([]byte, at-begin)
		if _, err := f.ReadAt(part, begin); err != nil {
			t.Fatal(err)
		}
		parts, text = append(parts, [2]int64{begin, at}), append(text, part...)
	}
}

// lines is text in which no two places look alike.
func lines(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%09d\n", i)
	}
	return b.Bytes()[:size]
}

// However many tasks a job has, what is kept of its output is bounded; a task of a small job has all that a task may
// have.
func TestOutputShare(t *testing.T) {
	for _, c := range []struct {
		limit int64
		tasks int
		want  int64
	}{
		{DefaultOutputLimit, 0, DefaultOutputLimit},
		{DefaultOutputLimit, 8, DefaultOutputLimit},
		{DefaultOutputLimit, 16, DefaultOutputLimit / 2},
		{DefaultOutputLimit, 1024, 1 << 20},
		{DefaultOutputLimit, 1_000_000, 64 << 10},
		{4 << 10, 1_000_000, 4 << 10},
	} {
		if got := outputShare(c.limit, c.tasks); got != c.want {
			t.Errorf("of %d bytes for a task alone, one of %d tasks has %d, want %d", c.limit, c.tasks, got, c.want)
		}
	}
}

// Of any output the beginning and the end are kept, of half the limit each, every byte at its offset; and one that is
// not longer than the limit is kept whole.
func TestOutputKeepsBothEnds(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range 50 {
		limit := int64(2+2*random.IntN(40)) * outputBlock
		printed := lines(random.IntN(int(4 * limit)))
		path, print, finish := startOutput(t, t.TempDir(), limit)
		for rest := printed; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(70_000))
			if _, err := print.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		print.Close()
		finish()
		parts, size, kept := data(t, path)
		if size != int64(len(printed)) {
			t.Fatalf("seed %d: of %d bytes with limit %d: size %d", seed, len(printed), limit, size)
		}
		var want []byte
		for _, p := range parts {
			want = append(want, printed[p[0]:p[1]]...)
		}
		head, tail := limit/2, size-limit/2
		whole := len(parts) <= 1 && int64(len(kept)) == size
		both := len(parts) == 2 && parts[0] == [2]int64{0, head} && parts[1][0] <= tail && parts[1][1] == size &&
			int64(len(kept)) <= limit+3*outputBlock+32<<10
		if !bytes.Equal(kept, want) || !both && !(whole && size <= limit+2*outputBlock) {
			t.Fatalf("seed %d: of %d bytes with limit %d, %v are kept; as printed: %v", seed, size, limit, parts,
				bytes.Equal(kept, want))
		}
	}
}

// A reader with a lock on what it has yet to read gets everything, however little is kept.
func TestReaderHoldsOutputUp(t *testing.T) {
	path, print, finish := startOutput(t, t.TempDir(), 16*outputBlock)
	printed := lines(4 << 20)
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	lock := unix.Flock_t{Type: unix.F_RDLCK}
	if err := unix.FcntlFlock(reader.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := print.Write(printed)
		done <- errors.Join(err, print.Close())
	}()
	got := make([]byte, len(printed))
	for at := 0; at < len(got); {
		n, err := reader.ReadAt(got[at:], int64(at))
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		at += n
		if n == 0 {
			time.Sleep(time.Millisecond) // More comes.
			continue
		}
		if err := unix.FcntlFlock(reader.Fd(), unix.F_OFD_SETLK,
			&unix.Flock_t{Type: unix.F_UNLCK, Len: int64(at)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil || !bytes.Equal(got, printed) {
		t.Errorf("read something else than was printed: %v", err)
	}
	finish()
}

// A program that left its container may keep the pipe for ever; the end is recorded nevertheless, with all that was
// printed.
func TestOutputOfWhoStays(t *testing.T) {
	path, print, finish := startOutput(t, t.TempDir(), 1<<20)
	defer print.Close()
	if _, err := print.Write(lines(60_000)); err != nil {
		t.Fatal(err)
	}
	finish()
	if _, _, kept := data(t, path); !bytes.Equal(kept, lines(60_000)) {
		t.Errorf("%d bytes are kept", len(kept))
	}
}

// Output leaves a tenth of the disk to others, and is kept again once there is room.
func TestOutputLeavesRoomOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("bellows-test", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("needs to mount a file system: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	}()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	path, print, finish := startOutput(t, dir, 128<<20)
	printed := lines(12 << 20)
	half := len(printed) / 2
	if _, err := print.Write(printed[:half]); err != nil {
		t.Fatal(err)
	}
	const pipe = 1 << 16 // what a pipe holds: the rest has been taken in
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil || disk.Bavail < disk.Blocks/10-pipe/outputBlock {
		t.Errorf("%d of %d blocks are left: %v", disk.Bavail, disk.Blocks, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if _, err := print.Write(printed[half:]); err != nil {
		t.Fatal(err)
	}
	print.Close()
	finish()
	parts, size, kept := data(t, path)
	var want []byte
	for _, p := range parts {
		want = append(want, printed[p[0]:p[1]]...)
	}
	if size != int64(len(printed)) || len(parts) != 2 || parts[0][0] != 0 || parts[0][1] < 2<<20 ||
		!bytes.Equal(kept, want) {
		t.Errorf("of %d bytes %v are kept; as printed: %v", size, parts, bytes.Equal(kept, want))
	}
}
