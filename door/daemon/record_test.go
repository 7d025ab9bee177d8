package daemon_test

import (
	"cmp"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/daemon"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/store"
)

var record = flag.String("record", "", "folder into which TestRecord writes the state directory of this release; a temporary one by default")

// recordedIn is where a recorded daemon has its state that is kept: its records contain the path.
const recordedIn = "/tmp/recorded"

// throttling is a policy that also throttles each task of a job named "throttled" once it runs.
type throttling struct{ policy.Policy }

func (p throttling) Decide(now timeline.Time, plan *cluster.Plan) {
	p.Policy.Decide(now, plan)
	for _, j := range plan.Jobs {
		for _, t := range j.Tasks {
			if j.Name == "throttled" && t.Running && t.Throttled == nil {
				plan.Throttle(t, resource.Vector{}.With(resource.Disk, resource.MB), now.Add(time.Hour), cluster.BecauseNodePressure(resource.Disk, resource.MB, 2*resource.MB))
			}
		}
	}
}

// release2 is the configuration with which release 2 was recorded.
func release2(t *testing.T, state string) (c daemon.Config) {
	t.Helper()
	c = config(t, state)
	c.Socket, c.Driver.HasSwap = "", func() (bool, error) { return true, nil }
	p, err := policy.New("prophet", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Driver.Policy, c.Agent.Capacity = throttling{p}, resource.Of(2000, 256*resource.MiB)
	return c
}

// A daemon opens the state directory of release 2 after the machine was restarted. What runs had used and taught is known, and
// what was not learned is learned now. Pauses last: what was paused runs again only when it is resumed.
func TestUpgradeFromRelease2(t *testing.T) {
	d := open(t, release2(t, recorded(t, "release2")))
	ctx, me := t.Context(), cluster.Credentials{UID: uint32(os.Getuid())}
	is := func(id cluster.JobID, want string) live.Job {
		t.Helper()
		j, err := d.Driver.Job(ctx, id, false)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(j.Name, " ", j.Status)
		if j.Paused != nil {
			got += " paused by " + j.Paused.By
		}
		for _, task := range j.Tasks {
			got += fmt.Sprintf(", %d: %s", task.Run, cmp.Or(task.Outcome.String(), task.State.String()))
		}
		if got != want {
			t.Errorf("job %d: %s, want %s", id, got, want)
		}
		return j
	}
	wait := func(id cluster.JobID) {
		t.Helper()
		if _, err := d.Driver.Wait(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	is(1, "sums succeeded, 1: succeeded")
	is(2, "lengths succeeded, 1: succeeded")
	wait(3)
	if j := is(3, "throttled succeeded, 2: succeeded"); len(j.Earlier) != 1 || j.Earlier[0].Outcome != cluster.Lost {
		t.Errorf("before, its task ran as %+v", j.Earlier)
	}
	is(4, "paused running paused by root, 1: lost")
	wait(7)
	if _, err := d.Driver.WaitTask(ctx, cluster.TaskID{Job: 5}, true); err != nil {
		t.Fatal(err)
	}
	is(5, "paused-task running, 2: succeeded, 1: lost")
	is(6, "waits pending paused by root")
	is(7, "gang succeeded, 1: succeeded, 1: succeeded")
	for id, task := range map[cluster.JobID]cluster.TaskID{4: {}, 5: {Job: 5, Index: 1}, 6: {}} {
		if err := d.Driver.Resume(ctx, me, id, task); err != nil {
			t.Error(err)
		}
		wait(id)
	}
	is(4, "paused succeeded, 2: succeeded")
	is(5, "paused-task succeeded, 2: succeeded, 2: succeeded")
	is(6, "waits succeeded, 1: succeeded")
	for name, id := range map[string]cluster.JobID{"sums": 1, "lengths": 2} {
		spans := 0
		if err := d.Store.Usage(ctx, id, func(u store.Usage) error { spans += len(u.Usage.Spans); return nil }); err != nil || spans == 0 {
			t.Errorf("usage of %s: %d spans, %v", name, spans, err)
		}
		var runs int
		for end := time.Now().Add(time.Minute); runs == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if a, err := d.Store.App(ctx, 0, "root", name); err == nil {
				history, _, err := profile.ReadHistory(a.Learned)
				if err != nil {
					t.Fatal(err)
				}
				for _, app := range history.Apps() {
					_, runs = history.Runs(app)
				}
			}
		}
		if runs != 1 {
			t.Errorf("%d runs of %s taught something", runs, name)
		}
	}
	if err := d.Remove(ctx); err != nil {
		t.Error(err)
	}
}

// onceLong is a script whose first run lasts until it is killed.
const onceLong = `[ "$BELLOWS_RUN" != 1 ] || exec sleep 1000`

// TestRecord makes the state directory of release 2, in which jobs run that testdata/README.md lists. A later release is
// recorded in the same way, beside it:
//
//	go test ./daemon -run TestRecord -record testdata/release3
func TestRecord(t *testing.T) {
	state, to := recordedIn, *record
	if to == "" {
		if testing.Short() {
			t.Skip("long: run without -short")
		}
		state, to = filepath.Join(t.TempDir(), "state"), t.TempDir() // Recording works.
	}
	t.Cleanup(func() { _ = errors.Join(os.RemoveAll(state), os.RemoveAll(state+store.Mark)) })
	c := release2(t, state)
	d := open(t, c)
	me := cluster.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), User: "root"}
	job := func(name string, class cluster.Class, script string, stage cluster.Stage) (id cluster.JobID) {
		stage.Ideal[resource.CPU], stage.Args = 100, []string{"sh", "-c", script}
		id, err := d.Driver.Submit(t.Context(), live.Submission{Job: cluster.Job{Name: name, App: name, Class: class, MaxAttempts: 2, Stages: []cluster.Stage{stage}},
			Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Caller: me})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	of := func(tasks int, memory resource.Amount) cluster.Stage {
		return cluster.Stage{Tasks: tasks, Ideal: resource.Of(0, memory*resource.MiB)}
	}
	for _, name := range []string{"sums", "lengths"} {
		if _, err := d.Driver.Wait(t.Context(), job(name, cluster.Regular, "sleep 2", of(1, 16))); err != nil {
			t.Fatal(err)
		}
	}
	phased := of(1, 16)
	phased.Duration = time.Hour
	phased.Phases = []cluster.Phase{{Duration: time.Minute, Demand: resource.Vector{}.With(resource.Disk, 4*resource.MB)}, {Duration: 59 * time.Minute}}
	throttled := job("throttled", cluster.Regular, onceLong, phased)
	paused := job("paused", cluster.Flex, onceLong, of(1, 16))
	byTask := job("paused-task", cluster.Regular, onceLong, of(2, 16))
	waits := job("waits", cluster.Regular, "true", of(1, 200))
	gang := of(2, 100)
	gang.Together = true
	job("gang", cluster.Regular, "true", gang)
	second := cluster.TaskID{Job: byTask, Index: 1}
	until := func(what string, id cluster.JobID, is func(j live.Job) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if j, err := d.Driver.Job(t.Context(), id, false); err != nil || is(j) {
				return
			} else if time.Now().After(end) {
				t.Fatalf("not %s: %+v", what, j)
			}
		}
	}
	for _, id := range []cluster.JobID{throttled, paused, byTask} {
		until("running", id, func(j live.Job) bool {
			return len(j.Tasks) == j.TaskCount && !slices.ContainsFunc(j.Tasks, func(t live.Task) bool { return t.State != live.TaskRunning })
		})
	}
	for id, task := range map[cluster.JobID]cluster.TaskID{paused: {}, waits: {}, byTask: second} {
		if err := d.Driver.Pause(t.Context(), me, id, task, false); err != nil {
			t.Fatal(err)
		}
	}
	until("throttled", throttled, func(j live.Job) bool { return j.Tasks[0].Throttle != nil && j.Tasks[0].Throttle.InForce })
	until("paused", paused, func(j live.Job) bool { return j.Tasks[0].Still != nil })
	until("paused", byTask, func(j live.Job) bool { return j.Tasks[1].Still != nil })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	copyRecorded(t, state, to)
	d = open(t, c)
	remove(t, d)
}

// copyRecorded copies what is kept of a state directory, without the identity of this machine. It makes the run of "lengths"
// one from which nothing was learned.
func copyRecorded(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	boot := strings.TrimSpace(string(text))
	if err := filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		name := strings.TrimPrefix(path, from)
		switch {
		case err != nil || e.Name() == "reserve" || e.Name() == "lock" && filepath.Dir(path) == from:
			return err
		case e.IsDir() && e.Name() == "logs":
			return filepath.SkipDir
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), []byte(strings.ReplaceAll(string(text), boot, "00000000-0000-4000-8000-000000000000")), 0o644)
	}); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(to, "bellows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, change := range []string{`UPDATE jobs SET unlearned = 1 WHERE name = 'lengths'`, `DELETE FROM apps WHERE name = 'lengths'`, `PRAGMA journal_mode = DELETE`, `VACUUM`} {
		if _, err := db.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
}
