package live

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/store"
)

// fake is a Backend whose containers follow the script of a test, including rare events of real machines.
type fake struct {
	events    chan cluster.Event
	orders    chan cluster.Order
	forgotten map[cluster.ContainerID]bool // to be read only when the Driver is idle or has stopped
	readings  map[cluster.ContainerID]cluster.Reading
	usage     map[cluster.ContainerID]usage.Usage
	missing   string        // what of each usage is missing
	reading   time.Duration // how long the disk takes to return a usage
	measuring sync.Mutex    // held where usage changes while the Driver reads it
	crowded   string
	mended    int64
	troubles  map[cluster.ContainerID]string
	glance    func() // called before readings are returned
	can       cluster.Capabilities
}

func newFake(inventory ...cluster.Event) *fake {
	f := &fake{events: make(chan cluster.Event, 1000), orders: make(chan cluster.Order, 1000),
		forgotten: map[cluster.ContainerID]bool{}}
	node := cluster.Node{Name: "n1", Capacity: resource.Of(2000, resource.GiB)}
	f.events <- cluster.Event{Kind: cluster.NodeJoined, NewNode: &node}
	for _, e := range inventory {
		f.events <- e
	}
	f.events <- cluster.Event{Kind: cluster.Synced}
	return f
}

func (f *fake) Apply(orders []cluster.Order) {
	for _, o := range orders {
		f.orders <- o
	}
}
func (f *fake) Input(cluster.ContainerID) (io.ReadWriteCloser, error) { return nil, io.ErrClosedPipe }
func (f *fake) Usage(id cluster.ContainerID) (usage.Usage, error) {
	f.measuring.Lock()
	reading := f.reading
	f.measuring.Unlock()
	time.Sleep(reading)
	f.measuring.Lock()
	defer f.measuring.Unlock()
	u, ok := f.usage[id]
	if !ok {
		return u, errors.New("it was not measured")
	}
	if f.missing != "" {
		return u, errors.New(f.missing)
	}
	return u, nil
}
func (f *fake) Events() <-chan cluster.Event       { return f.events }
func (f *fake) Forget(id cluster.ContainerID)      { f.forgotten[id] = true }
func (f *fake) Capabilities() cluster.Capabilities { return f.can }
func (f *fake) Crowded() string                    { return f.crowded }
func (f *fake) Mended() int64                      { return f.mended }

// Troubles implements Troubled.
func (f *fake) Troubles() map[cluster.ContainerID]string { return maps.Clone(f.troubles) }
func (f *fake) Readings() map[cluster.ContainerID]cluster.Reading {
	if f.glance != nil {
		f.glance()
	}
	return f.readings
}

// launched reports that an order to start was carried out.
func (f *fake) launched(o cluster.Order) {
	f.events <- cluster.Event{Kind: cluster.DecisionDone, Task: o.Task, Run: o.Container.Run, Decision: o.ID, Launched: 1}
}

func (f *fake) ended(id cluster.ContainerID, outcome cluster.Outcome, code int) {
	f.events <- cluster.Event{Kind: cluster.TaskEnded, Task: id.Task, Run: id.Run, Outcome: outcome,
		Exit: &cluster.Exit{Code: code, Started: 1, Ended: 2}, Detail: outcome.String()}
}

// fellShort reports that a container ended for want of memory with an amount in use.
func (f *fake) fellShort(id cluster.ContainerID, held resource.Amount) {
	f.events <- cluster.Event{Kind: cluster.TaskEnded, Task: id.Task, Run: id.Run, Outcome: cluster.OutOfMemory,
		Exit:   &cluster.Exit{Code: 137, OOMKills: 1, Held: held, Started: 1, Ended: 2},
		Detail: "the kernel killed a process of it"}
}

// rig is a Driver with a fake.
type rig struct {
	*Driver
	t      testing.TB
	fake   *fake
	dir    string
	store  *store.Store
	keep   *retention.Rule
	keeps  bool
	quotas *cluster.Quotas
	logTo  io.Writer // nil is the output of the test
}

func newRig(t *testing.T, p policy.Policy) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
	r.open()
	r.start(p)
	return r
}

// newKeepingRig is newRig with tasks that keep their cores while they stand still.
func newKeepingRig(t *testing.T, p policy.Policy) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), fake: newFake(), keeps: true}
	r.open()
	r.start(p)
	return r
}

// open opens the store.
func (r *rig) open() {
	r.t.Helper()
	var err error
	if r.store, err = store.Open(r.dir); err != nil {
		r.t.Fatal(err)
	}
}

// start starts a Driver on the existing state.
func (r *rig) start(p policy.Policy) {
	r.t.Helper()
	r.startOn(p, r.fake)
}

func (r *rig) startOn(p policy.Policy, b Backend) {
	r.t.Helper()
	var err error
	var log io.Writer = r.t.Output()
	if r.logTo != nil {
		log = r.logTo
	}
	r.Driver, err = Start(Config{Policy: p, Backend: b, Store: r.store, Dir: r.dir, UID: 1000,
		Keep: r.keep, Keeps: r.keeps, Quotas: r.quotas, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) end() {
	r.t.Helper()
	if err := r.Driver.Close(); err != nil {
		r.t.Error(err)
	}
	if err := r.store.Close(); err != nil {
		r.t.Error(err)
	}
}

// order returns the next order, which must be of the given kind.
func (r *rig) order(kind cluster.DecisionKind) cluster.Order {
	r.t.Helper()
	select {
	case o := <-r.fake.orders:
		if o.Kind != kind {
			r.t.Fatalf("order %+v, want a %s", o, kind)
		}
		return o
	case <-time.After(time.Minute):
		r.t.Fatalf("no order to %s", kind)
		return cluster.Order{}
	}
}

func (r *rig) noOrder() {
	r.t.Helper()
	select {
	case o := <-r.fake.orders:
		r.t.Fatalf("order %+v, want none", o)
	default:
	}
}

func (r *rig) submit(s Submission) cluster.JobID {
	r.t.Helper()
	id, err := r.Submit(r.t.Context(), s)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) job(id cluster.JobID) api.Job {
	r.t.Helper()
	j, err := r.Job(context.Background(), id, false)
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

func (r *rig) wait(id cluster.JobID) api.Job {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	j, err := r.Wait(ctx, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

func fifo(t testing.TB) policy.Policy {
	t.Helper()
	p, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// user is an ordinary user, other than the daemon's.
var user = cluster.Credentials{UID: 2000, GID: 2000, User: "ada"}

// submission is a job with the given number of tasks of 400 MiB and one core: two run at a time.
func submission(tasks int) Submission {
	return Submission{
		Job: cluster.Job{Name: "sorts",
			Stages: []cluster.Stage{{Name: "sort", Tasks: tasks, Ideal: resource.Of(1000, 400*resource.MiB),
				Command: cluster.Command{Args: []string{"sort", "-S", "{memory}", "part{task}"},
					Env: map[string]string{"LC_ALL": "C"}}}}},
		Caller: user, Env: []string{"PATH=/bin", "LC_ALL=de_DE"}, Dir: "/work",
	}
}
