package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// Owner owns the containers: it starts them, ends them, and speaks to the engine.
type Owner interface {
	// Containers returns all containers that there are, nil for one that has not started.
	Containers() map[cluster.ContainerID]*Container
	// Report reports an event to the engine. Answer answers an order that was carried out, or was not because of err.
	Report(cluster.Event)
	Answer(id cluster.ContainerID, decision cluster.DecisionID, detail string, err error)
	// Preempt has a container end for the memory that it holds, to run again. Starve has it end for good, because no
	// memory can be had for it or another. why says so to people.
	Preempt(id cluster.ContainerID, why string)
	Starve(id cluster.ContainerID, why string)
	// Remaining is how much memory outlives containers that have ended, bytes.
	Remaining() resource.Amount
	// Lives is called every two seconds by the goroutine of the keeper, which shows that it works.
	Lives()
	// Go begins a goroutine that stays with containers and ends soon after the keeper is closed.
	Go(func())
}

// Config is the configuration of a Keeper.
type Config struct {
	// Memory is how the memory of FLEX containers is managed.
	Memory memory.Parameters
	// Capacity is how much memory the containers may use together, bytes.
	Capacity resource.Amount
	// All is the group of all containers. Apart is one below it with other processes.
	All, Apart *cgroup.Group
	// SwapBudget is how many bytes swapping may write to disks in a day; 0 is no limit. Written is the file that counts
	// them.
	SwapBudget resource.Amount
	Written    string
	// Comebacks keep the tasks that were requeued; nil: they are forgotten with the keeper.
	Comebacks Comebacks
	// Disk returns the disk that a throttle bounds, major:minor; empty if it is unknown.
	Disk func() string
	// Clock is that of the engine.
	Clock func() timeline.Time
	Log   *slog.Logger
}

// Lives is the interval at which a keeper shows that it works: see Owner.
const Lives = 2 * time.Second

// Keeper drives the memory manager of this machine. Its one thread has a high priority. It reads containers when the
// kernel sends notices, and at intervals in case a notice is missing. It hands the manager's actions to other
// goroutines, because the kernel can take seconds.
type Keeper struct {
	owner   Owner
	config  *Config // nothing changes it
	log     *slog.Logger
	closed  context.Context
	manager *memory.Manager
	watcher *cgroup.Watcher
	done    chan struct{}
	found   []news // containers that existed already; until Begin
	mail    mailbox
	shown   *shown

	// Owned by the goroutine.
	kept    map[cluster.ContainerID]*kept
	byGroup map[*cgroup.Group]cluster.ContainerID
	swap    *gauge
	answers map[cluster.ContainerID]chan<- answer
	holding holding
	backs   *comebacks

	anySuspended bool          // some container was suspended when lookAround ran last
	pagingOut    chan struct{} // one container is paged out at a time
	patience     patience
	suspects     twice[bool]     // containers of which the manager's books are wrong
	left         twice[leftover] // what no party wants any more
	mended       atomic.Int64    // containers whose books or stances were wrong, since the keeper began

	deciding sync.Mutex // locked while the manager works or is queried
}

// kept is a FLEX container whose memory is managed.
type kept struct {
	container *Container
	envelope  memory.Envelope
	gauge     *cgroup.Gauge
	held      cgroup.Held    // at the last reading
	charged   cgroup.Charged // shortly before
	full      time.Time      // when it was last read in full
	traffic   int64
	refaulted int64         // bytes of mapped files
	faulted   time.Time     // when it was last seen reading its mapped files, or swap
	worked    time.Duration // CPU time, as far as is known
	limit     resource.Amount
	suspended bool
	read      time.Time // when it was last read
	due       time.Time // when it is to be read again
	early     time.Time // earliest time to read it, together with another container
	alert     time.Time // until then it is read every few milliseconds
	blind     bool      // the kernel sends no notices of it
	// armed is when the next notice is to be requested, zero if one is requested already; deaf is how long none was
	// requested the last time.
	armed time.Time
	deaf  time.Duration
}

// news is a message to the goroutine.
type news struct {
	started *memory.Started
	of      *Container // of started, outcome and out
	ended   cluster.ContainerID
	request *memory.Request
	admits  chan<- answer // to request
	answer  chan<- error  // to changed
	changed *memory.Envelope
	more    resource.Amount // memory that changed adds to a REGULAR container
	outcome *memory.Outcome
	heard   *Container  // a notice of the container is requested from now on
	out     *memory.Out // of the container of
	room    chan<- swapOutlook
}

