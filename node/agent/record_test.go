package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
)

// damages are what a crash of the machine, a broken disk or a person may do to a file.
var damages = []struct {
	name string
	do   func(path string) error
}{
	{"empty", func(path string) error { return os.Truncate(path, 0) }},
	{"cut", func(path string) error { return os.Truncate(path, 10) }},
	{"zeroes", func(path string) error { return os.WriteFile(path, make([]byte, 300), 0o600) }},
	{"not JSON", func(path string) error { return os.WriteFile(path, []byte("hello\n"), 0o600) }},
	{"another type", func(path string) error { return os.WriteFile(path, []byte("[1, 2]\n"), 0o600) }},
	{"missing", os.Remove},
	{"a directory", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }},
	{"a link to nothing", func(path string) error { return errors.Join(os.Remove(path), os.Symlink("nothing", path)) }},
	{"a link to itself", func(path string) error {
		return errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path))
	}},
	{"no permission", func(path string) error { return os.Chmod(path, 0) }},
}

// An unreadable record ends only its own container. The container is reported as lost, unless its end is known; its
// group is killed and its folder kept. Other containers run on.
func TestUnreadableRecords(t *testing.T) {
	for _, d := range damages {
		if d.name == "no permission" { // It is read again: see TestInventoryOfWhatCannotBeRead.
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			b := newBench(t)
			start := func(script string) cluster.Order {
				o := b.order("sh", "-c", script)
				b.Apply([]cluster.Order{o})
				b.next(cluster.DecisionDone)
				return o
			}
			well, runs := start("exec sleep 1000"), start("exec sleep 1000")
			ended, unknown := start("exit 3"), start("exit 3")
			b.next(cluster.TaskEnded)
			b.next(cluster.TaskEnded)
			b.Close()
			for _, path := range []string{b.folder(runs.Container).path("spec.json"),
				b.folder(ended.Container).path("spec.json"), b.folder(unknown.Container).path("exit.json")} {
				if err := d.do(path); err != nil {
					t.Fatal(err)
				}
			}
			b.open()
			if e := b.next(cluster.TaskAdopted); e.Task != well.Task {
				t.Errorf("adopted %+v", e)
			}
			got := map[cluster.TaskID]cluster.Event{}
			for range 3 {
				e := b.next(cluster.TaskEnded)
				got[e.Task] = e
				b.Forget(cluster.ContainerID{Task: e.Task, Run: e.Run})
			}
			if e := got[runs.Task]; e.Outcome != cluster.Lost || !strings.Contains(e.Detail, "record") {
				t.Errorf("the one that ran ended %+v", e)
			}
			if e := got[ended.Task]; e.Outcome != cluster.Failed || e.Exit == nil || e.Exit.Code != 3 {
				t.Errorf("the one that had ended ended %+v", e)
			}
			if e := got[unknown.Task]; e.Outcome != cluster.Lost {
				t.Errorf("the one that ended unknown ended %+v", e)
			}
			names, err := b.groups.root.List()
			if err != nil || len(names) != 2 { // of the supervisors, and of the one that is well
				t.Errorf("groups %v %v", names, err)
			}
			kept, err := filepath.Glob(filepath.Join(b.dir, "damaged", "*"))
			want := 3
			if strings.HasPrefix(d.name, "missing") || d.name == "a link to nothing" {
				want = 2 // an unrecorded end is no damage
			}
			if err != nil || len(kept) != want {
				t.Errorf("kept %v %v, want %d", kept, err, want)
			}
			b.reopen()
			if e := b.next(cluster.TaskAdopted); e.Task != well.Task {
				t.Errorf("adopted later %+v", e)
			}
		})
	}
}

// An agent that dies while it removes the folder of a container leaves nothing that the next one takes for a damaged
// container.
func TestDeathWhileAFolderIsRemoved(t *testing.T) {
	b := newBench(t)
	o := b.order("true")
	b.run(o)
	b.Close()
	b.Forget(o.Container)
	half, err := filepath.Glob(filepath.Join(b.remover.dir, "*", "spec.json"))
	if err != nil || len(half) != 1 {
		t.Fatalf("to be removed: %v, %v", half, err)
	}
	if err := os.Remove(half[0]); err != nil { // the first of several
		t.Fatal(err)
	}
	b.open()
	b.next(cluster.Synced)
	for _, e := range b.seen {
		if e.Task == o.Task {
			t.Errorf("it is reported again: %+v", e)
		}
	}
	left, err := os.ReadDir(filepath.Join(b.dir, "containers"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "damaged")); err == nil {
		t.Error("it was taken for a damaged container")
	}
}

// A container whose folder is no folder, or whose lock is no file, does no harm to others.
func TestUnreadableFolders(t *testing.T) {
	b := newBench(t)
	var ids []cluster.ContainerID
	for range 2 {
		o := b.order("true")
		b.run(o)
		ids = append(ids, o.Container)
	}
	b.Close()
	first, second := string(b.folder(ids[0])), b.folder(ids[1])
	if err := errors.Join(os.RemoveAll(first), os.WriteFile(first, nil, 0o600), os.Remove(second.path("lock")),
		os.Remove(second.path("exit.json")), os.Mkdir(second.path("lock"), 0o700)); err != nil {
		t.Fatal(err)
	}
	b.open()
	for range 2 {
		if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Lost {
			t.Errorf("ended %+v", e)
		}
	}
}

// A note of the control groups that cannot be read is made anew, and what runs is found.
func TestEmptyNoteOfTheGroups(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			b := newBench(t)
			o := b.order("sleep", "1000")
			b.Apply([]cluster.Order{o})
			b.next(cluster.DecisionDone)
			note := filepath.Join(b.dir, "cgroup")
			before := read(t, note)
			b.Close()
			if err := d.do(note); err != nil {
				t.Fatal(err)
			}
			b.open()
			if e := b.next(cluster.TaskAdopted); e.Task != o.Task {
				t.Errorf("adopted %+v", e)
			}
			if after := read(t, note); after != before {
				t.Errorf("the note says %q, said %q", after, before)
			}
		})
	}
}
