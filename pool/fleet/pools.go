package fleet

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// Jobs is the part of live.Driver that pools use.
type Jobs interface {
	SubmitAll(ctx context.Context, by cluster.Credentials, key live.Key,
		jobs iter.Seq2[live.Submission, error]) (first cluster.JobID, n int, err error)
	Cancel(ctx context.Context, by cluster.Credentials, id cluster.JobID) error
	Lend(ctx context.Context, ids []cluster.JobID, idle bool) error
	Jobs(ctx context.Context) ([]api.Job, error)
	Job(ctx context.Context, id cluster.JobID, usage bool) (api.Job, error)
	Changes(ctx context.Context, from int64) (api.Update, error)
	Pressure(ctx context.Context) (live.Pressure, error)
	Capabilities() cluster.Capabilities
}

// Config is the configuration of Pools. Fields are required unless their comments give a default.
type Config struct {
	State    string // the state directory
	Socket   string // path of the socket on which the API is served
	Capacity resource.Vector
	Jobs     Jobs
	// MostExecutors bounds the executors of all pools. Those of one owner are at most half of them. 0 is no bound.
	MostExecutors int
	// FetchBack is called with the container of a FLEX executor that begins to work after a rest: its memory may be in
	// swap. It must not wait. nil does nothing.
	FetchBack func(cluster.ContainerID)
	// LookUp finds a user by the uid; nil is user.LookupId.
	LookUp func(uid string) (*user.User, error)
	Lease  time.Duration // of executors and applications; 0 is pool.DefaultLease
	Log    *slog.Logger  // nil is slog.Default
}

// Pools are the pools of one daemon. Its methods may be called from any goroutine; the caller checks permissions.
type Pools struct {
	config   Config
	log      *slog.Logger
	book     book
	key      key
	handover handover

	// routes are what answers the messages of each pool.
	routes atomic.Pointer[map[api.PoolRef]http.Handler]
	dirty  chan struct{} // has an element if the size of a pool may have to change
	begun  chan begun
	ctx    context.Context
	stop   func()
	begin  sync.Once
	beside sync.WaitGroup

	unanswering struct { // executors that pools have asked to end
		sync.Mutex
		all []unanswering
	}

	mu       sync.Mutex
	pools    map[api.PoolRef]*held
	rooms    map[api.Owner]*pool.Room  // for arguments and results
	jobs     map[cluster.JobID]api.Job // that have not ended
	uses     map[cluster.JobID]use     // of jobs
	fewer    chan struct{}             // closed, and replaced, when an executor has ended
	retiring bool                      // no executor is launched, and all end
}

// held is a pool.
type held struct {
	record    record
	pool      *pool.Pool
	executors map[int]*launched // whose jobs have not ended, by number
	launching bool              // executors are being submitted
	backoff   backoff
	surplus   time.Time // since when there have been more executors than there should be; zero if there are not
	limits    limits
	waited    time.Time // when others last waited for what the owner of the pool has
	target    int
	why       string
	ended     chan struct{} // closed once a removed pool has ended
}

// complete fills in what has a default.
func (c *Config) complete() {
	if c.LookUp == nil {
		c.LookUp = user.LookupId
	}
	c.Log = cmp.Or(c.Log, slog.Default())
}