// mailbox has the news for the goroutine, the oldest first.
type mailbox struct {
	mu  sync.Mutex
	all []news
}

func (m *mailbox) put(n news) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, n)
}

// take returns the news that were put, and keeps none.
func (m *mailbox) take() []news {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.all
	m.all = nil
	return all
}

// New returns a keeper that does not work yet. It ends when closed does.
func New(closed context.Context, o Owner, c Config) (*Keeper, error) {
	m, err := memory.New(c.Memory)
	if err != nil {
		return nil, err
	}
	watcher, err := cgroup.NewWatcher()
	if err != nil {
		return nil, err
	}
	k := &Keeper{owner: o, config: &c, log: c.Log, closed: closed, manager: m, watcher: watcher,
		done: make(chan struct{}), pagingOut: make(chan struct{}, 1), swap: newGauge(closed, &c),
		kept: map[cluster.ContainerID]*kept{}, byGroup: map[*cgroup.Group]cluster.ContainerID{},
		answers: map[cluster.ContainerID]chan<- answer{}, shown: newShown(), backs: newComebacks(c.Comebacks, c.Log)}
	go k.swap.keepCount()
	return k, nil
}

// SwapFree is how much swap containers may use now, bytes: see memory.NodeReading. It may be called before Begin.
func (k *Keeper) SwapFree() resource.Amount { return min(k.swap.free(), resource.MostMemory) }

// Begin starts the goroutine, which ends when the keeper is closed.
func (k *Keeper) Begin() { go k.run() }

// Wait waits for the goroutine, after the keeper is closed.
func (k *Keeper) Wait() {
	<-k.done
	<-k.swap.saved
}

// Started takes over a container that has started.
func (k *Keeper) Started(c *Container) {
	k.tell(news{started: &memory.Started{Envelope: c.envelope()}, of: c})
}

// Ended forgets a container.
func (k *Keeper) Ended(id cluster.ContainerID) { k.tell(news{ended: id}) }

// tell sends news to the goroutine; if the keeper is closed, the news is dropped.
func (k *Keeper) tell(n news) {
	k.mail.put(n)
	k.watcher.Wake()
}

// askAgain is how long a container that could not have its memory waits before its next request.
const askAgain = time.Second

// answer is what becomes of a container that is to start, or to come back: it may, with a limit, or is refused.
type answer struct {
	limit   resource.Amount // bytes; 0: its Min
	refused error
}

// Admit waits until there is memory for a container that is to start, however long that takes: a waiting container
// uses no resources. It returns the limit with which it starts, bytes, at least its Min. An error says that it need
// not start any more: it is to end.
func (k *Keeper) Admit(e memory.Envelope, ending <-chan struct{}) (resource.Amount, error) {
	for {
		admits := make(chan answer, 1)
		k.tell(news{request: &memory.Request{Envelope: e}, admits: admits})
		var got answer
		select {
		case got = <-admits:
		case <-ending:
			return 0, errors.New("ended before its memory was available")
		case <-k.closed.Done():
			return 0, k.closed.Err()
		}
		if got.refused == nil {
			k.shown.noWait(e.Container)
			return max(e.Min, got.limit), nil
		}
		k.shown.wait(e.Container, got.refused)
		select {
		case <-time.After(askAgain):
		case <-ending:
			return 0, fmt.Errorf("ended before its memory was available: %w", got.refused)
		case <-k.closed.Done():
			return 0, k.closed.Err()
		}
	}
}

// Waiting describes the containers that have not started for lack of memory.
func (k *Keeper) Waiting(readings map[cluster.ContainerID]cluster.Reading) { k.shown.waiting(readings) }

func (k *Keeper) run() {
	defer close(k.done)
	defer k.swap.close()
	defer k.watcher.Close()
	defer context.AfterFunc(k.closed, k.watcher.Wake)()
	if err := TakePriority(); err != nil {
		k.log.Debug("cannot raise the priority of the memory manager's thread", "error", err)
	}
	var lived time.Time
	audited := time.Now()
	k.adopt()
	for k.closed.Err() == nil {
		if time.Since(lived) >= Lives {
			k.owner.Lives()
			lived = time.Now()
		}
		if time.Since(audited) >= auditInterval {
			k.audit()
			audited = time.Now()
		}
		notices := k.watcher.Wait(time.Until(k.next(lived.Add(Lives))))
		var in memory.Input
		for _, n := range k.mail.take() {
			k.takeNews(n, &in)
		}
		for _, n := range notices {
			k.hear(n, &in)
		}
		k.lookAround(&in)
		k.decide(in)
	}
}

