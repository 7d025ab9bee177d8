package live

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/durable"
)

// left is what a kill leaves: a state directory, and what the Backend knows.
type left struct {
	dir   string
	at    string // the change of a file that is not made any more
	over  map[cluster.ContainerID]usage.Usage
	alive map[cluster.ContainerID]resource.Vector
	held  map[cluster.ContainerID]resource.Amount // of those over that ended for want of memory
	runs  int                                     // that had ended
}

// mortal is a fake whose Driver may be killed at each change of a file.
type mortal struct {
	*fake
	mu    sync.Mutex
	over  map[cluster.ContainerID]usage.Usage     // ended, not forgotten
	alive map[cluster.ContainerID]resource.Vector // launched
	held  map[cluster.ContainerID]resource.Amount // that ended for want of memory
	runs  int                                     // that ended
	dir   string
	dies  bool // from now on
	kills []left
}

func newMortal(r *rig) *mortal {
	return &mortal{fake: r.fake, dir: r.dir, over: map[cluster.ContainerID]usage.Usage{},
		held:  map[cluster.ContainerID]resource.Amount{},
		alive: map[cluster.ContainerID]resource.Vector{}}
}

// newMortalRig is newRig with a mortal. What watches the changes of files is to be removed after the test.
func newMortalRig(t *testing.T) (*rig, *mortal) {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
	r.open()
	m := newMortal(r)
	durable.Watch = func(op durable.Op, path string) { m.keep(t, op, path) }
	r.startOn(fifo(t), m)
	return r, m
}

func (m *mortal) Forget(id cluster.ContainerID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.over, id)
}

func (m *mortal) Usage(id cluster.ContainerID) (usage.Usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over[id], nil
}

func (m *mortal) begins(o cluster.Order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alive[o.Container] = o.Grant
	m.launched(o)
}

func (m *mortal) ends(id cluster.ContainerID, u usage.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.alive, id)
	m.over[id] = u
	m.runs++
	m.ended(id, cluster.Succeeded, 0)
}

// fallsShort is ends for want of memory.
func (m *mortal) fallsShort(id cluster.ContainerID, u usage.Usage, held resource.Amount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.alive, id)
	m.over[id], m.held[id] = u, held
	m.runs++
	m.fellShort(id, held)
}

func (m *mortal) dying(yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dies = yes
}

// keep keeps the files as they are before a change.
func (m *mortal) keep(t *testing.T, op durable.Op, path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dies {
		return
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, withoutShared{os.DirFS(m.dir)}); err != nil {
		t.Error(err)
	}
	m.kills = append(m.kills, left{dir, string(op) + " " + strings.TrimPrefix(path, m.dir+"/"), maps.Clone(m.over),
		maps.Clone(m.alive), maps.Clone(m.held), m.runs})
}

// withoutShared leaves out what is memory that processes share, and no file.
type withoutShared struct{ fs.FS }

