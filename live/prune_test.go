package live

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/output"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/segments"
	"github.com/bellows-rm/bellows/live/store"
)

// runOne runs a job of one task to its end; the task prints the given number of bytes.
func (r *rig) runOne(bytes int) cluster.JobID {
	r.t.Helper()
	id := r.submit(submission(1))
	o := r.order(cluster.Start)
	r.fake.launched(o)
	if err := os.MkdirAll(filepath.Dir(o.Launch.Stdout), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(o.Launch.Stdout, make([]byte, bytes), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.fake.ended(o.Container, cluster.Succeeded, 0)
	r.wait(id)
	return id
}

// kept returns the existing jobs, after checking that exactly these jobs have files.
func (r *rig) kept() string {
	r.t.Helper()
	var ids []cluster.JobID
	for _, j := range r.all(1000) {
		ids = append(ids, j.ID)
	}
	folders, err := filepath.Glob(filepath.Join(r.dir, "logs", "*"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range folders {
		if !slices.ContainsFunc(ids, func(id cluster.JobID) bool { return fmt.Sprint(id) == filepath.Base(f) }) {
			r.t.Errorf("output of job %s is left of jobs %v", filepath.Base(f), ids)
		}
	}
	return cluster.JobRanges(ids)
}

// The newest jobs stay, and so do waiting and running jobs; with dry nothing is removed; a request for a removed job
// reports that it was removed.
func TestPruneKeepsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		for range 3 {
			r.runOne(100)
			time.Sleep(time.Hour)
		}
		r.submit(submission(3)) // job 4: two tasks run, one waits
		running := []cluster.Order{r.order(cluster.Start), r.order(cluster.Start)}
		for _, o := range running {
			r.fake.launched(o)
		}
		time.Sleep(time.Hour)
		// Jobs 1, 2, 3 ended 4, 3, 2 hours ago.
		for _, c := range []struct {
			keep retention.Rule
			dry  bool
			goes string
			left string
		}{
			{retention.Rule{For: 5 * time.Hour}, false, "", "1-4"},
			{retention.Rule{For: 0}, true, "1-3", "1-4"},
			{retention.Rule{For: 0, Newest: 3}, false, "", "1-4"},
			{retention.Rule{For: 5 * time.Hour, Jobs: 2}, true, "1", "1-4"},
			{retention.Rule{For: 5 * time.Hour, Output: 250}, true, "1", "1-4"},
			{retention.Rule{For: 210 * time.Minute}, false, "1", "2-4"},
			{retention.Rule{For: 0, Newest: 1}, false, "2", "3-4"},
			{retention.Rule{For: 0}, false, "3", "4"},
		} {
			pruned, err := r.Prune(t.Context(), c.keep, c.dry)
			if got := cluster.JobRanges(pruned.Jobs); err != nil || got != c.goes ||
				pruned.OutputBytes != int64(100*len(pruned.Jobs)) {
				t.Errorf("%+v: jobs %q with %d bytes went, want %q: %v", c.keep, got, pruned.OutputBytes, c.goes, err)
			}
			if got := r.kept(); got != c.left {
				t.Errorf("%+v: jobs %s are left, want %s", c.keep, got, c.left)
			}
		}
		if _, err := r.Job(t.Context(), 1, false); api.KindOf(err) != api.NotFound ||
			!strings.Contains(err.Error(), "was removed after its end") {
			t.Errorf("job 1: %v", err)
		}
		if _, err := r.Job(t.Context(), 5, false); api.KindOf(err) != api.NotFound ||
			!strings.Contains(err.Error(), "does not exist") {
			t.Errorf("job 5: %v", err)
		}
		if _, err := r.Logs(t.Context(), 2); api.KindOf(err) != api.NotFound {
			t.Errorf("logs of job 2: %v", err)
		}
		// No number is reused, and a job that has just ended stays.
		for _, o := range running {
			r.fake.ended(o.Container, cluster.Succeeded, 0)
		}
		r.fake.ended(r.order(cluster.Start).Container, cluster.Failed, 1)
		r.wait(4)
		if id := r.runOne(1); id != 5 {
			t.Errorf("job %d, want 5", id)
		}
		if pruned, err := r.Prune(t.Context(), retention.Rule{}, false); err != nil || len(pruned.Jobs) > 0 {
			t.Errorf("jobs %v went at once: %v", pruned.Jobs, err)
		}
	})
}

// The rule allows the removal of every chosen job, and requires that all others stay.
func TestRetentionChooses(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		keep := retention.Rule{For: time.Duration(random.IntN(5)) * time.Minute, Jobs: random.IntN(6), Newest: random.IntN(4),
			UserJobs: random.IntN(4)}
		if random.IntN(2) == 0 {
			keep.Output = 1 + 100
		}
		if random.IntN(2) == 0 {
			keep.UserOutput = 1 + 50
		}
		now := timeline.Time(time.Hour)
		var ended []store.Ended
		at := now
		for id := range cluster.JobID(random.IntN(12)) {
			at -= timeline.Time(random.IntN(90)) * timeline.Time(time.Second)
			ended = append(ended, store.Ended{ID: 100 - id, UID: uint32(random.IntN(3)), At: at})
		}
		size := func(id cluster.JobID) int64 { return int64(id%4) * 15 }
		got := keep.Choose(ended, now, size)
		// Of each user, the newest jobs are within the limits of users.
		var within []store.Ended
		for i, j := range ended {
			jobs, bytes := historyOf(ended[:i+1], j.UID, size)
			if (keep.UserJobs == 0 || jobs <= keep.UserJobs) && (keep.UserOutput == 0 || bytes <= int64(keep.UserOutput)) {
				within = append(within, j)
			}
		}
		few := shrunk(within, func(left []store.Ended, uid uint32) (int64, bool) {
			jobs, _ := historyOf(left, uid, size)
			return int64(jobs), keep.Jobs == 0 || len(left) <= keep.Jobs
		})
		small := shrunk(within, func(left []store.Ended, uid uint32) (int64, bool) {
			_, bytes := historyOf(left, uid, size)
			var sum int64
			for _, j := range left {
				sum += size(j.ID)
			}
			return bytes, keep.Output == 0 || sum <= int64(keep.Output)
		})
		var want []cluster.JobID
		var bytes int64
		for i, j := range ended {
			stays := now.Sub(j.At) < keep.For && slices.Contains(few, j) && slices.Contains(small, j)
			if !stays && i+1 > keep.Newest && now.Sub(j.At) >= 10*time.Second {
				want = append([]cluster.JobID{j.ID}, want...)
				bytes += size(j.ID)
			}
		}
		if !slices.Equal(want, got.Jobs) || got.OutputBytes != bytes {
			t.Fatalf("seed %d: of %v at %v, %+v chose %v, want %v", seed, ended, now, keep, got, want)
		}
	}
}

