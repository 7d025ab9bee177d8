package agent

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// TestOtherDaemonsAreCounted: a daemon knows how much memory other daemons on its machine manage, and how much is
// granted to containers of daemons that are gone. It says so if the sum is more than the machine has.
func TestOtherDaemonsAreCounted(t *testing.T) {
	const gib = resource.GiB
	sockets := `Num       RefCount Protocol Flags    Type St Inode Path
ffff: 00000002 00000000 00010000 0001 01 100 @bellows-size-own-1073741824
ffff: 00000002 00000000 00010000 0001 01 101 @bellows-size-second-2147483648
ffff: 00000002 00000000 00010000 0001 01 102 @bellows-groups-second
ffff: 00000002 00000000 00010000 0001 01 103 @bellows-size-third
ffff: 00000002 00000000 00010000 0001 01 104 @bellows-size-fourth--5
ffff: 00000003 00000000 00000000 0001 03 105

`
	got := others("own", sockets, []string{"gone", "empty", "own", "second"}, func(name string) int64 {
		if name == "second" {
			t.Error("the groups of a daemon that tells its size are read")
		}
		return map[string]int64{"gone": int64(4 * gib), "own": int64(gib)}[name]
	})
	if want := map[string]resource.Amount{"second": 2 * gib, "gone": 4 * gib}; !maps.Equal(got, want) {
		t.Errorf("others are %v, want %v", got, want)
	}
	for _, c := range []struct {
		own, machine resource.Amount
		crowded      bool
	}{{2 * gib, 8 * gib, false}, {2*gib + 1, 8 * gib, true}, {8 * gib, 8 * gib, true}} {
		if text := crowded(c.own, &Usable{Has: resource.Of(0, c.machine)}, got); (text != "") != c.crowded || c.crowded &&
			!strings.Contains(text, "daemons manage 6GiB") {
			t.Errorf("%d of %d: %q", c.own, c.machine, text)
		}
	}
	if text := crowded(8*gib, &Usable{Has: resource.Of(0, 8*gib)}, nil); text != "" {
		t.Errorf("one that is alone: %q", text)
	}
	less := Usable{Has: resource.Of(0, 8*gib)}
	less.Less[resource.Memory] = "1GiB of its 9GiB is reserved as huge pages"
	const want = "this daemon manages 9GiB, more than what may be used of this machine, 8GiB: 1GiB of its 9GiB is " +
		"reserved as huge pages; " +
		"start it again, or give it less with `bellows up --memory`"
	if text := crowded(9*gib, &less, nil); text != want {
		t.Errorf("one that began before huge pages were reserved: %q, want %q", text, want)
	}
}

// TestDaemonsSeeEachOther: two agents of this machine see each other's size, and no longer once one has ended.
func TestDaemonsSeeEachOther(t *testing.T) {
	first, second := newBench(t), newBench(t)
	for _, pair := range [][2]*bench{{first, second}, {second, first}} {
		all := pair[0].groups.others()
		if got := all[groupName(pair[1].dir)]; got != resource.GiB {
			t.Errorf("the other one manages %d bytes, want 1 GiB", got)
		}
		if own, counted := all[groupName(pair[0].dir)]; counted {
			t.Errorf("an agent counts itself: %d bytes", own)
		}
	}
	second.Close()
	// A process that was just being started may have had the socket for moments more.
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got, counted := first.groups.others()[groupName(second.dir)]
		if !counted {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("one that ended and left nothing still counts: %d bytes", got)
		}
	}
	second.open() // for what tidies up
}
