package swap

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
)

// needRoot skips a test that cannot create swap, and serialises the tests that do.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	testswap.Lock(t)
}

// newLedger returns a ledger in a folder of its own on a disk; both are removed when the test ends.
func newLedger(t *testing.T) *Ledger {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	if why, bad := noSwapOn[int64(s.Type)]; bad {
		t.Skipf("needs a folder on a disk: %s", why)
	}
	block := resource.Amount(s.Bsize)
	if resource.Amount(s.Bavail)*block < margin(resource.Amount(s.Blocks)*block)+2*resource.GiB {
		t.Skipf("needs room on the disk of %s", dir)
	}
	l := NewLedger(Machine{}, dir)
	t.Cleanup(func() {
		all, err := l.Devices()
		if err != nil {
			t.Error(err)
		}
		for _, d := range all {
			if d.Ours {
				if err := l.Remove(context.Background(), d.Path); err != nil { // the test's own context has ended
					t.Error(err)
				}
			}
		}
	})
	return l
}

// ours returns the paths of our devices; a device that is off has a note.
func (l *Ledger) ours(t *testing.T) []string {
	t.Helper()
	all, err := l.Devices()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, d := range all {
		if d.Ours && d.On {
			names = append(names, d.Path)
		} else if d.Ours {
			names = append(names, d.Path+" off")
		}
	}
	return names
}

func (l *Ledger) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := l.ours(t); !slices.Equal(got, want) {
		t.Errorf("ours are %q, want %q", got, want)
	}
}

func refused(t *testing.T, err error, words string) {
	t.Helper()
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), words) {
		t.Errorf("error %v, want a refusal that says %q", err, words)
	}
}

