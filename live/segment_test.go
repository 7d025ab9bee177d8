package live

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/segments"
)

// replayLogs passes each event log in the state directory to another engine, which must take the same decisions, and
// returns how many there are. A log may end in the middle of its last step.
func (r *rig) replayLogs(made func(policy.Policy) policy.Policy) int {
	r.t.Helper()
	paths := r.logsNamed("*.jsonl")
	for _, path := range paths {
		header, log := readLog(r.t.(*testing.T), path)
		if at, ok := replayBy(r.t.(*testing.T), header, log, made); !ok && at < len(log)-1 {
			r.t.Errorf("%s: record %d of %d came out differently", path, at, len(log))
		}
	}
	return len(paths)
}

// logsNamed returns the paths of the event logs whose names match a pattern, sorted.
func (r *rig) logsNamed(pattern string) []string {
	r.t.Helper()
	paths, err := filepath.Glob(filepath.Join(r.dir, "events", pattern))
	if err != nil {
		r.t.Fatal(err)
	}
	return paths
}

func unchanged(p policy.Policy) policy.Policy { return p }

// While an order other than a start is under way, the log ends at its bound. It goes on in another segment afterwards.
func TestSegmentWaitsForQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(), keep: &retention.Rule{For: 1000 * time.Hour, Events: 40_000}}
		r.open()
		r.start(fifo(t))
		defer r.end()
		stuck := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		if err := r.Pause(t.Context(), user, stuck, cluster.TaskID{}, false); err != nil {
			t.Fatal(err)
		}
		hold := r.order(cluster.Suspend)
		for range 30 {
			r.runOne(1)
		}
		if r.events.Number() != 1 || !r.events.HasEnded() {
			t.Errorf("segment %d, ended %v", r.events.Number(), r.events.HasEnded())
		}
		r.fake.events <- cluster.Event{Kind: cluster.DecisionDone, Task: hold.Task, Run: hold.Container.Run,
			Decision: hold.ID}
		synctest.Wait()
		if r.events.Number() != 2 || r.events.HasEnded() {
			t.Errorf("segment %d, ended %v", r.events.Number(), r.events.HasEnded())
		}
		r.runOne(1)
		header, log := readLog(t, r.EventLog())
		if at, ok := replay(t, header, log); !ok || len(log) < 2 {
			t.Errorf("record %d of %d came out differently", at, len(log))
		}
	})
}

// If the next segment cannot be begun, the engine and its log stay as they were, which is said once, and it is tried
// again.
func TestSegmentFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(), keep: &retention.Rule{For: 1000 * time.Hour, Events: 400_000},
			logTo: &text}
		r.open()
		r.start(fifo(t))
		defer r.end()
		block := filepath.Join(r.dir, "events", fmt.Sprintf("%06d.000002.jsonl", r.events.Run()))
		if err := os.MkdirAll(filepath.Join(block, "in the way"), 0o700); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(text.String(), "cannot begin the next segment") {
			r.runOne(1)
			synctest.Wait()
		}
		for range 3 {
			time.Sleep(segments.Retry)
			r.runOne(1)
		}
		if r.events.Number() != 1 {
			t.Errorf("segment %d", r.events.Number())
		}
		header, log := readLog(t, r.EventLog())
		if at, ok := replay(t, header, log); !ok {
			t.Errorf("record %d of %d came out differently", at, len(log))
		}
		if err := os.RemoveAll(block); err != nil {
			t.Fatal(err)
		}
		time.Sleep(segments.Retry)
		r.runOne(1)
		synctest.Wait()
		if r.events.Number() != 2 {
			t.Errorf("segment %d", r.events.Number())
		}
		if n := strings.Count(text.String(), "cannot begin the next segment"); n != 1 ||
			!strings.Contains(text.String(), `level=INFO msg="the event log goes on in another segment"`) {
			t.Errorf("%d warnings, in the log\n%s", n, text.String())
		}
		r.replayLogs(unchanged)
	})
}

// While the disk is full no segment begins. Once it has room, the log goes on in the next one, and nothing is lost.
func TestSegmentOnAFullDisk(t *testing.T) {
	dir := smallDisk(t, "64m")
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: dir, fake: newFake(), keep: &retention.Rule{For: 1000 * time.Hour, Events: 800_000}}
		r.open()
		r.start(fifo(t))
		defer r.end()
		id := r.submit(submission(3))
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		r.fake.launched(b)
		synctest.Wait()
		empty := fill(t, dir)
		// Its end makes the log large.
		r.fake.events <- cluster.Event{Kind: cluster.TaskEnded, Task: a.Task, Run: 1, Outcome: cluster.Succeeded,
			Exit: &cluster.Exit{}, Detail: strings.Repeat("x", 150_000)}
		synctest.Wait()
		r.noOrder()
		if err := r.do(t.Context(), func() {
			if !r.events.Due(r.now().Add(segments.Retry)) || r.events.Number() != 1 {
				t.Errorf("the log is large: %v; segment %d", r.events.Due(r.now().Add(segments.Retry)), r.events.Number())
			}
		}); err != nil {
			t.Fatal(err)
		}
		empty()
		time.Sleep(2 * segments.Retry)
		c := r.order(cluster.Start)
		r.fake.launched(c)
		r.fake.ended(b.Container, cluster.Succeeded, 0)
		r.fake.ended(c.Container, cluster.Succeeded, 0)
		if j := r.wait(id); j.Status != cluster.StatusSucceeded || j.Stages[0].Succeeded != 3 {
			t.Errorf("job %+v", j)
		}
		synctest.Wait()
		if r.events.Number() != 2 {
			t.Errorf("segment %d", r.events.Number())
		}
		if n := r.replayLogs(unchanged); n != 2 {
			t.Errorf("%d event logs", n)
		}
	})
}

