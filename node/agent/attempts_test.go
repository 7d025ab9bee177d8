package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
)

// A supervisor that dies while it starts may have started the program, unless it did not even begin. Its note right
// before the start distinguishes the two.
func TestSupervisorDiesWhileItStarts(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ script, want string }{
		{"printf '%s\\n\\n' $$ >&3", "its supervisor ended without a record"}, // The lock is its third file.
		{"echo $$ >&3", "it ended without a report"},
		{"echo broken >&2", "it ended without a report: broken"},
	} {
		b.crew.program = script(t, c.script+"\nkill -9 $$")
		o := b.order("true")
		b.Apply([]cluster.Order{o})
		e := b.nextOf(cluster.DecisionDone, cluster.DecisionFailed)
		if begun := strings.Contains(c.script, "printf"); begun != (e.Kind == cluster.DecisionDone) {
			t.Errorf("%s: %+v", c.script, e)
		}
		if e.Kind == cluster.DecisionDone {
			if e = b.next(cluster.TaskEnded); e.Outcome != cluster.Lost {
				t.Errorf("%s: %+v", c.script, e)
			}
		}
		if !strings.Contains(e.Detail, c.want) {
			t.Errorf("%s: %+v", c.script, e)
		}
		if names, err := b.groups.root.List(); err != nil || len(names) != 1 {
			t.Errorf("groups left: %v %v", names, err)
		}
	}
}

// shell is the path of a shell, which stands elsewhere in a guest.
func shell() string {
	if slow() {
		return "/guest/sh"
	}
	return "/bin/sh"
}

// script makes an executable of a shell's commands. In a guest the commands have no PATH.
func script(t *testing.T, commands string) string {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!"+shell()+"\n"+commands+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// A container that is killed while it waits for its start does not start.
func TestKillStopsWhatWaitsToBeStarted(t *testing.T) {
	b := newBench(t)
	for range cap(b.starting) {
		b.starting <- struct{}{}
	}
	var orders, kills []cluster.Order
	for range 2 * cap(b.starting) {
		o := b.order("true")
		orders, kills = append(orders, o), append(kills, kill(o.Container)...)
	}
	b.Apply(orders)
	b.Apply(kills)
	for range orders {
		if e := b.next(cluster.DecisionFailed); e.Detail != "ended before it was started" &&
			e.Detail != "ended before its memory was available" || e.Short {
			t.Errorf("event %+v", e)
		}
	}
	for range cap(b.starting) {
		<-b.starting
	}
	for _, o := range orders {
		if _, err := os.Stat(o.Launch.Stdout); err == nil {
			t.Errorf("container %s was started", o.Container)
		}
	}
	if e := b.run(b.order("true")); e.Outcome != cluster.Succeeded {
		t.Errorf("event %+v", e)
	}
}

// nextOf returns the next event of some kinds.
func (b *bench) nextOf(kinds ...cluster.EventKind) cluster.Event {
	b.t.Helper()
	for {
		if e := <-b.Events(); slices.Contains(kinds, e.Kind) {
			return e
		}
	}
}