func TestFile(t *testing.T) {
	l := newLedger(t)
	d, err := l.CreateFile("", 64*mib)
	if err != nil {
		t.Fatal(err)
	}
	path := l.FilePath()
	if d.Path != path || d.Kind != File || !d.On || !d.Ours || d.Size != 64*mib-resource.Amount(os.Getpagesize()) {
		t.Errorf("made %+v", d)
	}
	if s, err := os.Stat(path); err != nil || s.Mode().Perm() != 0o600 || s.Size() != int64(64*mib) {
		t.Errorf("the file: %v, %v", s, err)
	}
	_, err = l.CreateFile(path, 64*mib)
	refused(t, err, "exists already")
	l.expect(t, path)

	// A later ledger finds it.
	later := NewLedger(Machine{}, l.dir)
	if err := later.Remove(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	l.expect(t)
}

func TestZram(t *testing.T) {
	l := newLedger(t)
	if _, err := os.Stat("/sys/class/zram-control"); err != nil {
		t.Skip("needs zram")
	}
	before, _ := filepath.Glob("/sys/block/zram*")
	_, err := l.CreateZram(64*mib, "no-such")
	refused(t, err, `algorithm "no-such": this kernel's zram knows `)
	d, err := l.CreateZram(64*mib, "")
	if err != nil {
		t.Fatal(err)
	}
	if d.Kind != Zram || !d.On || !d.Ours || d.Priority != zramPriority || d.Compressed == nil ||
		d.Compressed.Algorithm == "" {
		t.Errorf("made %+v", d)
	}
	l.expect(t, d.Path)
	if err := l.Remove(t.Context(), d.Path); err != nil {
		t.Fatal(err)
	}
	if after, _ := filepath.Glob("/sys/block/zram*"); !reflect.DeepEqual(before, after) {
		t.Errorf("zram devices were %q, are %q", before, after)
	}
	l.expect(t)
}

// TestCrash crashes at every point at which something would be left behind.
func TestCrash(t *testing.T) {
	l := newLedger(t)
	path := l.FilePath()

	// Before it has a name: only a note is left.
	crash := errors.New("crash")
	_, err := writeFile(path, 8*mib, func(id FileID) error {
		if err := l.note(entry{Path: path, Kind: File, Size: 8 * mib, File: &id}); err != nil {
			t.Error(err)
		}
		return crash
	})
	if !errors.Is(err, crash) {
		t.Fatal(err)
	}
	l.expect(t)
	if names, _ := filepath.Glob(filepath.Join(l.dir, "swapfile*")); len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}

	// Before it is turned on: the ledger finds it and can remove it.
	made, err := writeFile(path, 8*mib, func(id FileID) error {
		return l.note(entry{Path: path, Kind: File, Size: 8 * mib, File: &id})
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = made.Close()
	l.expect(t, path+" off")
	_, err = l.CreateFile("", 8*mib)
	refused(t, err, "is off: `bellows swap remove")
	if err := l.Remove(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	l.expect(t)

	// After it is turned off, before it is removed from the disk.
	if _, err := l.CreateFile("", 8*mib); err != nil {
		t.Fatal(err)
	}
	if err := TurnOff(path); err != nil {
		t.Fatal(err)
	}
	l.expect(t, path+" off")
	if err := l.Remove(t.Context(), path); err != nil {
		t.Fatal(err)
	}

	// After it is removed, before the removal is noted.
	if _, err := l.CreateFile("", 8*mib); err != nil {
		t.Fatal(err)
	}
	if err := TurnOff(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l.expect(t)
	if _, err := l.CreateFile("", 8*mib); err != nil {
		t.Fatal(err)
	}
	l.expect(t, path)
}

// TestOthersAreLeftAlone: a file with the name of one of our files is not ours, nor is swap that others turned on.
func TestOthersAreLeftAlone(t *testing.T) {
	l := newLedger(t)
	path := filepath.Join(l.dir, "file")
	if _, err := l.CreateFile(path, 8*mib); err != nil {
		t.Fatal(err)
	}
	if err := TurnOff(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := MakeFile(path, 8*mib, AsLast, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := TurnOff(path); err != nil {
			t.Error(err)
		}
	})
	l.expect(t)
	refused(t, l.Remove(t.Context(), path), "was not made by `bellows swap create`")
	refused(t, l.Remove(t.Context(), "/dev/zram0"), "was not made by")
	if all, err := l.Devices(); err != nil ||
		!slices.ContainsFunc(all, func(d Device) bool { return d.Path == path && d.On }) {
		t.Errorf("it is off: %+v, %v", all, err)
	}
}

func TestRefusals(t *testing.T) {
	l := newLedger(t)
	create := func(path string, size resource.Amount) error { _, err := l.CreateFile(path, size); return err }
	refused(t, create("", 0), "size 0B: must be from 1MiB")
	refused(t, create("", 17<<40), "must be from 1MiB")
	refused(t, create("", 15<<40), "must stay free")
	refused(t, create(filepath.Join(l.dir, "no", "such"), mib), "its folder does not exist")
	var s unix.Statfs_t
	if unix.Statfs("/dev/shm", &s) == nil && s.Type == unix.TMPFS_MAGIC {
		refused(t, create("/dev/shm/bellows-swap", mib), "tmpfs is memory itself")
	}
	_, err := l.CreateZram(15<<40, "")
	refused(t, err, "more than twice the machine's")
	if names, _ := filepath.Glob(filepath.Join(l.dir, "*")); len(names) > 1 { // the lock
		t.Errorf("left behind: %q", names)
	}

	f, err := os.OpenFile(filepath.Join(l.dir, "swap.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if err := create("", mib); err == nil ||
		!strings.Contains(err.Error(), "another command is creating or removing swap") {
		t.Errorf("beside another command: %v", err)
	}
}

// Creating a file leaves a margin on the disk.
func TestMargin(t *testing.T) {
	for _, c := range []struct {
		size, total, free resource.Amount
		ok                bool
	}{
		{gib, 10 * gib, 2 * gib, true},
		{gib + 1, 10 * gib, 2 * gib, false},
		{10 * gib, 100 * gib, 15 * gib, true},
		{10*gib + 1, 100 * gib, 15 * gib, false},
		{10 * gib, 1000 * gib, 18 * gib, true}, // a large disk
		{10*gib + 1, 1000 * gib, 18 * gib, false},
		{mib, 10 * gib, 0, false},
	} {
		if err := checkDisk("/", c.size, c.total, c.free); (err == nil) != c.ok {
			t.Errorf("%d of %d free of %d: %v", c.size, c.free, c.total, err)
		}
	}
}

// A device is turned off only if there is memory for its contents.
func TestFits(t *testing.T) {
	l := NewLedger(fake(t, map[string]string{"proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 150 kB\n"}), t.TempDir())
	for _, c := range []struct {
		d  Device
		ok bool
	}{
		{Device{Used: 100 * kib}, true},
		{Device{Used: 101 * kib}, false},
		{Device{Used: 140 * kib, Compressed: &Compressed{Memory: 40 * kib}}, true},
		{Device{Used: 141 * kib, Compressed: &Compressed{Memory: 40 * kib}}, false},
	} {
		if err := l.checkFits([]Device{c.d}, 0); (err == nil) != c.ok {
			t.Errorf("%d: %v", c.d.Used, err)
		}
	}
}

// The header is that of mkswap(8), except for UUID and label.
func TestHeader(t *testing.T) {
	mkswap, err := exec.LookPath("mkswap")
	if err != nil {
		t.Skip("needs mkswap")
	}
	path := filepath.Join(t.TempDir(), "swap")
	if err := os.WriteFile(path, make([]byte, 3*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkswap, "-L", "bellows", path).CombinedOutput(); err != nil {
		t.Skipf("mkswap: %v: %s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	theirs, ours := text[:page], header(page, 3*mib)
	const uuid = 1024 + 12
	copy(theirs[uuid:uuid+16], make([]byte, 16))
	if !bytes.Equal(theirs, ours) {
		t.Error("not the header that mkswap writes")
	}
}

func TestUnreadableRecord(t *testing.T) {
	l := NewLedger(fake(t, map[string]string{"proc/swaps": swaps}), t.TempDir())
	if err := os.WriteFile(l.path(), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Devices(); err == nil || !strings.Contains(err.Error(), l.path()) {
		t.Errorf("error %v", err)
	}
}

// TestZramOfOthers: a device is identified by its sequence number or, on kernels without sequence numbers, by its size.
func TestZramOfOthers(t *testing.T) {
	for _, c := range []struct {
		boot, sequence, size string
		ours                 bool
	}{
		{"b", "7", "65536", true},
		{"b", "8", "65536", false},
		{"c", "7", "65536", false},
		{"b", "", "65536", false},
		{"b", "7", "", false},
	} {
		l := NewLedger(fake(t, map[string]string{"proc/sys/kernel/random/boot_id": c.boot,
			"sys/block/zram3/diskseq": c.sequence, "sys/block/zram3/disksize": c.size}), t.TempDir())
		if got := l.exists(&entry{Path: "/dev/zram3", Kind: Zram, Size: 65536, Zram: &zramID{"b", "7"}}); got != c.ours {
			t.Errorf("%+v: ours %v", c, got)
		}
		uncounted := entry{Path: "/dev/zram3", Kind: Zram, Size: 65536, Zram: &zramID{"b", ""}}
		if got := l.exists(&uncounted); got != (c.boot == "b" && c.sequence == "" && c.size == "65536") {
			t.Errorf("%+v, not counted: ours %v", c, got)
		}
		uncounted.Size++
		if l.exists(&uncounted) {
			t.Errorf("%+v, another size: ours", c)
		}
	}
}

// TestWrittenIsKnown: the writes to our file since its creation are known unless other swap on a disk could have
// received them.
func TestWrittenIsKnown(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id, err := identify(unix.AT_FDCWD, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for list, known := range map[string]bool{
		path + " file 100 0 -2\n":                                 true,
		path + " file 100 0 -2\n/other file 100 0 -3\n":           false,
		path + " file 100 0 -2\n/dev/zram0 partition 100 0 100\n": true,
		path + " file 100 0 -2\n/dev/sdb1 partition 100 0 100\n":  false,
	} {
		m := machineAt(t, Day, 500)
		if err := os.WriteFile(m.path("proc/swaps"), []byte(swaps+list), 0o600); err != nil {
			t.Fatal(err)
		}
		l := NewLedger(m, dir)
		since := counted(0, 0)
		since.Boot, since.Out = "b", 100*resource.Amount(os.Getpagesize())
		if err := l.write([]entry{{Path: path, Kind: File, File: &id, Since: since}}); err != nil {
			t.Fatal(err)
		}
		all, err := l.Devices()
		if err != nil || !all[0].Ours {
			t.Fatalf("%+v, %v", all, err)
		}
		if w := all[0].Written; (w != nil) != known || known && *w != 400*resource.Amount(os.Getpagesize()) {
			t.Errorf("with %q: written %v", list, w)
		}
	}
}
