package swap

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/resource"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// counted is a reading at the given time after a start at noon.
func counted(after time.Duration, out resource.Amount) Counters {
	return Counters{Boot: "a", Booted: noon, At: noon.Add(after), Out: out}
}

func TestToDisks(t *testing.T) {
	zram := func(c Counters, written, behind resource.Amount) Counters {
		c.Zram = map[string]resource.Amount{"zram0#1": written}
		c.Behind = map[string]resource.Amount{"zram0#1": behind}
		return c
	}
	for _, c := range []struct {
		why         string
		before, now Counters
		want        resource.Amount
	}{
		{"all of it", counted(1, 100), counted(2, 150), 50},
		{"nobody read before", Counters{}, counted(2, 150), 150},
		{"started anew", Counters{Boot: "old", Out: 1000}, counted(2, 150), 150},
		{"some to zram", zram(counted(1, 100), 10, 0), zram(counted(2, 150), 40, 0), 20},
		{"zram is new", counted(1, 100), zram(counted(2, 150), 50, 0), 0},
		{"the header of zram counts too", counted(1, 100), zram(counted(2, 150), 60, 0), 0},
		{"zram wrote on", zram(counted(1, 100), 0, 5), zram(counted(2, 150), 50, 25), 20},
		{"zram was set up again", zram(counted(1, 100), 90, 0), zram(counted(2, 150), 30, 0), 20},
	} {
		if got := c.now.ToDisks(c.before); got != c.want {
			t.Errorf("%s: %d, want %d", c.why, got, c.want)
		}
	}
}

func TestMeter(t *testing.T) {
	var m Meter
	step := func(why string, c Counters, want resource.Amount) {
		t.Helper()
		m.Count(c)
		if got := m.Spent(c.At); got != want {
			t.Errorf("%s: %d, want %d", why, got, want)
		}
	}
	step("a third of what was written since it started three days ago", counted(3*Day, 300), 100)
	step("more", counted(3*Day+time.Minute, 340), 140)
	step("an hour later", counted(3*Day+2*time.Hour, 350), 150)
	step("the first hour is a day old", counted(4*Day+time.Hour, 350), 10)
	step("all is a day old", counted(4*Day+3*time.Hour+time.Minute, 350), 0)
	step("nobody looked for two days", counted(6*Day+3*time.Hour+time.Minute, 450), 50)
	again := Counters{Boot: "b", Booted: noon.Add(7 * Day), At: noon.Add(7*Day + time.Hour), Out: 30}
	step("the machine was started again", again, 80)
	again.At, again.Out = again.At.Add(-3*Day), 35
	step("the clock was set back", again, 85)
	again.At = again.At.Add(Day + 2*time.Hour)
	step("and went on", again, 0)
}

// A meter counts no less than a list of all writes of the last day, and no more than the list with the hour before that
// day.
func TestMeterAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Meter
		type write struct {
			at    time.Time
			bytes resource.Amount
		}
		var all []write
		m.Count(counted(0, 0))
		c := counted(0, 0)
		for range rapid.IntRange(1, 60).Draw(t, "readings") {
			c.At = c.At.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "later")))
			bytes := resource.Amount(rapid.Int64Range(0, 1000).Draw(t, "bytes"))
			c.Out += bytes
			all = append(all, write{c.At, bytes})
			m.Count(c)
			var least, most resource.Amount
			for _, w := range all {
				if w.at.Add(Day).After(c.At) {
					least += w.bytes
				}
				if w.at.Add(Day + time.Hour).After(c.At) {
					most += w.bytes
				}
			}
			if got := m.Spent(c.At); got < least || got > most {
				t.Fatalf("at %v: %d, and in the last day %d, with the hour before %d", c.At, got, least, most)
			}
			if len(m.Hours) > 26 {
				t.Fatalf("%d sums for a day", len(m.Hours))
			}
		}
	})
}

// machineAt is a fake machine with the given uptime and number of pages swapped out.
func machineAt(t *testing.T, up time.Duration, pages int) Machine {
	m := fake(t, map[string]string{
		"proc/vmstat": fmt.Sprintf("pswpin 1\npswpout %d\n", pages), "proc/uptime": fmt.Sprintf("%f 1.0\n", up.Seconds()),
		"proc/sys/kernel/random/boot_id": "b\n", "proc/swaps": swaps,
	})
	m.now = func() time.Time { return noon.Add(up) }
	return m
}

