package watchdog

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// open opens a watchdog.
func open(t *testing.T, dir string, log io.Writer) (w *Watchdog, left Note, found bool) {
	t.Helper()
	w, left, found, err := Open(dir, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, left, found
}

// A loop that works for long is said to hang until it rests, and where it hangs; for longer, it counts as dead. Waiting
// for the disk is no work.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w, _, _ := open(t, t.TempDir(), &log)
		work, ended := make(chan func()), make(chan struct{})
		go func() {
			w.Begin()
			for f := range work {
				w.Work()
				f()
				w.Rest()
			}
		}()
		go w.Watch(Patience{}, ended)
		work <- func() {
			defer w.Rest()()
			time.Sleep(time.Hour)
		}
		time.Sleep(59 * time.Minute)
		if _, hangs := w.Hangs(); hangs {
			t.Error("a loop that waits for the disk hangs")
		}
		work <- func() {
			w.StepBegins(Note{Job: 7, Admits: true})
			defer w.StepEnds()
			time.Sleep(DefaultDead / 2)
		}
		time.Sleep(DefaultDead / 4)
		if silent, hangs := w.Hangs(); !hangs || silent != DefaultDead/4 || w.Count() != 1 {
			t.Errorf("hangs: %v for %v", hangs, silent)
		}
		time.Sleep(DefaultDead)
		if _, hangs := w.Hangs(); hangs {
			t.Error("it still hangs after its work")
		}
		close(work)
		close(ended)
		synctest.Wait()
		if said := log.String(); !strings.Contains(said, "taking in job 7") || !strings.Contains(said, "TestWatchdog") {
			t.Errorf("the log says %s", said)
		}
	})
}

// The next process finds the step in which the one before hung, or ended several times in a row.
func TestNote(t *testing.T) {
	dir := t.TempDir()
	if _, _, found := open(t, dir, io.Discard); found {
		t.Error("there is a note at first")
	}
	step := Note{Job: 3}
	w, _, _ := open(t, dir, io.Discard)
	for deaths := 1; deaths <= MostDeaths; deaths++ {
		w.StepBegins(step)
		var left Note
		var found bool
		w, left, found = open(t, dir, io.Discard)
		if want := (Note{Job: 3, Deaths: deaths, Hangs: deaths == MostDeaths}); !found || left != want {
			t.Errorf("after %d deaths the note is %+v, want %+v", deaths, left, want)
		}
	}
	w.StepEnds()
	w, _, found := open(t, dir, io.Discard)
	if found {
		t.Error("a step that has ended left a note")
	}
	w.StepBegins(step)
	w.mark()
	if _, left, _ := open(t, dir, io.Discard); !left.Hangs || left.Job != 3 {
		t.Errorf("after a hang the note is %+v", left)
	}
}