// A daemon that is killed immediately before any change of a file with which a segment begins or the oldest one goes,
// or after one, leaves event logs that can all be read and replayed. The next daemon has every job and every end, and
// removes what is unfinished.
func TestKillWhileASegmentBegins(t *testing.T) {
	defer func() { durable.Watch = nil }()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(), keep: &retention.Rule{For: 1000 * time.Hour, Events: 32_000}}
		r.open()
		m := newMortal(r)
		var renamed atomic.Bool
		durable.Watch = func(op durable.Op, path string) {
			logs := strings.Contains(path, "/events/") && (op != durable.OpWrite || strings.HasSuffix(path, ".tmp"))
			if after := renamed.Swap(logs && op == durable.OpRename); after || logs {
				m.keep(t, op, path)
			}
		}
		r.startOn(fifo(t), m)
		many := r.submit(submission(60))
		waits := r.submit(submission(1))
		o, other := r.order(cluster.Start), r.order(cluster.Start)
		m.begins(other)
		synctest.Wait()
		m.dying(true)
		for range 50 {
			m.begins(o)
			m.ends(o.Container, usage.Usage{})
			o = r.order(cluster.Start)
			synctest.Wait()
		}
		m.dying(false)
		if r.events.Number() < 3 {
			t.Errorf("%d segments only", r.events.Number())
		}
		r.end()
		if want := 4 * (r.events.Number() - 1); len(m.kills) < want {
			t.Fatalf("killed at %d changes of %d segments", len(m.kills), r.events.Number())
		}
		unfinished := 0
		for i := range m.kills {
			k := &m.kills[i]
			if left, err := filepath.Glob(filepath.Join(k.dir, "events", "*.tmp")); err != nil || len(left) > 0 {
				unfinished++
			}
			next := k.resume(t)
			if s := next.job(many).Stages[0]; s.Succeeded != k.runs || next.job(waits).Ended {
				t.Errorf("kill %d, before %s: %d tasks have ended, and %+v", i, k.at, k.runs, s)
			}
			next.replayLogs(unchanged)
			if left := next.logsNamed("*.tmp"); len(left) > 0 {
				t.Errorf("kill %d, before %s: left %v", i, k.at, left)
			}
			next.end()
		}
		t.Logf("%d kills while %d segments began, %d with an unfinished one", len(m.kills), r.events.Number()-1, unfinished)
		if unfinished == 0 {
			t.Error("no kill left an unfinished segment")
		}
	})
}

// holdsFirst is a policy that holds each task of the first job.
type holdsFirst struct{ policy.Policy }

func (h holdsFirst) Decide(now timeline.Time, p *book.Plan) {
	for _, n := range p.Nodes {
		for _, t := range n.Tasks {
			if _, held := t.HeldUntil(); !held && t.Running && t.ID.Job == 1 {
				p.SuspendUntil(t, now.Add(time.Hour), cluster.TaskID{Job: 9},
					cluster.BecauseNodePressure(resource.Disk, 40e6, 100e6))
			}
		}
	}
	h.Policy.Decide(now, p)
}

// What is shown of a hold of leveling is the same in the next segment: since when it holds the task, until when, why,
// and that it failed.
func TestHoldInTheNextSegment(t *testing.T) {
	for _, answer := range []cluster.EventKind{cluster.DecisionDone, cluster.DecisionFailed} {
		t.Run(answer.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rig{t: t, dir: t.TempDir(), fake: newFake(), keep: &retention.Rule{For: 1000 * time.Hour, Events: 64_000}}
				r.open()
				r.start(holdsFirst{fifo(t)})
				defer r.end()
				id := r.submit(submission(1))
				r.fake.launched(r.order(cluster.Start))
				r.hears(r.order(cluster.Suspend), answer, "no freezer")
				before := r.job(id).Tasks[0].Leveled
				for r.events.Number() < 3 {
					time.Sleep(time.Second)
					r.runOne(1)
					synctest.Wait()
				}
				after := r.job(id).Tasks[0].Leveled
				if before == nil || after == nil || *before != *after || before.Since.IsZero() || before.Why == "" ||
					(answer == cluster.DecisionFailed) != (before.Failed != "") {
					t.Errorf("leveled %+v, and in segment %d %+v", before, r.events.Number(), after)
				}
				r.replayLogs(func(p policy.Policy) policy.Policy { return holdsFirst{p} })
			})
		})
	}
}