// Open reads the definitions of pools, and finds the executors that earlier daemons launched. Nothing is launched
// before the pools know which of them are still there.
func Open(c Config) (p *Pools, err error) {
	c.complete()
	p = &Pools{config: c, log: c.Log, dirty: make(chan struct{}, 1),
		begun: make(chan begun, mostBegun),
		pools: map[api.PoolRef]*held{},
		rooms: map[api.Owner]*pool.Room{}, jobs: map[cluster.JobID]api.Job{}, uses: map[cluster.JobID]use{},
		fewer: make(chan struct{})}
	if p.book, err = openBook(c.State); err != nil {
		return nil, err
	}
	if p.key, err = openKey(p.book.dir); err != nil {
		return nil, err
	}
	if p.handover, err = openHandover(c.Socket); err != nil {
		return nil, err
	}
	if err := p.handover.clear(); err != nil {
		return nil, err
	}
	if err := p.handover.write(p.workerPath(), string(executor.PythonWorker), 0o644,
		cluster.Credentials{UID: ownUID()}); err != nil {
		return nil, fmt.Errorf("write the program of executors: %w", err)
	}
	records, err := p.book.read(func(file string, err error) {
		p.log.Error("a pool is not there: its definition cannot be read", "file", file, "error", err)
	})
	if err != nil {
		return nil, err
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	for _, r := range records {
		if err := p.load(r); err != nil {
			p.log.Error("a pool is not there: it cannot be begun", "pool", r.Spec.Name, "owner", r.ref().User, "error", err)
		}
	}
	if len(p.pools) == 0 {
		p.route()
		return p, nil
	}
	if err := p.find(); err != nil {
		p.stop()
		return nil, err
	}
	for _, h := range p.pools {
		if err := p.start(h); err != nil {
			p.stop()
			return nil, err
		}
	}
	p.route()
	p.follow()
	return p, nil
}

// load makes the pool of a record.
func (p *Pools) load(r *record) error {
	if p.pools[r.ref()] != nil {
		return fmt.Errorf("there are two definitions of it; the other is used")
	}
	p.pools[r.ref()] = newHeld(*r)
	return nil
}

func newHeld(r record) *held {
	return &held{record: r, executors: map[int]*launched{}, limits: unlimited, ended: make(chan struct{})}
}

// start begins a pool.
func (p *Pools) start(h *held) error {
	divides, err := newPolicy(&h.record.Spec)
	if err != nil {
		return err
	}
	expected := 0
	for _, e := range h.executors {
		if !e.begun.IsZero() {
			expected++
		}
	}
	ref, id := h.record.ref(), h.record.ID
	owner := ref.Owner()
	if p.rooms[owner] == nil {
		p.rooms[owner] = pool.NewRoom(MostHeld)
	}
	h.pool = pool.Start(pool.Config{Name: ref.Name, Policy: divides, Machine: p.config.Capacity, Expected: expected,
		OfOwner: p.rooms[owner], Log: p.log.With("owner", ref.User), Changed: p.kick,
		Verify: func(number int, secret string) bool {
			return p.key.verify(id, number, secret) && p.knows(h, number)
		},
		End:    func(number int, why string) { p.endProcess(ref, number, why) },
		Begins: func(number int) { p.begins(ref, number) }})
	return nil
}

// knows reports whether an executor was launched and its job has not ended.
func (p *Pools) knows(h *held, number int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return h.executors[number] != nil
}

// route publishes what answers the messages of each pool.
func (p *Pools) route() {
	routes := map[api.PoolRef]http.Handler{}
	for ref, h := range p.pools {
		if !h.record.Removed {
			routes[ref] = h.pool.Handler()
		}
	}
	p.routes.Store(&routes)
}

// Handler returns what answers the messages of package executor for a pool; the paths are those below that of the
// pool. The error is api.NotFound.
func (p *Pools) Handler(r api.PoolRef) (http.Handler, error) {
	if h := (*p.routes.Load())[r]; h != nil {
		return h, nil
	}
	return nil, notFound(r)
}

func notFound(r api.PoolRef) error {
	return api.Errorf(api.NotFound, "pool %q of %s: there is none", cluster.Clip(r.Name), r.User)
}

// Close ends the pools of this process. Executors go on, and the next daemon finds them. It is called once.
func (p *Pools) Close() {
	p.stop()
	p.beside.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	executors := 0
	for _, h := range p.pools {
		executors += len(h.executors)
		h.pool.Close()
	}
	clear(p.pools)
	if executors == 0 {
		_ = os.RemoveAll(p.handover.dir)
	}
}

// Put makes a pool of an owner, or changes it. Executors are replaced, each when its task has ended, if what they are
// has changed. Only its owner can make a pool, because executors have the rights of the maker. The error may be
// api.Invalid, api.OverQuota, api.Conflict or api.NotFound.
func (p *Pools) Put(_ context.Context, by cluster.Credentials, owner api.Owner, s api.PoolSpec) (created bool,
	err error) {
	if err := Check(s); err != nil {
		return false, err
	}
	s = withDefaults(s)
	if err := p.hasRoom(&s); err != nil {
		return false, err
	}
	ref := api.PoolRef{UID: owner.UID, User: owner.Name, Name: s.Name}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch h := p.pools[ref]; {
	case p.ctx.Err() != nil:
		return false, errStopped
	case h != nil && h.record.Removed:
		return false, api.Errorf(api.Conflict, "pool %q: is being removed: try again when its executors have ended", s.Name)
	case h != nil:
		return false, p.change(h, by, s)
	case api.OwnerOf(by) != owner:
		return false, api.Errorf(api.NotFound, "pool %q of %s: there is none, and only %s can make it", s.Name,
			owner.Name, owner.Name)
	}
	if err := oneMore(ref, p.count(owner), len(p.pools)); err != nil {
		return false, err
	}
	h := newHeld(record{ID: newID(), As: by, Spec: s})
	if err := p.book.write(&h.record); err != nil {
		return false, err
	}
	if err := p.start(h); err != nil {
		return false, err
	}
	p.log.Info("pool created", "pool", s.Name, "owner", owner.Name, "min", s.Min, "max", s.Max, "by_uid", by.UID)
	p.pools[ref] = h
	p.route()
	p.follow()
	p.kick()
	return true, nil
}

var errStopped = api.Errorf(api.Unavailable, "bellows is going down")

// hasRoom returns an error if an executor is larger than the machine, or needs what the backend of its jobs cannot do.
func (p *Pools) hasRoom(s *api.PoolSpec) error {
	switch c, can := p.config.Capacity, p.config.Jobs.Capabilities(); {
	case can.Files != "":
		return api.Errorf(api.Invalid, "pool %q: its executors need files and the socket of the daemon: %s", s.Name,
			can.Files)
	case s.CPU > c[resource.CPU]:
		return api.Errorf(api.Invalid, "pool %q cpus %s: must be at most %s, what bellows manages", s.Name,
			resource.CPU.Format(s.CPU), resource.CPU.Format(c[resource.CPU]))
	case s.Memory > c[resource.Memory]:
		return api.Errorf(api.Invalid, "pool %q memory %s: must be at most %s, what bellows manages", s.Name,
			resource.FormatMemory(s.Memory), resource.FormatMemory(c[resource.Memory]))
	}
	return nil
}

// count returns how many pools an owner has.
func (p *Pools) count(owner api.Owner) (n int) {
	for ref := range p.pools {
		if ref.Owner() == owner {
			n++
		}
	}
	return n
}

// oneMore returns an error if its owner, or all owners together, have as many pools as they may.
func oneMore(r api.PoolRef, own, all int) error {
	switch {
	case own >= MostPools:
		return api.Errorf(api.OverQuota, "pool %q: %s has %d pools, and may have at most %d: remove one", r.Name, r.User,
			own, MostPools)
	case all >= MostInAll:
		return api.Errorf(api.OverQuota,
			"pool %q: all users together have %d pools, and may have at most %d: try again when one was removed", r.Name, all,
			MostInAll)
	}
	return nil
}

// change changes a pool.
func (p *Pools) change(h *held, by cluster.Credentials, s api.PoolSpec) error {
	r := h.record
	old := r.Spec
	if r.Spec = s; api.OwnerOf(by) == h.record.ref().Owner() {
		r.As = by
	}
	if !reflect.DeepEqual(executorOf(old), executorOf(s)) {
		r.Changed = r.Launched
	}
	if err := p.book.write(&r); err != nil {
		return err
	}
	h.record = r
	h.backoff.forget()
	if old.Policy != s.Policy || !maps.Equal(old.Settings, s.Settings) {
		before := h.pool
		if err := p.start(h); err != nil { // It has been checked.
			return err
		}
		p.route()
		before.Close() // Executors register again, and applications enrol again.
	}
	p.log.Info("pool changed", "pool", s.Name, "owner", h.record.ref().User, "min", s.Min, "max", s.Max, "by_uid", by.UID)
	p.kick()
	return nil
}

// executorOf returns the part of s that says what an executor is.
func executorOf(s api.PoolSpec) api.PoolSpec {
	s.Min, s.Max, s.Idle, s.Recycle, s.Policy, s.Settings = 0, 0, 0, 0, "", nil
	return s
}

// Delete removes a pool, with its executors and applications, and returns when they have ended. If ctx ends earlier,
// the pool is removed nevertheless. The error may be api.NotFound.
func (p *Pools) Delete(ctx context.Context, by cluster.Credentials, r api.PoolRef) error {
	p.mu.Lock()
	h := p.pools[r]
	if h == nil {
		p.mu.Unlock()
		return notFound(r)
	}
	if !h.record.Removed {
		removed := h.record
		removed.Removed = true
		if err := p.book.write(&removed); err != nil {
			p.mu.Unlock()
			return err
		}
		h.record = removed
		p.route()
		p.log.Info("pool removed", "pool", r.Name, "owner", r.User, "by_uid", by.UID)
	}
	p.mu.Unlock()
	p.kick()
	select {
	case <-h.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ctx.Done():
		return errStopped
	}
}

// kick says that the size of a pool may have to change. It does not wait.
func (p *Pools) kick() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// all returns the pools ordered by owner and name.
func (p *Pools) all() []*held {
	return slices.SortedFunc(maps.Values(p.pools), func(a, b *held) int {
		x, y := a.record.ref(), b.record.ref()
		return cmp.Or(cmp.Compare(x.UID, y.UID), cmp.Compare(x.User, y.User), cmp.Compare(x.Name, y.Name))
	})
}

// workerPath is where executors of Python find their program.
func (p *Pools) workerPath() string { return filepath.Join(p.handover.dir, "bellows_worker.py") }