// historyOf returns how many jobs, and how much output, a user has.
func historyOf(jobs []store.Ended, uid uint32, size func(cluster.JobID) int64) (n int, bytes int64) {
	for _, j := range jobs {
		if j.UID == uid {
			n++
			bytes += size(j.ID)
		}
	}
	return n, bytes
}

// shrunk removes jobs, the last first, one by one until there are few enough: the oldest of the user who has most, of
// several such users the oldest of all.
func shrunk(jobs []store.Ended, of func([]store.Ended, uint32) (most int64, enough bool)) []store.Ended {
	left := slices.Clone(jobs)
	for {
		if _, enough := of(left, 0); enough {
			return left
		}
		goes, most := -1, int64(-1)
		seen := map[uint32]bool{}
		for i := len(left) - 1; i >= 0; i-- {
			uid := left[i].UID
			if n, _ := of(left, uid); !seen[uid] && n > most {
				goes, most = i, n
			}
			seen[uid] = true
		}
		left = slices.Delete(left, goes, goes+1)
	}
}

// A flood of jobs of one user removes jobs of that user alone, as long as the others have less than an equal share.
func TestFloodOfOneUser(t *testing.T) {
	keep := retention.Rule{For: 1000 * time.Hour, Jobs: 1000, Output: 1000}
	now := timeline.Time(time.Hour)
	var ended []store.Ended // the last first
	for id := cluster.JobID(6000); id > 0; id-- {
		uid := uint32(1000)
		if id <= 20 {
			uid = 1001 // the oldest
		}
		ended = append(ended, store.Ended{ID: id, UID: uid, At: timeline.Time(id) * timeline.Time(time.Millisecond)})
	}
	p := keep.Choose(ended, now, func(cluster.JobID) int64 { return 1 })
	if len(p.Jobs) != 5000 || p.Jobs[0] != 21 || p.Jobs[4999] != 5020 {
		t.Errorf("%d jobs went, from %d to %d", len(p.Jobs), p.Jobs[0], p.Jobs[len(p.Jobs)-1])
	}
}