// adopt takes over the containers that were found.
func (k *Keeper) adopt() {
	var in memory.Input
	for _, n := range k.found {
		k.takeNews(n, &in)
	}
	k.found, in.Comebacks = nil, k.backs.read()
	k.decide(in)
}

// decide lets the manager work and dispatches its actions.
func (k *Keeper) decide(in memory.Input) {
	in.Node = &memory.NodeReading{Memory: max(0, k.config.Capacity-k.owner.Remaining()), SwapFree: k.swap.free(),
		SwapFull: k.swap.full()}
	k.deciding.Lock()
	actions := k.manager.Step(k.config.Clock(), in)
	k.deciding.Unlock()
	admits := func(a memory.Action) bool { return a.Kind == memory.Admit }
	k.report(slices.ContainsFunc(actions, admits)) // before the admitted container is launched, which is reported, too
	for _, a := range actions {
		k.dispatch(a)
	}
}

// hear reads a group of which the kernel sent a notice. A threshold says that usage grows, not that a process waits.
func (k *Keeper) hear(n cgroup.Notice, in *memory.Input) {
	id, ok := k.byGroup[n.Group]
	if !ok {
		return
	}
	c := k.kept[id]
	if c.deaf < 4*shortDeaf {
		c.alert = time.Now().Add(alert)
	}
	k.read(id, n.Means != cgroup.Threshold, in)
	c.deaf = min(max(2*c.deaf, shortDeaf), longDeaf)
	c.armed = time.Now().Add(c.deaf)
}

// lookAround does the work that is due: it reads containers, and requests notices again.
func (k *Keeper) lookAround(in *memory.Input) {
	soon := time.Now().Add(together)
	suspended := false
	for id, c := range k.kept {
		if !c.armed.IsZero() && c.armed.Before(soon) {
			c.armed = time.Time{}
			k.watcher.Rearm(c.container.Group)
		}
		if c.early.Before(soon) || k.anySuspended && c.read.Add(blindInterval).Before(soon) {
			k.read(id, false, in)
		}
		suspended = suspended || c.suspended
	}
	k.anySuspended = suspended
}

