package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
)

// TestCloseWaits closes an agent while it waits for the first word of a supervisor, which never comes, and while a
// program runs: once it is closed nothing of it is at work.
func TestCloseWaits(t *testing.T) {
	b := newBench(t)
	runs := b.order("sleep", "1000")
	b.Apply([]cluster.Order{runs})
	b.next(cluster.DecisionDone)
	pid := filepath.Join(t.TempDir(), "pid")
	b.crew.program = script(t, "echo $$ > "+pid+"\nkill -STOP $$")
	o := b.order("true")
	b.Apply([]cluster.Order{o})
	var supervisor int
	await(t, "a supervisor that says nothing", func() bool {
		text, err := os.ReadFile(pid)
		if err == nil {
			supervisor, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	})
	b.Close()
	if n := len(b.starting); n != 0 {
		t.Errorf("%d containers are still being started", n)
	}
	b.Apply([]cluster.Order{b.order("true")}) // The closed agent does not handle it.
	b.work.all.Wait()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	await(t, "the end of the supervisor", func() bool { return !held(b.folder(o.Container)) })
	// The next one finds what runs, and that the other never began.
	b.open()
	if e := b.next(cluster.TaskAdopted); e.Task != runs.Task {
		t.Errorf("found %+v", e)
	}
	if e := b.next(cluster.DecisionFailed); e.Task != o.Task {
		t.Errorf("failed %+v", e)
	}
}