// If the daemon is killed after jobs were removed from the store, the next start removes their files.
func TestPruneIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		for range 3 {
			r.runOne(100)
		}
		if err := r.Driver.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.store.Remove(t.Context(), []cluster.JobID{1, 3}); err != nil {
			t.Fatal(err)
		}
		// Some files of job 1 are gone already.
		gone := output.In(r.dir).Path(cluster.ContainerID{Task: cluster.TaskID{Job: 1}, Run: 1}) + ".out"
		if err := os.Remove(gone); err != nil {
			t.Fatal(err)
		}
		r.fake = newFake()
		r.start(fifo(t))
		defer r.end()
		synctest.Wait()
		if got := r.kept(); got != "2" {
			t.Errorf("jobs %s are left", got)
		}
		if ids, err := r.store.Removed(t.Context()); err != nil || len(ids) > 0 {
			t.Errorf("still to be removed: %v %v", ids, err)
		}
	})
}

func TestDaemonPrunesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(), keep: &retention.Rule{For: 90 * time.Minute, Jobs: 2}}
		r.open()
		r.start(fifo(t))
		defer r.end()
		for range 4 {
			r.runOne(100)
		}
		time.Sleep(time.Minute)
		if got := r.kept(); got != "1-4" {
			t.Errorf("jobs %s are left after a minute", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := r.kept(); got != "3-4" {
			t.Errorf("jobs %s are left after an hour", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := r.kept(); got != "" {
			t.Errorf("jobs %s are left after two hours", got)
		}
	})
}

// A changed retention applies at once, and to all later removals.
func TestRetentionChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(), keep: &retention.Rule{For: 1000 * time.Hour}}
		r.open()
		r.start(fifo(t))
		defer r.end()
		for range 4 {
			r.runOne(100)
		}
		time.Sleep(time.Minute)
		for _, c := range []struct {
			keep  retention.Rule
			after time.Duration
			left  string
		}{
			{retention.Rule{For: 1000 * time.Hour, Jobs: 3}, 0, "2-4"},
			{retention.Rule{For: 1000 * time.Hour, Output: 250}, 0, "3-4"},
			{retention.Rule{For: 1000 * time.Hour, UserJobs: 1}, 0, "4"},
			{retention.Rule{For: 90 * time.Minute}, 0, "4"},
			{retention.Rule{For: 90 * time.Minute}, 2 * time.Hour, ""},
		} {
			if err := r.Retain(c.keep); err != nil {
				t.Fatal(err)
			}
			time.Sleep(c.after)
			synctest.Wait()
			if got := r.kept(); got != c.left {
				t.Errorf("%+v: jobs %q are left after %v, want %q", c.keep, got, c.after, c.left)
			}
		}
	})
}

// A run goes on in another segment when its log is large, and the newest segments stay: no more bytes than the run
// may have. Each of them is replayed alone. Of earlier runs, the latest stay.
func TestEventLogsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 40_000
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(), keep: &retention.Rule{For: 1000 * time.Hour, Events: 2 * most}}
		r.open()
		for run := range 5 {
			r.start(fifo(t))
			synctest.Wait()
			for range 20 + 20*run {
				r.runOne(1)
				if size, _, _ := segments.Size(r.events.Of(r.events.Run())); size > most {
					t.Fatalf("run %d has %d bytes of event logs", r.events.Run(), size)
				}
			}
			if run == 4 {
				break
			}
			if err := r.Driver.Close(); err != nil {
				t.Fatal(err)
			}
			r.fake = newFake()
		}
		defer r.end()
		time.Sleep(time.Hour)
		synctest.Wait()
		runs, err := r.store.Runs(t.Context())
		if err != nil || len(runs) < 2 || runs[0].ID == 1 {
			t.Errorf("runs %v %v", runs, err)
		}
		var kept []string
		for _, run := range runs {
			kept = append(kept, r.events.Of(run.ID)...)
		}
		if earlier, _, _ := segments.Size(kept[:len(kept)-len(r.events.Of(5))]); earlier > most {
			t.Errorf("earlier runs have %d bytes of event logs", earlier)
		}
		all, err := filepath.Glob(filepath.Join(r.dir, "events", "*"))
		if err != nil || len(all) != len(kept) || len(r.events.Of(5)) < 2 ||
			filepath.Base(r.events.Of(5)[0]) == "000005.jsonl" {
			t.Errorf("event logs %v, of the newest runs %v: %v", all, kept, err)
		}
		if newest := kept[len(kept)-1]; newest != r.EventLog() {
			t.Errorf("the log is %s, and the newest segment %s", r.EventLog(), newest)
		}
		for _, path := range kept {
			header, log := readLog(t, path)
			if at, ok := replay(t, header, log); !ok || len(log) < 2 {
				t.Errorf("%s: record %d of %d came out differently", path, at, len(log))
			}
		}
	})
}