// next returns when the next work is due, at the latest at the given time.
func (k *Keeper) next(at time.Time) time.Time {
	if due := k.manager.Next(); due != timeline.Never {
		at = earlier(at, time.Now().Add(due.Sub(k.config.Clock())))
	}
	if again, due := k.holding.next(); due {
		at = earlier(at, again)
	}
	for _, c := range k.kept {
		at = earlier(at, c.due)
		if k.anySuspended {
			at = earlier(at, c.read.Add(blindInterval))
		}
		if !c.armed.IsZero() {
			at = earlier(at, c.armed)
		}
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (k *Keeper) takeNews(n news, in *memory.Input) {
	switch {
	case n.started != nil:
		in.Started = append(in.Started, *n.started)
		if n.of.Envelope.Class == cluster.Flex {
			k.keep(n.of, n.started)
		}
	case n.request != nil:
		k.answers[n.request.Container] = n.admits
		in.Requests = append(in.Requests, *n.request)
		k.readAll(in) // reclaiming for it must be judged by current readings
	case n.changed != nil:
		k.takeChange(n, in)
	case n.outcome != nil:
		in.Outcomes = append(in.Outcomes, *n.outcome)
		if c, ok := k.kept[n.of.ID]; ok {
			if n.outcome.Limit > 0 {
				c.limit = n.outcome.Limit
				k.shown.read(c) // also if it cannot be read any more
			}
			c.deaf = 0
			k.read(n.of.ID, false, in)
		}
	case n.out != nil:
		k.takeOut(&n, in)
	case n.heard != nil: // no notice was sent of what happened before
		if c, ok := k.kept[n.heard.ID]; ok && c.armed.IsZero() {
			k.read(n.heard.ID, false, in)
		} else if ok {
			c.armed = time.Now()
		}
	default:
		in.Ended = append(in.Ended, n.ended)
		k.drop(n.ended)
	}
}

func (k *Keeper) keep(c *Container, s *memory.Started) {
	gauge, err := c.Group.Gauge()
	if err != nil {
		return // it is about to end
	}
	limit := max(s.Limit, s.Min, limitOf(c.Group))
	k.kept[c.ID] = &kept{container: c, envelope: s.Envelope, gauge: gauge, limit: limit,
		suspended: s.Suspended, due: time.Now(), alert: time.Now().Add(alert)}
	k.note(c, s.Suspended, memory.Reason{})
	k.shown.read(k.kept[c.ID])
	k.byGroup[c.Group] = c.ID
	k.kept[c.ID].blind = len(k.watcher.Add(c.Group)) == 0
	k.owner.Go(func() { k.listen(c, s.Envelope, limit) })
}

// listen requests notices when usage comes near a limit: where the manager would grow the container ahead of need, and
// just before the container is full. It takes the kernel milliseconds.
func (k *Keeper) listen(c *Container, e memory.Envelope, limit resource.Amount) {
	var amounts []int64
	if limit < e.Max {
		ahead := resource.Amount((1 - k.config.Memory.Ahead) * float64(limit))
		amounts = []int64{int64(ahead), int64(limit - min(brim, limit/16))}
	}
	c.ear.do(func() {
		if k.watcher.Near(c.Group, amounts...) == nil {
			k.tell(news{heard: c})
		}
	})
}

func (k *Keeper) drop(id cluster.ContainerID) {
	k.shown.drop(id)
	c, ok := k.kept[id]
	if !ok {
		return
	}
	k.watcher.Remove(c.container.Group)
	c.gauge.Close()
	delete(k.byGroup, c.container.Group)
	delete(k.kept, id)
}

func (k *Keeper) readAll(in *memory.Input) {
	for id := range maps.Keys(k.kept) {
		k.read(id, false, in)
	}
}

// read adds a reading of a container. Swap traffic is the change of swap plus the pages that were faulted in again:
// version 1 counts no more than that.
func (k *Keeper) read(id cluster.ContainerID, pressed bool, in *memory.Input) {
	c, ok := k.kept[id]
	if !ok {
		return
	}
	moment := time.Now()
	held, err := c.glance(moment)
	if err != nil {
		c.due, c.early = moment.Add(latest), moment.Add(latest)
		return // it is about to end
	}
	const page = 4096
	c.traffic += max(held.SwapBytes-c.held.SwapBytes, c.held.SwapBytes-held.SwapBytes) +
		max(0, held.AnonRefaults-c.held.AnonRefaults)*page
	// File pages that programs only read and write come back without faults. A fault also brings in pages around its
	// own: at least 128 KiB, and up to some MiB, depending on the disk's settings.
	const least, most = 32, 2048
	faults, refaults := max(0, held.MajorFaults-c.held.MajorFaults), max(0, held.FileRefaults-c.held.FileRefaults)
	c.refaulted += min(most*faults, refaults) * page
	mapped := min(held.FileBytes, held.MappedBytes+least*held.MajorFaults*page)
	if faults > 0 {
		c.faulted = moment
	}
	rest := c.interval(moment, held)
	c.due, c.early = moment.Add(rest), moment.Add(rest/4*3) // fewer wake-ups are cheaper
	c.held, c.read = held, moment
	if used, ok := c.gauge.CPUTime(); ok {
		c.worked = used
	}
	in.Readings = append(in.Readings, memory.Reading{Container: id, Anonymous: resource.Amount(held.InMemory()),
		Swap: resource.Amount(held.SwapBytes), SwapTraffic: c.traffic, Pressed: pressed,
		Locked: resource.Amount(held.LockedBytes),
		Mapped: resource.Amount(mapped), Refaulted: c.refaulted, Worked: c.worked})
	k.shown.read(c)
}

// dispatch hands an action of the memory manager to a goroutine, which calls perform. Only answers to containers that
// are to start are given at once.
func (k *Keeper) dispatch(a memory.Action) {
	switch a.Kind {
	case memory.Admit, memory.Refuse:
		if admits, ok := k.answers[a.Container]; ok {
			delete(k.answers, a.Container)
			if a.Kind == memory.Admit {
				k.cameBack(a.Container)
			}
			got := answer{limit: a.Limit}
			if a.Kind == memory.Refuse {
				got = answer{refused: refusal(&a, k.swap.explain(a.Reason))}
			}
			admits <- got
		}
		return
	}
	c, ok := k.kept[a.Container]
	if !ok {
		return
	}
	was := c.suspended
	switch a.Kind {
	case memory.Suspend, memory.Resume, memory.Grow, memory.Shrink:
		// A resize does not change the rest.
		c.suspended = a.Kind == memory.Suspend || a.Kind != memory.Resume && a.Suspended
		k.note(c.container, c.suspended, a.Reason)
	}
	k.logAction(&a, was, c.suspended)
	envelope := c.envelope // as it was decided for: a resize replaces it
	k.headStart(c.container, envelope, a)
	save := func() {}
	if a.Kind == memory.Kill {
		save = k.backs.take(k.manager.Comebacks())
	}
	k.owner.Go(func() {
		save() // before the next run can ask for memory
		k.perform(c.container, envelope, a)
	})
}

// refusal says why a container does not start. Its task may have been requeued.
func refusal(a *memory.Action, why string) error {
	if a.Limit > 0 {
		return fmt.Errorf("memory is not available: it was requeued, and waits until it can have %s: %s",
			resource.FormatMemory(a.Limit), why)
	}
	return fmt.Errorf("memory is not available: %s", why)
}

// logAction logs an action. Suspensions, resumptions and kills are for operators; sizes change many times a second.
func (k *Keeper) logAction(a *memory.Action, was, suspended bool) {
	level, message := slog.LevelInfo, "memory action"
	switch {
	case a.Kind == memory.Kill:
		message = "killing container for memory"
	case a.Kind == memory.End:
		message = "ending container for want of memory"
	case suspended && !was:
		message = "suspending container"
	case was && !suspended:
		message = "resuming container"
	default:
		level = slog.LevelDebug
	}
	k.log.Log(context.Background(), level, message, "job", a.Container.Task.Job, "container", a.Container, "action",
		a.Kind, "limit", int64(a.Limit), "reason", a.Reason.Words())
}

// note notes whether a container is suspended, for people, and reports when programs are stopped and when they run
// again.
func (k *Keeper) note(c *Container, suspended bool, why memory.Reason) {
	k.heldByMemoryNow(c, suspended)
	k.shown.suspend(c.ID, suspended, why.Words())
}

// WhyKilled says why the kernel killed in a container a moment ago; empty if that is not known. That swap was removed
// may not be known: the kernel turns swap on again if it could not turn it off.
func (k *Keeper) WhyKilled(id cluster.ContainerID) string {
	const lately = 10 * time.Second
	s, _ := k.shown.of(id)
	switch {
	case s.locked > int64(brim):
		return fmt.Sprintf("its programs had locked %s, which cannot go to swap",
			resource.FormatMemory(resource.Amount(s.locked)))
	case s.beyond != "" && k.swap.removed(lately):
		return "swap was removed: " + s.beyond
	case s.fullGrown:
		return "it had all the memory that it may have"
	case k.swap.removed(lately):
		return "swap was removed: nothing could go there"
	case k.swap.wasFull(lately):
		return "nothing could go to swap"
	}
	return s.beyond
}

// AtQuota is that of the manager.
func (k *Keeper) AtQuota(id cluster.ContainerID) resource.Amount {
	k.deciding.Lock()
	defer k.deciding.Unlock()
	return k.manager.AtQuota(id)
}

// Describe adds the manager's state to a reading.
func (k *Keeper) Describe(id cluster.ContainerID, r *cluster.Reading) {
	s, ok := k.shown.of(id)
	if !ok {
		return
	}
	r.State, r.Why, r.Since = cluster.ContainerRunning, s.why, s.since
	if s.waiting { // for memory that was paged out
		r.State = cluster.ContainerSuspended
		return
	}
	if !s.suspended {
		return
	}
	r.State = cluster.ContainerSuspended
	k.deciding.Lock()
	at, likely := k.manager.Outlook(id)
	k.deciding.Unlock()
	if in := at.Sub(k.config.Clock()); likely && in > 0 {
		r.Why = fmt.Sprintf("%s; likely to go on in %v", r.Why, in.Round(time.Second))
	}
}

// perform carries out one action, and reports the result to the manager.
func (k *Keeper) perform(c *Container, e memory.Envelope, a memory.Action) {
	ctx, cancel := context.WithTimeout(k.closed, k.config.Memory.ActionTimeout)
	defer cancel()
	limit, err := k.Act(ctx, c, e, a)
	if err != nil && !errors.Is(err, cgroup.ErrGone) && !errors.Is(err, errOut) && k.closed.Err() == nil {
		k.log.Warn("memory action failed", "job", c.ID.Task.Job, "container", c.ID, "action", a.Kind.String(), "limit",
			int64(a.Limit), "error", err)
	}
	k.tell(news{of: c, outcome: &memory.Outcome{Action: a.ID, Limit: limit, Failed: err != nil}})
	if limit > 0 {
		k.listen(c, e, limit)
	}
}