func (f withoutShared) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(f.FS, name)
	kept := all[:0]
	for _, e := range all {
		if !strings.HasSuffix(e.Name(), "-shm") {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// resume starts a Driver on what a kill left.
func (l *left) resume(t *testing.T) *rig {
	f := newFake()
	<-f.events // of the node; Synced follows what is found
	node := cluster.Node{Name: "n1", Capacity: resource.Of(2000, resource.GiB)}
	f.events = make(chan cluster.Event, 1000)
	f.events <- cluster.Event{Kind: cluster.NodeJoined, NewNode: &node}
	for id, grant := range l.alive {
		f.events <- cluster.Event{Kind: cluster.TaskAdopted, Task: id.Task, Run: id.Run, Grant: grant, Launched: 1}
	}
	for id := range l.over {
		if held, short := l.held[id]; short {
			f.fellShort(id, held)
			continue
		}
		f.ended(id, cluster.Succeeded, 0)
	}
	f.events <- cluster.Event{Kind: cluster.Synced}
	f.usage = l.over
	r := &rig{t: t, dir: l.dir, fake: f}
	r.open()
	r.start(fifo(t))
	synctest.Wait()
	return r
}

// resumeAll calls check with the Driver after each kill, and with the one after it, which should have learned from so
// many runs.
func (m *mortal) resumeAll(t *testing.T, check func(r *rig, runs int, when string)) {
	t.Helper()
	if len(m.kills) < 8 {
		t.Fatalf("killed at %d changes only", len(m.kills))
	}
	for i := range m.kills {
		k := &m.kills[i]
		for _, again := range []string{"after the kill", "once more"} {
			r := k.resume(t)
			check(r, k.runs, fmt.Sprintf("kill %d, before %s: %s", i, k.at, again))
			r.end()
		}
	}
}

// learnedRuns returns how many runs taught something of an application.
func (r *rig) learnedRuns(app string) int {
	r.t.Helper()
	a, err := r.store.App(r.t.Context(), user.UID, user.User, app)
	if err != nil {
		return 0
	}
	h, notes, err := profile.ReadHistory(a.Learned)
	if err != nil || len(notes) > 0 {
		r.t.Errorf("history of %s: %v, %q", app, err, notes)
	}
	n := 0
	for _, app := range h.Apps() {
		_, observed := h.Runs(app)
		n += observed
	}
	return n
}

// A daemon that is killed immediately before any change of a file, from the ends of two runs until both have been
// learned from, loses no lesson and learns none twice; and the job that waits is expected to do what both taught.
func TestLearnedOnceAfterAKill(t *testing.T) {
	defer func() { durable.Watch = nil }()
	synctest.Test(t, func(t *testing.T) {
		r, m := newMortalRig(t)
		first, second := r.submit(twoPhases(0)), r.submit(twoPhases(0))
		orders := []cluster.Order{r.order(cluster.Start), r.order(cluster.Start)}
		m.begins(orders[0])
		m.begins(orders[1])
		whole := twoPhases(0)
		whole.Job.Stages[0].Ideal = resource.Of(2000, 800*resource.MiB)
		r.submit(whole)
		waits := r.submit(whole)
		synctest.Wait()
		m.dying(true)
		m.ends(orders[0].Container, readThenWrite(10))
		r.wait(first)
		synctest.Wait()
		m.ends(orders[1].Container, readThenWrite(20))
		r.wait(second)
		synctest.Wait()
		m.begins(r.order(cluster.Start))
		synctest.Wait()
		m.dying(false)
		if n := r.learnedRuns("two-phases"); n != 2 {
			t.Errorf("without a kill, %d runs taught something", n)
		}
		r.end()
		m.resumeAll(t, func(r *rig, runs int, when string) {
			if n := r.learnedRuns("two-phases"); n != runs {
				t.Errorf("%s, %d runs of %d taught something", when, n, runs)
			}
			if ids, err := r.store.Unlearned(t.Context()); err != nil || len(ids) > 0 {
				t.Errorf("%s, jobs %v were not learned from, %v", when, ids, err)
			}
			if s := r.job(waits).Stages[0]; s.Told.Samples != runs {
				t.Errorf("%s, the job that waits is expected to %+v", when, s.Told)
			}
		})
	})
}

// learnedShort returns how many ends for want of memory are known of an application.
func (r *rig) learnedShort(app string) int {
	r.t.Helper()
	a, err := r.store.App(r.t.Context(), user.UID, user.User, app)
	if err != nil {
		return 0
	}
	return bytes.Count(a.Learned, []byte(`"held_bytes"`))
}

// A daemon that is killed immediately before any change of a file, from the ends of two runs for want of memory until
// both have been learned from, loses neither and learns neither twice, although their job has not ended.
func TestShortfallsLearnedOnceAfterAKill(t *testing.T) {
	defer func() { durable.Watch = nil }()
	synctest.Test(t, func(t *testing.T) {
		r, m := newMortalRig(t)
		s := twoPhases(0)
		s.Job.Stages[0].Tasks, s.Job.MaxAttempts, s.Job.RetryDelay = 2, 3, time.Hour
		id := r.submit(s)
		orders := []cluster.Order{r.order(cluster.Start), r.order(cluster.Start)}
		m.begins(orders[0])
		m.begins(orders[1])
		synctest.Wait()
		m.dying(true)
		for i, o := range orders {
			m.fallsShort(o.Container, readThenWrite(10), resource.Amount(1+i)*400*resource.MiB)
			synctest.Wait()
			if n := r.learnedShort("two-phases"); n != i+1 {
				t.Errorf("%d ends for want of memory were learned from at once, want %d", n, i+1)
			}
			time.Sleep(time.Minute) // for the next round of learning
		}
		m.dying(false)
		if j := r.job(id); j.Status.Ended() {
			t.Errorf("the job is %s", j.Status)
		}
		if n := r.learnedShort("two-phases"); n != 2 {
			t.Errorf("without a kill, %d ends taught something", n)
		}
		r.end()
		m.resumeAll(t, func(r *rig, runs int, when string) {
			if n := r.learnedShort("two-phases"); n != runs {
				t.Errorf("%s, %d ends of %d taught something", when, n, runs)
			}
			if ids, err := r.store.FellShort(t.Context()); err != nil || len(ids) > 0 {
				t.Errorf("%s, jobs %v were not learned from, %v", when, ids, err)
			}
		})
	})
}