// The budget continues where it was when its file is opened again.
func TestBudgetSurvives(t *testing.T) {
	page := resource.Amount(os.Getpagesize())
	path := BudgetPath(t.TempDir())
	open := func(m Machine) *Budget {
		b, err := OpenBudget(m, path, 1000*page)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	left := func(b *Budget, want resource.Amount) {
		t.Helper()
		if got, bounded, err := b.Left(); err != nil || !bounded || got != want*page {
			t.Errorf("%d pages left, %v, %v; want %d", got/page, bounded, err, want)
		}
	}
	b := open(machineAt(t, time.Hour, 100))
	left(b, 900)
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	b = open(machineAt(t, 2*time.Hour, 300))
	left(b, 700)
	// It is not saved this time: the counters have the difference.
	b = open(machineAt(t, 3*time.Hour, 1500))
	left(b, 0)
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	if spent, perDay, err := LastDay(machineAt(t, 4*time.Hour, 1500), path); err != nil || spent != 1500*page ||
		perDay != 1000*page {
		t.Errorf("in the last day %d of %d pages, %v", spent/page, perDay/page, err)
	}
	b = open(machineAt(t, 30*time.Hour, 1500))
	left(b, 1000)
	if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
		t.Errorf("files %q", files)
	}
}

func TestDamagedBudget(t *testing.T) {
	path := BudgetPath(t.TempDir())
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := OpenBudget(machineAt(t, time.Hour, 100), path, gib)
	if err == nil {
		t.Error("a damaged file was taken for a sound one")
	}
	if left, bounded, err := b.Left(); err != nil || !bounded || left != gib-100*resource.Amount(os.Getpagesize()) {
		t.Errorf("%d left, %v, %v", left, bounded, err)
	}
	b, _ = OpenBudget(machineAt(t, time.Hour, 100), path, 0)
	if _, bounded, err := b.Left(); err != nil || bounded {
		t.Errorf("without a bound: bounded %v, %v", bounded, err)
	}
}

func TestRoom(t *testing.T) {
	disk := func(free resource.Amount, priority int) Device {
		return Device{Kind: File, Size: 100, Used: 100 - free, Priority: priority, On: true}
	}
	zram := func(free resource.Amount, priority int) Device {
		return Device{Kind: Zram, Size: 100, Used: 100 - free, Priority: priority, On: true}
	}
	for _, c := range []struct {
		why     string
		devices []Device
		spare   resource.Amount
		left    resource.Amount // -1: unlimited
		want    Room
	}{
		{"none", nil, 1000, -1, Room{}},
		{"a tenth is kept", []Device{disk(100, 0)}, 0, -1, Room{Bytes: 90}},
		{"what is off has no room", []Device{{Kind: File, Size: 100}}, 0, -1, Room{}},
		{"full", []Device{disk(5, 0)}, 0, -1, Room{}},
		{"two", []Device{disk(100, 0), disk(50, 1)}, 0, -1, Room{Bytes: 130}},
		{"zram has what memory has", []Device{zram(100, 0)}, 30, -1, Room{Bytes: 20}},
		{"no memory for zram", []Device{zram(100, 0)}, -5, -1, Room{}},
		{"plenty of budget", []Device{disk(100, 0)}, 0, 200, Room{Bytes: 90}},
		{"budget", []Device{disk(100, 0)}, 0, 40, Room{Bytes: 40, Budgeted: true}},
		{"spent", []Device{disk(100, 0)}, 0, 0, Room{Budgeted: true}},
		{"spent, and full", []Device{disk(5, 0)}, 0, 0, Room{}},
		{"spent, and zram first", []Device{disk(100, 0), zram(100, 9)}, 70, 0, Room{Bytes: 70, Budgeted: true}},
		{"spent, and zram last", []Device{disk(100, 9), zram(100, 0)}, 70, 0, Room{Budgeted: true}},
		{"no disk to spare", []Device{zram(100, 0)}, 70, 0, Room{Bytes: 60}},
	} {
		if got := RoomOn(c.devices, c.spare, max(0, c.left), c.left >= 0); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.why, got, c.want)
		}
	}
}

// Less budget or less memory never means more room, and bounds never mean more room than no bounds.
func TestRoomIsMonotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var devices []Device
		for range rapid.IntRange(0, 4).Draw(t, "devices") {
			size := resource.Amount(rapid.Int64Range(0, 100).Draw(t, "size"))
			devices = append(devices, Device{Kind: rapid.SampledFrom([]Kind{File, Partition, Zram}).Draw(t, "kind"), Size: size,
				Used:     resource.Amount(rapid.Int64Range(0, int64(size)).Draw(t, "used")),
				Priority: rapid.IntRange(-2, 2).Draw(t, "priority"), On: true})
		}
		draw := func(name string) resource.Amount { return resource.Amount(rapid.Int64Range(-10, 300).Draw(t, name)) }
		spare, left := draw("spare"), draw("left")
		got := RoomOn(devices, spare, left, true)
		free := RoomOn(devices, spare, 0, false)
		if got.Bytes < 0 || got.Bytes > free.Bytes || got.Budgeted != (got.Bytes < free.Bytes) {
			t.Errorf("%+v, without a bound %+v", got, free)
		}
		if more := RoomOn(devices, spare+5, left+5, true); more.Bytes < got.Bytes {
			t.Errorf("%+v, with more %+v", got, more)
		}
	})
}
