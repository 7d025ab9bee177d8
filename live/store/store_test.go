package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// TestMain lets this test program be one that writes until it is killed.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "write-until-killed" {
		writeUntilKilled(os.Args[2])
	}
	if len(os.Args) == 4 && os.Args[1] == "migrate-until-killed" {
		step, err := strconv.Atoi(os.Args[3])
		if err != nil {
			panic(err)
		}
		migrateUntilKilled(os.Args[2], step)
	}
	os.Exit(m.Run())
}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func sample(name string) Job {
	return Job{
		Submitted: 1234,
		Request: Request{
			Job: cluster.Job{Name: name, Owner: "ada", MaxAttempts: 2,
				Stages: []cluster.Stage{{Name: "sort", Tasks: 3, Ideal: resource.Of(1000, resource.GiB), MinMemory: resource.MiB,
					Duration: time.Second, Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 1.5},
					Command: cluster.Command{Args: []string{"sort", "{memory}"}, Env: map[string]string{"A": "b"}}}}},
			As:  cluster.Credentials{UID: 7, GID: 8, Groups: []uint32{9}, User: "ada"},
			Env: []string{"PATH=/bin"}, Dir: "/work",
		},
		State: JobState{Status: cluster.StatusPending},
	}
}

func TestJobsAndTasks(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := sample("one")
	if want.ID, err = s.AddJob(ctx, want); err != nil || want.ID != 1 {
		t.Fatal(want.ID, err)
	}
	want.Request.Job.ID, want.Request.Job.Submitted = 1, 1234
	if id, err := s.AddJob(ctx, sample("two")); err != nil || id != 2 {
		t.Fatal(id, err)
	}
	code := 137
	want.State = JobState{Status: cluster.StatusFailed, Ended: true, Cancelled: true, Started: 1, Finished: 2,
		ExitCode: &code, Detail: "why", Succeeded: 2}
	tasks := []Task{
		{Container: cluster.ContainerID{Task: cluster.TaskID{Job: 1, Index: 0}, Run: 1}, UID: 7, Node: "n",
			Grant: resource.Of(1, 2), Why: "fits", Booked: 3, Started: 4, Ended: 5, Outcome: cluster.OutOfMemory,
			Exit: &cluster.Exit{Code: 137, Signal: 9, Peak: 77, OOMKills: 1}, Detail: "d",
			Throttle: &Throttle{Bound: resource.Vector{0, 0, 5, 6}, Until: 7, Why: "w", How: "h", InForce: true, Failed: "f"},
			Progress: &cluster.Progress{Phase: 1, PhaseSince: 2, SuspendedBy: cluster.HeldByMemory, SuspendedSince: 3,
				SuspendedFor: 4, Since: 5, Ends: 6}},
		{Container: cluster.ContainerID{Task: cluster.TaskID{Job: 1, Index: 0}, Run: 2}, UID: 7, Node: "n",
			Grant: resource.Of(1, 2), Booked: 6},
	}
	if err := s.Write(ctx, Batch{Jobs: map[cluster.JobID]JobState{1: want.State}, Tasks: tasks}); err != nil {
		t.Fatal(err)
	}
	tasks[1].Started = 9
	if err := s.Write(ctx, Batch{Tasks: tasks[1:]}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	want.Request.Env, want.Bytes = nil, 0
	got, err := s.Job(ctx, 1)
	got.Bytes = 0
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("job %+v\nwant %+v\n%v", got, want, err)
	}
	if got, err := s.Tasks(ctx, 1); err != nil || !reflect.DeepEqual(got, tasks) {
		t.Errorf("tasks %+v\nwant %+v\n%v", got, tasks, err)
	}
	if jobs, err := s.OpenJobs(ctx); err != nil || len(jobs) != 1 || jobs[0].ID != 2 {
		t.Errorf("open jobs %+v %v", jobs, err)
	}
	listed := Listed{ID: 1, UID: 7, User: "ada", Name: "one", Submitted: 1234, State: want.State, Tasks: 3}
	if jobs, err := s.List(ctx, 0, 1); err != nil || !reflect.DeepEqual(jobs, []Listed{listed}) {
		t.Errorf("jobs %+v %v", jobs, err)
	}
	if jobs, err := s.List(ctx, 1, 9); err != nil || len(jobs) != 1 || jobs[0].ID != 2 || jobs[0].State.Ended {
		t.Errorf("jobs after the first %+v %v", jobs, err)
	}
	if _, err := s.Job(ctx, 3); !errors.Is(err, ErrNotFound) || err.Error() != "job 3: not found" {
		t.Errorf("job 3: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, File)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
}

// Every table says from the first version on to whom a row belongs.
func TestEveryTableHasAnOwner(t *testing.T) {
	s := open(t, t.TempDir())
	for _, table := range []string{"jobs", "tasks", "apps", "runs", "removed", "tokens", "keys", "environments"} {
		var n int
		err := s.db.QueryRow("SELECT count(*) FROM pragma_table_info(?) WHERE name = 'owner_uid'", table).Scan(&n)
		if err != nil || n != 1 {
			t.Errorf("table %s: %d %v", table, n, err)
		}
	}
}

func TestProfiles(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	p := Profile{UID: 7, User: "ada", Name: "sort", Made: 5,
		Measured: api.Measured{IdealMemory: 10, MinMemory: 1, Duration: time.Second,
			Elasticity: cluster.Elasticity{Kind: cluster.Points, Points: []cluster.ElasticityPoint{{Memory: 1, Slowdown: 2},
				{Memory: 10, Slowdown: 1}}},
			Args: []string{"sort"}, Evidence: json.RawMessage(`{"a":1}`)}}
	other := p
	other.UID, other.IdealMemory = 8, 20
	for _, p := range []Profile{p, other, p} {
		if err := s.PutProfile(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Profile(ctx, 7, "ada", "sort"); err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("profile %+v %v", got, err)
	}
	if got, err := s.Profiles(ctx, 8, "ada"); err != nil || len(got) != 1 || got[0].IdealMemory != 20 {
		t.Errorf("profiles %+v %v", got, err)
	}
	if _, err := s.Profile(ctx, 9, "ada", "sort"); !errors.Is(err, ErrNotFound) {
		t.Errorf("profile of somebody else: %v", err)
	}
	p.Elasticity.Points[0].Slowdown = 0
	if err := s.PutProfile(ctx, p); err == nil {
		t.Error("a profile that makes no sense was stored")
	}
}

// What runs taught and what was measured are one thing per owner and name: neither replaces the other, and both go at
// once.
func TestApps(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	p := Profile{UID: 7, User: "ada", Name: "sort", Made: 5,
		Measured: api.Measured{IdealMemory: 10, MinMemory: 1, Duration: time.Second,
			Args: []string{"sort"}}}
	learned := App{UID: 7, User: "ada", Name: "sort", Learned: json.RawMessage(`{"version":1}`), LearnedAt: 9}
	for range 2 {
		for _, a := range []App{learned, {UID: 7, User: "ada", Name: "wc", Learned: json.RawMessage("broken"),
			LearnedAt: 8}} {
			if err := s.PutLearned(ctx, a, Lessons{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.PutProfile(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	want := learned
	want.Profile = &p
	if got, err := s.App(ctx, 7, "ada", "sort"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("application %+v %v", got, err)
	}
	if got, err := s.Apps(ctx, 7, "ada"); err != nil || len(got) != 2 || string(got[1].Learned) != "broken" ||
		got[1].Profile != nil {
		t.Errorf("applications %+v %v", got, err)
	}
	if got, err := s.Unreadable(ctx); err != nil || len(got) != 1 || got[0].Name != "wc" {
		t.Errorf("unreadable %+v %v", got, err)
	}
	if got, err := s.Profiles(ctx, 7, "ada"); err != nil || len(got) != 1 {
		t.Errorf("profiles %+v %v", got, err)
	}
	if _, err := s.Profile(ctx, 7, "ada", "wc"); !errors.Is(err, ErrNotFound) {
		t.Errorf("profile of what was never measured: %v", err)
	}
	if err := s.Forget(ctx, 8, "ada", "sort"); !errors.Is(err, ErrNotFound) {
		t.Errorf("forgotten by another user: %v", err)
	}
	if err := s.Forget(ctx, 7, "ada", "sort"); err != nil {
		t.Error(err)
	}
	if _, err := s.App(ctx, 7, "ada", "sort"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after it was forgotten: %v", err)
	}
}

// Each owner keeps what was learned of the applications that ran last; profiles stay.
func TestForgetOldest(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	for uid := uint32(7); uid < 9; uid++ {
		for i := range 5 {
			if err := s.PutLearned(ctx, App{UID: uid, User: "ada", Name: fmt.Sprint("app", i), Learned: []byte("{}"),
				LearnedAt: timeline.Time(100 - i)}, Lessons{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := Profile{UID: 7, User: "ada", Name: "app4", Made: 5,
		Measured: api.Measured{IdealMemory: 10, MinMemory: 1, Duration: time.Second,
			Args: []string{"sort"}}}
	if err := s.PutProfile(ctx, p); err != nil {
		t.Fatal(err)
	}
	if n, err := s.ForgetOldest(ctx, 2); n != 5 || err != nil {
		t.Errorf("%d are forgotten, %v", n, err)
	}
	for uid, want := range map[uint32]string{7: "[app0 app1 app4]", 8: "[app0 app1]"} {
		apps, err := s.Apps(ctx, uid, "ada")
		var names []string
		for _, a := range apps {
			names = append(names, a.Name)
		}
		if err != nil || fmt.Sprint(names) != want {
			t.Errorf("of %d, %v stay, %v; want %s", uid, names, err, want)
		}
	}
}

// What was stored for a user is not that of another user who has got the same uid since, and who replaces it.
func TestAppsOfANewUser(t *testing.T) {
	ctx := t.Context()
	for _, measured := range []bool{false, true} {
		s := open(t, t.TempDir())
		put := func(user string, measured bool) {
			t.Helper()
			var err error
			if measured {
				err = s.PutProfile(ctx, Profile{UID: 7, User: user, Name: "sort",
					Measured: api.Measured{IdealMemory: 10, MinMemory: 1}})
			} else {
				err = s.PutLearned(ctx, App{UID: 7, User: user, Name: "sort", Learned: json.RawMessage("{}"), LearnedAt: 9},
					Lessons{})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		put("ada", true)
		put("ada", false)
		if a, err := s.App(ctx, 7, "eve", "sort"); !errors.Is(err, ErrNotFound) {
			t.Errorf("eve has %+v, %v", a, err)
		}
		if all, err := s.Apps(ctx, 7, ""); err != nil || len(all) != 0 {
			t.Errorf("a user without a name has %+v, %v", all, err)
		}
		if err := s.Forget(ctx, 7, "eve", "sort"); !errors.Is(err, ErrNotFound) {
			t.Errorf("eve forgot what is ada's: %v", err)
		}
		put("eve", measured)
		if a, err := s.App(ctx, 7, "ada", "sort"); !errors.Is(err, ErrNotFound) {
			t.Errorf("ada has %+v, %v", a, err)
		}
		if a, err := s.App(ctx, 7, "eve", "sort"); err != nil || (a.Profile != nil) != measured ||
			(a.Learned != nil) == measured {
			t.Errorf("eve has %+v, %v", a, err)
		}
	}
}

// A profile that cannot be read hides neither what the runs of its application taught nor the profiles of others.
func TestUnreadableProfile(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	for _, name := range []string{"sort", "wc"} {
		if err := s.PutProfile(ctx, Profile{UID: 7, Name: name,
			Measured: api.Measured{IdealMemory: 10, MinMemory: 1}}); err != nil {
			t.Fatal(err)
		}
		if err := s.PutLearned(ctx, App{UID: 7, Name: name, Learned: json.RawMessage("{}")}, Lessons{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.db.Exec(`UPDATE apps SET measured = '{broken' WHERE name = 'sort'`); err != nil {
		t.Fatal(err)
	}
	apps, err := s.Apps(ctx, 7, "")
	if err != nil || len(apps) != 2 || apps[0].Profile != nil || apps[0].Unreadable == nil ||
		string(apps[0].Learned) != "{}" || apps[1].Profile == nil || apps[1].Unreadable != nil {
		t.Errorf("applications %+v %v", apps, err)
	}
	if _, err := s.Profile(ctx, 7, "", "sort"); err == nil || errors.Is(err, ErrNotFound) ||
		!strings.Contains(err.Error(), `profile "sort" cannot be read`) {
		t.Errorf("profile: %v", err)
	}
	if got, err := s.Profiles(ctx, 7, ""); err != nil || len(got) != 1 {
		t.Errorf("profiles %+v %v", got, err)
	}
}

// A job is to be learned from once: from its end until that is stored together with what it taught.
func TestUnlearned(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	var ids []cluster.JobID
	for range 4 {
		id, err := s.AddJob(ctx, sample("a"))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	end := func(id cluster.JobID, at timeline.Time) {
		t.Helper()
		if err := s.Write(ctx,
			Batch{Jobs: map[cluster.JobID]JobState{id: {Status: cluster.StatusSucceeded, Ended: at > 0,
				Finished: at}}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...cluster.JobID) {
		t.Helper()
		if got, err := s.Unlearned(ctx); err != nil || !slices.Equal(got, want) {
			t.Errorf("to be learned from: %v %v, want %v", got, err, want)
		}
	}
	end(ids[0], 0)
	check()
	end(ids[2], 5)
	end(ids[0], 7)
	end(ids[1], 7)
	check(ids[2], ids[0], ids[1])
	if err := s.PutLearned(ctx, App{UID: 7, Name: "a", Learned: json.RawMessage("{}")},
		Lessons{Jobs: []cluster.JobID{ids[2], ids[1]}}); err != nil {
		t.Fatal(err)
	}
	check(ids[0])
	end(ids[2], 8) // its end is stored again
	check(ids[0])
	if err := s.TaughtNothing(ctx, Lessons{Jobs: []cluster.JobID{ids[0]}}); err != nil {
		t.Fatal(err)
	}
	check()
}

// A run that ended for want of memory is to be learned from at once, and once: until its job has ended for itself, and
// then with the other runs of the job. What is stored meanwhile is not lost.
func TestFellShort(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	id, err := s.AddJob(ctx, sample("a"))
	if err != nil {
		t.Fatal(err)
	}
	short := func(index int32, outcome cluster.Outcome, held resource.Amount) cluster.ContainerID {
		t.Helper()
		c := cluster.ContainerID{Task: cluster.TaskID{Job: id, Index: index}, Run: 1}
		if err := s.Write(ctx, Batch{Tasks: []Task{{Container: c, Node: "n", Outcome: outcome,
			Ended: timeline.Time(10 - index), Exit: &cluster.Exit{Code: 137, Held: held}}}}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	check := func(open, ended []cluster.JobID, runs ...cluster.ContainerID) {
		t.Helper()
		if got, err := s.FellShort(ctx); err != nil || !slices.Equal(got, open) {
			t.Errorf("jobs that fell short: %v %v, want %v", got, err, open)
		}
		if got, err := s.Unlearned(ctx); err != nil || !slices.Equal(got, ended) {
			t.Errorf("jobs to be learned from: %v %v, want %v", got, err, ended)
		}
		tasks, err := s.Short(ctx, id)
		var got []cluster.ContainerID
		for i := range tasks {
			got = append(got, tasks[i].Container)
		}
		if err != nil || !slices.Equal(got, runs) {
			t.Errorf("runs that fell short: %v %v, want %v", got, err, runs)
		}
	}
	learn := func(from Lessons) {
		t.Helper()
		if err := s.PutLearned(ctx, App{UID: 7, Name: "a", Learned: json.RawMessage("{}")}, from); err != nil {
			t.Fatal(err)
		}
	}
	short(0, cluster.Failed, resource.GiB)
	short(1, cluster.OutOfMemory, 0) // it is not known how much it held
	check(nil, nil)
	only := []cluster.JobID{id}
	first := short(2, cluster.OutOfMemory, resource.GiB)
	check(only, nil, first)
	second := short(3, cluster.OutOfMemory, 2*resource.GiB)
	check(only, nil, second, first)
	learn(Lessons{Short: []cluster.ContainerID{first}})
	check(only, nil, second)
	learn(Lessons{Short: []cluster.ContainerID{second}})
	check(nil, nil)
	third := short(4, cluster.OutOfMemory, 3*resource.GiB)
	if err := s.Write(ctx, Batch{Jobs: map[cluster.JobID]JobState{id: {Status: cluster.StatusFailed,
		Ended: true}}}); err != nil {
		t.Fatal(err)
	}
	check(nil, only, third)
	learn(Lessons{Short: []cluster.ContainerID{third}}) // by who read it before it ended
	check(nil, only)
	learn(Lessons{Jobs: only})
	check(nil, nil)
	if tasks, err := s.Tasks(ctx, id); err != nil || tasks[2].Exit.Held != resource.GiB || !tasks[2].Taught {
		t.Errorf("%+v %v", tasks, err)
	}
}

// A statement is parsed once, before a later transaction: its second use leaves none to be parsed, and no result
// differs.
func TestStatementsAreParsedOnce(t *testing.T) {
	s, ctx := open(t, t.TempDir()), t.Context()
	for want := range cluster.JobID(3) {
		if id, err := s.AddJob(ctx, sample("job")); err != nil || id != want+1 {
			t.Fatalf("job %d, %v; want %d", id, err, want+1)
		}
	}
	if len(s.changes) == 0 {
		t.Error("no statement was parsed")
	}
	for text, parsed := range s.changes {
		if parsed == nil {
			t.Errorf("parsed each time: %s", text)
		}
	}
}

func TestRuns(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	want := Run{UID: 7, User: "ada", Policy: "fifo", Settings: map[string]string{"a": "b"}, Started: 5}
	id, err := s.AddRun(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EndRun(ctx, id, 9); err != nil {
		t.Fatal(err)
	}
	want.ID, want.Ended = id, 9
	if got, err := s.Runs(ctx); err != nil || !reflect.DeepEqual(got, []Run{want}) {
		t.Errorf("runs %+v %v", got, err)
	}
}

// Who reads does not hold up who writes, and sees nothing half written.
func TestReadingBesideWriting(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	for range 3 {
		if _, err := s.AddJob(ctx, sample("before")); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	err := s.read(ctx, "SELECT id FROM jobs ORDER BY id", nil, func(func(...any) error) error {
		seen++
		within, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := s.AddJob(within, sample("meanwhile"))
		return err
	})
	if err != nil || seen != 3 {
		t.Errorf("%d jobs were read: %v", seen, err)
	}
	if jobs, err := s.List(ctx, 0, 10); err != nil || len(jobs) != 6 {
		t.Errorf("%d jobs afterwards: %v", len(jobs), err)
	}
}

func TestNoStoreAtAll(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not a database") {
		t.Errorf("opened with %v", err)
	}
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l, err := TakeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = TakeLock(dir)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("(process %d)", os.Getpid())) {
		t.Errorf("taken twice: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if l, err = TakeLock(dir); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// A lock whose holder is closing is waited for; nothing but the lock itself says that a daemon has it.
func TestLockOfAClosingDaemon(t *testing.T) {
	dir := t.TempDir()
	l, err := TakeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if process, held, closes := LockHolder(dir); !held || closes || process != fmt.Sprint(os.Getpid()) {
		t.Errorf("before it is closing: held is %v, closing %v, process %s", held, closes, process)
	}
	l.Closing()
	if process, _, closes := LockHolder(dir); !closes || process != fmt.Sprint(os.Getpid()) {
		t.Errorf("closing is %v, process %s", closes, process)
	}
	time.AfterFunc(lockWait+200*time.Millisecond, func() { _ = l.Release() })
	next, err := TakeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	next.Closing()
	if err := next.Release(); err != nil {
		t.Fatal(err)
	}
	if _, held, closes := LockHolder(dir); held || closes {
		t.Error("the lock is released")
	}
}

// mount mounts a small file system in memory for one test.
func mount(t *testing.T, dir, options string, flags uintptr) {
	t.Helper()
	if err := unix.Mount("bellows-test", dir, "tmpfs", flags, "mode=0700,"+options); err != nil {
		t.Skipf("needs to mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// On a full disk a write says so in one sentence and changes nothing; once there is room, the same write succeeds.
func TestFullDisk(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	mount(t, dir, "size=1m", 0)
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() // Before the file system goes.
	id, err := s.AddJob(ctx, sample("before"))
	if err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	big := sample(strings.Repeat("x", 20_000))
	_, err = s.AddJob(ctx, big)
	if want := "add a job to the store " + filepath.Join(dir, File) +
		": its disk is full: free some space"; err == nil || err.Error() != want || !errors.Is(err, ErrFull) {
		t.Errorf("error %v, want %s", err, want)
	}
	write := Batch{Jobs: map[cluster.JobID]JobState{id: {Status: cluster.StatusFailed,
		Detail: strings.Repeat("y", 20_000)}}}
	if err := s.Write(ctx, write); !errors.Is(err, ErrFull) {
		t.Errorf("write: %v", err)
	}
	if j, err := s.Job(ctx, id); err != nil || j.State.Status != cluster.StatusPending {
		t.Errorf("job %+v %v", j.State, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(ctx, write); err != nil {
		t.Error(err)
	}
	if j, err := s.Job(ctx, id); err != nil || j.State.Status != cluster.StatusFailed {
		t.Errorf("job %+v %v", j.State, err)
	}
	if id, err := s.AddJob(ctx, big); err != nil || id != 2 {
		t.Errorf("job %d %v", id, err)
	}
}

func TestFullDiskFromTheBeginning(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, "size=64k", 0)
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrFull) {
		t.Errorf("opened with %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, "size=1m", 0)
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddJob(t.Context(), sample("before")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	if want := "open the store " + filepath.Join(dir, File) +
		": it is read-only: make it writable, or choose another state directory"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := TakeLock(dir); !errors.Is(err, ErrReadOnly) {
		t.Errorf("lock: %v", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if jobs, err := s.OpenJobs(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("jobs %+v %v", jobs, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// writeUntilKilled prints the number of each job once it is stored, and then of each of its tasks.
func writeUntilKilled(dir string) {
	ctx := context.Background()
	s, err := Open(dir)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for {
		id, err := s.AddJob(ctx, sample("one"))
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("job", id)
		b := Batch{Jobs: map[cluster.JobID]JobState{id: {Status: cluster.StatusRunning, Started: timeline.Time(id)}}}
		for run := 1; run <= 5; run++ {
			b.Tasks = append(b.Tasks, Task{Container: cluster.ContainerID{Task: cluster.TaskID{Job: id}, Run: run}, Node: "n"})
		}
		if err := s.Write(ctx, b); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("tasks", id)
	}
}

// What was reported as stored is there after a kill -9 at any moment, and a batch is there whole or not at all.
func TestKilledWhileWriting(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	reported := map[string]map[cluster.JobID]bool{"job": {}, "tasks": {}}
	for round := range 10 {
		command := exec.Command(self, "write-until-killed", dir)
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for left := 1 + random.IntN(40); lines.Scan(); left-- {
			var what string
			var id cluster.JobID
			if _, err := fmt.Sscan(lines.Text(), &what, &id); err != nil {
				t.Fatalf("the writer says %s", lines.Text())
			}
			reported[what][id] = true
			if left == 0 {
				time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, func() { _ = command.Process.Kill() })
			}
		}
		_ = command.Wait()
		check(t, dir, round, reported)
	}
}

func check(t *testing.T, dir string, round int, reported map[string]map[cluster.JobID]bool) {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	defer s.Close()
	jobs, err := s.OpenJobs(t.Context())
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	stored := map[cluster.JobID]bool{}
	for _, j := range jobs {
		stored[j.ID] = true
		tasks, err := s.Tasks(t.Context(), j.ID)
		whole := len(tasks) == 5 && j.State.Status == cluster.StatusRunning
		none := len(tasks) == 0 && j.State.Status == cluster.StatusPending
		if err != nil || !whole && (!none || reported["tasks"][j.ID]) {
			t.Fatalf("round %d: job %d has %d tasks and is %s: %v", round, j.ID, len(tasks), j.State.Status, err)
		}
	}
	for id := range reported["job"] {
		if !stored[id] {
			t.Fatalf("round %d: job %d was reported as stored, and is not", round, id)
		}
	}
	var result string
	if err := s.db.QueryRow("PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Fatalf("round %d: %s %v", round, result, err)
	}
}

// The environment of a job is gone from all files once the job has ended, and stays for one that has not.
func TestSecretsAreForgotten(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"of-one-that-ended", "of-one-that-runs"} {
		j := sample("job")
		j.Request.Env = []string{"PATH=/bin", "TOKEN=" + secret}
		id, err := s.AddJob(ctx, j)
		if err != nil {
			t.Fatal(err)
		}
		state := JobState{Status: cluster.StatusRunning}
		if secret == "of-one-that-ended" {
			state = JobState{Status: cluster.StatusSucceeded, Ended: true}
		}
		if err := s.Write(ctx, Batch{Jobs: map[cluster.JobID]JobState{id: state}}); err != nil {
			t.Fatal(err)
		}
		stored, err := s.Job(ctx, id)
		if env, e := s.Environment(ctx, id); e != nil || (env == nil) != state.Ended {
			t.Errorf("job %d has the environment %v, %v", id, env, e)
		}
		if err != nil || stored.Request.Dir != j.Request.Dir || !stored.Request.Job.HasCommands() {
			t.Errorf("%+v, %v", stored.Request, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var all []byte
	if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all = append(all, text...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(all, []byte("of-one-that-ended")) {
		t.Error("the environment of a job that has ended is still in a file")
	}
	if !bytes.Contains(all, []byte("of-one-that-runs")) {
		t.Error("the environment of a job that runs is in no file")
	}
}

// Jobs that are stored together have their environment once, and it goes with the end of the last of them.
func TestSharedEnvironment(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := open(t, dir)
	one, two := sample("one"), sample("two")
	one.Request.Env, two.Request.Env = []string{"SECRET=shared"}, []string{"SECRET=shared"}
	first, _, err := s.AddJobs(ctx, []Job{one, two}, nil)
	if err != nil {
		t.Fatal(err)
	}
	two.Request.Env = []string{"SECRET=other"}
	other, _, err := s.AddJobs(ctx, []Job{one, two}, nil)
	if err != nil {
		t.Fatal(err)
	}
	count := func(query string) (n int) {
		t.Helper()
		if err := s.db.QueryRow(query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count("SELECT count(*) FROM environments"); n != 1 {
		t.Errorf("%d environments are shared", n)
	}
	if n := count("SELECT count(*) FROM jobs WHERE request LIKE '%SECRET%'"); n != 2 {
		t.Errorf("%d requests have their environment", n)
	}
	jobs, err := s.OpenJobs(ctx)
	if err != nil || len(jobs) != 4 {
		t.Fatal(jobs, err)
	}
	env := func(id cluster.JobID) []string {
		t.Helper()
		env, err := s.Environment(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
	for i, want := range []string{"SECRET=shared", "SECRET=shared", "SECRET=shared", "SECRET=other"} {
		if got := env(jobs[i].ID); len(got) != 1 || got[0] != want || jobs[i].Request.Env != nil {
			t.Errorf("job %d has %v, and %v was read with its request", jobs[i].ID, got, jobs[i].Request.Env)
		}
	}
	// A revised request has it once, too.
	if err := s.Write(ctx,
		Batch{Revised: map[cluster.JobID]cluster.Job{first: jobs[0].Request.Job, other: jobs[2].Request.Job}}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []cluster.JobID{first, other} {
		if got := env(id); len(got) != 1 {
			t.Errorf("job %d: %v", id, got)
		}
	}
	if n := count("SELECT count(*) FROM jobs WHERE request LIKE '%SECRET%'"); n != 2 {
		t.Errorf("%d requests have their environment after a revision", n)
	}
	for left, id := range []cluster.JobID{first + 1, first} {
		if n := count("SELECT count(*) FROM environments"); n != 1 {
			t.Errorf("%d environments are there while %d jobs of it have ended", n, left)
		}
		if err := s.Write(ctx,
			Batch{Jobs: map[cluster.JobID]JobState{id: {Status: cluster.StatusSucceeded, Ended: true}}}); err != nil {
			t.Fatal(err)
		}
		if got := env(id); got != nil {
			t.Errorf("job %d has ended, and has %v", id, got)
		}
	}
	if n := count("SELECT count(*) FROM environments"); n != 0 {
		t.Errorf("%d environments are left", n)
	}
}
