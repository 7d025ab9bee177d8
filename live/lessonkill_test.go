package live

import (
	"io/fs"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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
	runs  int // that had ended
}

// mortal is a fake whose Driver may be killed at each change of a file.
type mortal struct {
	*fake
	mu    sync.Mutex
	over  map[cluster.ContainerID]usage.Usage     // ended, not forgotten
	alive map[cluster.ContainerID]resource.Vector // launched
	runs  int                                     // that ended
	dir   string
	dies  bool // from now on
	kills []left
}

func newMortal(r *rig) *mortal {
	return &mortal{fake: r.fake, dir: r.dir, over: map[cluster.ContainerID]usage.Usage{},
		alive: map[cluster.ContainerID]resource.Vector{}}
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
		maps.Clone(m.alive), m.runs})
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
		r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
		r.open()
		m := newMortal(r)
		durable.Watch = func(op durable.Op, path string) { m.keep(t, op, path) }
		r.startOn(fifo(t), m)
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
		if len(m.kills) < 8 {
			t.Fatalf("killed at %d changes only", len(m.kills))
		}
		for i := range m.kills {
			k := &m.kills[i]
			for _, again := range []string{"after the kill", "once more"} {
				r := k.resume(t)
				if n := r.learnedRuns("two-phases"); n != k.runs {
					t.Errorf("kill %d, before %s: %s, %d runs of %d taught something", i, k.at, again, n, k.runs)
				}
				if ids, err := r.store.Unlearned(t.Context()); err != nil || len(ids) > 0 {
					t.Errorf("kill %d, before %s: %s, jobs %v were not learned from, %v", i, k.at, again, ids, err)
				}
				if s := r.job(waits).Stages[0]; s.Told.Samples != k.runs {
					t.Errorf("kill %d, before %s: %s, the job that waits is expected to %+v", i, k.at, again, s.Told)
				}
				r.end()
			}
		}
	})
}
