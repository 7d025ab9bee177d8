package memory

import (
	"cmp"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// What a suspended container holds stays where it is, or goes to swap: swap is memory for what stands still. So the
// manager sees to it that the containers of the node can always end one after the other, each with all that it may need
// (Dijkstra's banker): what the ones that have ended held, in memory and swap, is there for the next. Without swap its
// size is 0, and the rule is the same; with much swap, the rule is always kept. A container that may be requeued never
// stands in the way: if need be its memory is taken by ending it, and its task runs again. In the order of severity:
//
//  1. A container starts only if that holds with it.
//  2. A container grows only as far as that holds, whatever its place. Where it does not hold any more, the first one
//     grows all the same.
//  3. A container that cannot grow is suspended before the kernel would kill it.
//  4. Later containers are suspended for what they have above what they hold, or for all while swap has room.
//  5. The youngest container that may be requeued is.
//  6. If none may be, and nothing runs whose end would free memory, one ends for good: the one that has outgrown what
//     it was known to need by most. If that is the one which lacks memory, it runs on with what it has, until the
//     kernel ends it.
//
// The last happens only if a container needs more than it was known to need, or has been steady for long, see steady,
// and then needs more, or the node has lost memory or swap.
//
// A task that was requeued comes back with what it held, and at least twice what it had: see comeback. Within that it
// is not requeued for others that keep to what they are known to need. So it is requeued once for each doubling from
// its Min to its Max at most, and once more for each container before it that outgrows what it was known to need, and
// for each loss of memory of the node.

// banks reports whether the manager sees to it that containers can end one after the other.
func (m *Manager) banks() bool { return m.p.Strategy == InOrder && m.p.Ahead > 0 }

// dry reports whether memory cannot be freed by swapping.
func (m *Manager) dry() bool { return m.node.SwapFull && m.banks() }

// swapRoom is what may still be swapped out before swap counts as full: the rest is for programs that swap by
// themselves between two readings.
func (m *Manager) swapRoom() resource.Amount {
	switch {
	case !m.banks():
		return m.node.SwapFree
	case m.node.SwapFull:
		return 0
	}
	return max(0, m.node.SwapFree-SwapReserve(m.node.Memory))
}

// holds is what c takes of memory and swap together, or may take without asking.
func (c *container) holds() resource.Amount { return max(c.room(), c.demand()) }

// comeback is what a requeued task is to have when it comes back.
type comeback struct {
	run     int             // that was requeued
	reserve resource.Amount // bytes with which it starts
	at      place           // where it stands
	asked   moment          // it last asked to start, and was refused
	of      Envelope        // of the run
	noted   timeline.Time
}

// requeue ends c for first, to run again with more.
func (m *Manager) requeue(c *container, why Reason) {
	reserve := max(c.demand(), 2*c.Min)
	if why.Code == WithinShare && c.reserve > 0 { // it need not have grown
		reserve = max(c.demand(), c.reserve)
	}
	m.noteComeback(c.Envelope, min(c.Max, reserve))
	m.order(Kill, c, 0, why)
}

// Comeback is a task that was requeued, and what it is to have when it comes back. The driver keeps comebacks, so that
// they outlast the manager: see Input.Comebacks.
type Comeback struct {
	Of      Envelope        `json:"of"` // of the run that was requeued
	Reserve resource.Amount `json:"reserve_bytes"`
}

// Comebacks returns the tasks that were requeued, and have not ended since otherwise, by task.
func (m *Manager) Comebacks() []Comeback {
	all := make([]Comeback, 0, len(m.requeued))
	for _, back := range m.requeued {
		all = append(all, Comeback{back.of, back.reserve})
	}
	slices.SortFunc(all, func(a, b Comeback) int { return compareIDs(a.Of.Container, b.Of.Container) })
	return all
}

// takeComebacks takes over what an earlier manager requeued.
func (m *Manager) takeComebacks(all []Comeback) {
	for i := range all {
		m.noteComeback(all[i].Of, all[i].Reserve)
	}
}

func (m *Manager) noteComeback(of Envelope, reserve resource.Amount) {
	if m.requeued == nil {
		m.requeued = map[cluster.TaskID]*comeback{}
	}
	m.requeued[of.Container.Task] = &comeback{run: of.Container.Run, reserve: reserve, at: m.p.ranked(&of), noted: m.now,
		of: of}
}

// findReserve notes of a container that was found with what it came back, if it did.
func (m *Manager) findReserve(c *container) {
	if back := m.requeued[c.Container.Task]; back != nil && back.run < c.Container.Run && c.flex() {
		c.reserve = min(back.reserve, c.Max)
		c.setEnvelope(c.Envelope)
	}
}

// comesBack raises a request of a task that was requeued to what it is to start with, as far as REGULAR containers
// leave it that have run for so long that they count as services.
func (m *Manager) comesBack(r *request) {
	back := m.requeued[r.Container.Task]
	if back == nil || r.Class != cluster.Flex || back.run >= r.Container.Run {
		return
	}
	room := m.attainable()
	for _, c := range m.ordered {
		if c.Class == cluster.Regular && !c.out && m.now.Sub(c.firstSeen) >= m.p.LongestSuspension {
			room -= c.room()
		}
	}
	if r.reserve = max(r.Min, min(back.reserve, room, r.Max)); r.reserve > r.Min {
		r.Min = r.reserve
	} else {
		r.reserve = 0
	}
}

// forgetComebacks forgets a task whose container has ended otherwise than to be requeued, and tasks that have not come
// back within LongestSuspension.
func (m *Manager) forgetComebacks(ended cluster.ContainerID) {
	if back := m.requeued[ended.Task]; back != nil && back.run < ended.Run {
		delete(m.requeued, ended.Task)
	}
	for id, back := range m.requeued {
		if long := m.p.LongestSuspension; long > 0 && m.now.Sub(max(back.noted, back.asked.at)) > long {
			delete(m.requeued, id)
		}
	}
}

// waitsToComeBack returns a requeued task that waits for its memory and comes before r; nil if there is none. Without
// it, small containers that start again and again would keep a large one waiting for ever.
func (m *Manager) waitsToComeBack(r *request) *comeback {
	var first *comeback
	mine := m.p.ranked(&r.Envelope)
	for id, back := range m.requeued {
		if r.owed > 0 && back.of.Owner != r.Owner { // it takes nothing of what that one may have
			continue
		}
		before := cmp.Or(comparePlaces(back.at, mine), id.Compare(r.Container.Task)) < 0
		if before && !m.waitsForOwn(back, r) && id != r.Container.Task && back.asked.within(m.now, m.p.ClaimFor) &&
			(first == nil || comparePlaces(back.at, first.at) < 0) {
			first = back
		}
	}
	return first
}

// attainable is the most memory that one container can have once all others have ended.
func (m *Manager) attainable() resource.Amount {
	room := resource.Amount(m.p.Stop * float64(m.node.Memory))
	for _, c := range m.ordered {
		if c.out {
			room -= c.room()
		}
	}
	return max(0, room)
}

// known reports whether it is known how much a container needs at most, and it has not outgrown that.
func known(e *Envelope, reserve, holds resource.Amount) bool {
	return max(e.Need, reserve) > 0 && holds <= max(e.Need, reserve)
}

// usualSwap is the share of swap that a container counts on which may have all memory and of which nothing is known:
// the rest is for what stands still.
const usualSwap = 0.5

// usual is the most that one container is expected to hold of which nothing is known.
type usual struct {
	memory resource.Amount // what is attainable
	swap   resource.Amount // beyond that
}

func (m *Manager) usual() usual {
	swap := m.swapRoom()
	for _, c := range m.ordered {
		swap += c.swap
	}
	return usual{m.attainable(), max(0, resource.Amount(usualSwap*float64(swap-SwapReserve(m.node.Memory))))}
}

// mayNeed is what lets a container come to its end, in memory and swap: its Max, or if it is known to need less, enough
// for that so that it is never at risk, and if it is known to need more, that. Where it goes that has outgrown this is
// unknown: it counts as half way. holds is what it holds, and reserve what it came back with.
func (u usual) mayNeed(m *Manager, e *Envelope, reserve, holds resource.Amount) resource.Amount {
	most, need := min(u.memory, e.Max), max(e.Need, reserve)
	if known(e, reserve, holds) {
		if need <= most {
			need = min(most, m.calm(need))
		}
		return max(e.Min, need)
	}
	if e.Max >= u.memory {
		most += u.swap
	}
	if holds > most {
		return 2 * holds
	}
	return most
}

// mayRequeue reports whether c may be ended for the memory that it holds, and is not on its way to its end.
func (c *container) mayRequeue() bool { return c.flex() && c.Requeue && !c.leaving() }

// onCall reports whether others may count on the memory of c, because it may be requeued: not one that has come back
// and keeps to what it came back with.
func (c *container) onCall() bool {
	return c.mayRequeue() && !c.covers(c.demand())
}

// ending is a container as the others' ends depend on it.
type ending struct {
	of    *container
	lacks resource.Amount // until it has all that it may need
	frees resource.Amount // when it has ended
}

// endings are the containers that must be able to end by themselves, the one that lacks least first, and what they may
// use for it: memory that is in no room, free swap, and what containers hold that may be requeued. The margin, a part
// of it, is for ends alone: swap fills a little before a container is noticed that fills it.
type endings struct {
	free, margin resource.Amount
	swapped      resource.Amount // of what containers hold
	all          []ending
}

// endings finds them as they are now: they are valid until the next order.
func (m *Manager) endings() endings {
	l, usual := m.ledger(), m.usual()
	swap, swapped := m.swapRoom(), resource.Amount(0)
	free, all := l.unallocated()-l.reserve+swap, m.endsBy[:0]
	for _, c := range m.ordered {
		if c.out {
			continue
		}
		holds := c.holds()
		swapped += c.swap
		free += c.room() + c.swap - holds
		switch {
		case c.leaving() || c.onCall():
			free += holds
		case c.Class == cluster.Regular:
			all = append(all, ending{c, 0, holds})
		default:
			needs := usual.mayNeed(m, &c.Envelope, c.reserve, c.demand())
			if c.steady(m.now, &m.p) {
				needs = max(c.Min, min(needs, m.calm(c.highest)))
			}
			all = append(all, ending{c, max(0, needs-holds), holds})
		}
	}
	m.endsBy = all
	whole := free
	for i := range all {
		whole += all[i].frees
	}
	for i := range all { // none can have more than there is
		all[i].lacks = max(0, min(all[i].lacks, whole-all[i].frees))
	}
	slices.SortFunc(all, func(a, b ending) int { return cmp.Or(cmp.Compare(a.lacks, b.lacks), byPlace(a.of, b.of)) })
	return endings{free, min(swap+swapped, SwapReserve(m.node.Memory)), swapped, all}
}

// mayGrow is by how much the limit of c may grow so that the containers can still end one after the other: by all that
// it lacks, if it may itself be the next to end.
func (e endings) mayGrow(c *container) resource.Amount {
	if c.onCall() {
		return math.MaxInt64
	}
	may, held := e.mayHold(c), c.holds()-c.limit
	if may > math.MaxInt64-held {
		return math.MaxInt64
	}
	return may + held
}

// mayHold is by how much more c may hold.
func (e endings) mayHold(c *container) resource.Amount {
	own := slices.IndexFunc(e.all, func(o ending) bool { return o.of == c })
	free, spare := e.free, resource.Amount(math.MaxInt64)
	for i, o := range e.all {
		switch {
		case own >= 0 && e.all[own].lacks <= free:
			return spare
		case i == own:
		case o.lacks > free: // they cannot, whatever c does
			return 0
		default:
			spare, free = max(0, min(spare, free-e.margin-o.lacks)), free+o.frees
		}
	}
	return spare
}

// remove lets c end.
func (e *endings) remove(c *container) {
	if i := slices.IndexFunc(e.all, func(o ending) bool { return o.of == c }); i >= 0 {
		e.free += e.all[i].frees
		e.all = slices.Delete(e.all, i, i+1)
	}
}

// safe reports whether the containers can end one after the other.
func (e endings) safe() bool {
	free := e.free
	for _, o := range e.all {
		if o.lacks > free {
			return false
		}
		free += o.frees
	}
	return true
}

// bank says in one step by how much containers may grow. It finds the endings when it is first asked, and again after
// a growth has made them stale.
type bank struct {
	m     *Manager
	ends  endings
	stale bool
}

func (m *Manager) bank() bank { return bank{m: m, stale: true} }

// mayGrow is endings.mayGrow; without limit where the manager does not bank.
func (b *bank) mayGrow(c *container) resource.Amount {
	if !b.m.banks() || c.onCall() {
		return math.MaxInt64
	}
	if b.stale {
		b.ends, b.stale = b.m.endings(), false
	}
	return b.ends.mayGrow(c)
}

// lets returns by how much the limit of c, which lacks memory, may grow at most, and whether c is to wait for the ends
// of others, whatever its place. Where the containers cannot end one after the other, the first is not held back.
func (b *bank) lets(c *container, first bool) (most resource.Amount, waits bool) {
	most = b.mayGrow(c)
	least := c.leastGrown()
	if waits = most < least; waits && first && !b.ends.safe() {
		return math.MaxInt64, false
	}
	return most, waits
}

// leastGrown is by how much the limit of c, which lacks memory, must be able to grow so that c need not wait.
func (c *container) leastGrown() resource.Amount {
	least := c.holds() - c.limit + c.holds()/100
	if c.limit < c.Max { // else it fills swap
		least = min(least, c.Max-c.limit)
	}
	return least
}

// inTheWay returns the container that could not end any more if a request was admitted; nil if all could, the new one
// included. A request may stand in its own way.
// coming is memory that others are to give for it.
func (m *Manager) inTheWay(r *request, coming resource.Amount) *Envelope {
	if r.Class == cluster.Flex && r.Requeue && r.reserve == 0 {
		return nil
	}
	ends := m.endings()
	free, all := ends.free+coming-r.Min, ends.all
	lacks := resource.Amount(0)
	if r.Class == cluster.Flex { // a REGULAR container holds what it asks for, and fills no swap
		free -= ends.margin
		lacks = max(0, m.usual().mayNeed(m, &r.Envelope, r.reserve, 0)-r.Min)
	}
	started := false
	for i := 0; i < len(all); {
		switch e := &all[i]; {
		case !started && lacks <= free:
			started, free = true, free+r.Min
		case e.lacks > free:
			return &e.of.Envelope
		default:
			free, i = free+e.frees, i+1
		}
	}
	if !started && lacks > free {
		return &r.Envelope
	}
	return nil
}

// calm is the least limit with which a container that holds the given memory is not at risk.
func (m *Manager) calm(holds resource.Amount) resource.Amount {
	return resource.Amount(math.Ceil(float64(holds)/(1-m.p.Ahead)))*101/100 + 1
}

// serveDry gives memory to containers that are short where nothing can be swapped out.
func (m *Manager) serveDry() {
	l := m.ledger()
	available, coming := l.available(), l.coming
	ends := m.endings()
	firstFlex, anyShort, helped, safe := true, false, false, ends.safe()
	m.stuck = m.stuck[:0]
	for _, c := range m.ordered {
		if !c.flex() || m.bound(c) {
			continue
		}
		first, firstShort := firstFlex, !anyShort
		firstFlex = false
		if !c.wants() {
			continue
		}
		anyShort = true
		if !c.ready(m.now) {
			continue
		}
		if c.limit >= c.Max { // it lacks swap
			if !safe && firstShort || ends.mayHold(c) >= c.minGrowth() || c.onCall() {
				m.stuck = append(m.stuck, stuck{c, available + c.minGrowth()})
			}
			continue
		}
		withheld := l.claimed
		if firstShort || c.owed > 0 || !m.goesOn(c) {
			withheld = m.withheldFrom(c)
		}
		if c.owed == 0 {
			withheld += l.owed
		}
		least := m.leastGrowth(c)
		most := min(max(least, resource.Amount(m.p.PuffRatio*float64(c.limit))), c.Max-c.limit, m.left(c))
		may := resource.Amount(math.MaxInt64)
		if safe || !first && c.owed == 0 {
			may = ends.mayGrow(c)
		}
		if give := min(most, available-withheld, may); give >= least {
			m.order(Grow, c, c.limit+give, Reason{Code: RoomToGrow, A: int64(available)})
			available -= give
			ends, l.owed = m.endings(), m.ledger().owed
			continue // the next step will see whether that suffices
		}
		if safe && may < least || !safe && !firstShort && c.owed == 0 || helped ||
			len(m.stuck) > 0 && ends.swapped == 0 && c.owed == 0 {
			continue // others are to end first
		}
		needs, soon := least+withheld, available+coming
		if lacks := max(least, c.limit/10) + withheld - soon; soon >= needs || c.owed > 0 && m.ledger().coming > 0 {
			available, coming, helped = max(0, min(available, soon-needs)), 0, true // it is coming, and others leave it
		} else if m.collectDry(lacks, most+withheld-soon, c, &c.Envelope, first) >= lacks {
			m.accept(Reason{Code: NeededByFirst, A: int64(c.Rank)})
			available, coming, helped = 0, 0, true
			ends = m.endings()
		} else {
			m.stuck = append(m.stuck, stuck{c, needs})
		}
	}
	if len(m.stuck) > 0 && !helped {
		m.lastMeans(available, safe)
	}
}

// stuck is a container that is short and may grow, but cannot.
type stuck struct {
	*container
	needs resource.Amount
}

// collectDry is collect where nothing can be swapped out: first what containers never touched, then what suspended
// ones have above what they hold, then the same of running ones, with all, which are suspended for it: for the first
// alone. Of what was never touched it takes up to most, and of the rest no more than need. protect is the container
// that the memory is for; nil if it is not here yet. Owners give to a container of another owner, of, what they take
// beyond their share; without of, all.
func (m *Manager) collectDry(need, most resource.Amount, protect *container, of *Envelope,
	all bool) (freed resource.Amount) {
	m.gifts = m.gifts[:0]
	shares := m.excessesFor(of)
	for i := len(m.ordered) - 1; i >= 0; i-- {
		if c := m.ordered[i]; c != protect && c.flex() && c.usage.known && c.ready(m.now) {
			m.gifts = append(m.gifts, gift{from: c, later: protect == nil || byPlace(c, protect) > 0})
		}
	}
	take := func(need resource.Amount, shares excesses, gives func(g *gift) resource.Amount) {
		for i := range m.gifts {
			g := &m.gifts[i]
			more := max(0, shares.left(g.from, min(need-freed, gives(g)-g.bytes)))
			freed, g.bytes = freed+more, g.bytes+more
			shares.take(g.from, more)
		}
	}
	usual := m.usual()
	above := func(g *gift) resource.Amount {
		c := g.from
		gives, _ := m.gives(c, 0, c.limit, true)
		keeps := c.anonymous + c.minGrowth()
		if known(&c.Envelope, c.reserve, c.demand()) {
			keeps = max(keeps, usual.mayNeed(m, &c.Envelope, c.reserve, c.demand()))
		}
		return min(gives, c.limit-keeps)
	}
	take(max(need, most), nil, func(g *gift) resource.Amount { return m.untouched(g.from) })
	take(need, shares, func(g *gift) resource.Amount {
		if !g.from.state.suspended() || !g.later {
			return 0
		}
		return above(g)
	})
	if all {
		take(need, shares, func(g *gift) resource.Amount {
			if g.from.runsOn || g.from.HeartbeatTimeout > 0 {
				return 0
			}
			return above(g)
		})
	}
	return freed
}

// goesOn reports whether a container other than c runs, or is about to.
func (m *Manager) goesOn(c *container) bool {
	for _, o := range m.ordered {
		if o != c && !o.out && o.place.standing != yielding && !(o.state.suspended() && o.wants() && o.pending == nil) {
			return true
		}
	}
	return false
}

// lastMeans is for the containers that are stuck, which need more than there is and than others can give without an
// end. With safe, others can end if they wait. While some of what is held is in swap, the first that others may be
// requeued for need not be the first in the order: that one may lack all that it has in swap.
func (m *Manager) lastMeans(available resource.Amount, safe bool) {
	c := m.stuck[0].container
	since, runs := m.now.Sub(c.shortSince), m.goesOn(c)
	goesOn := (c.runsOn || c.mayPage) && !c.state.suspended()
	if m.ledger().coming > 0 || since < m.p.Settle || m.willEnd(c) || goesOn {
		return
	}
	var victim *container
	for i := 0; i < len(m.stuck) && victim == nil; i++ {
		c = m.stuck[i].container
		victim = m.youngest(c, m.stuck[i].needs-available, !runs)
	}
	switch first := m.stuck[0].container; {
	case victim != nil && runs && since < m.p.KillPatience: // an end may do
	case victim != nil:
		m.requeue(victim, Reason{Code: Requeued, A: int64(c.Rank)})
	case safe && !runs && m.pageIn(available): // that makes room in swap
	case (runs || safe && !first.mayRequeue()) && since < m.p.LongestSuspension: // an end is better late than a loss
	default:
		m.endOne(first, available)
	}
}

// pageIn lets the first of the containers that are stuck page that has memory in swap, in what memory there is, and
// reports whether there is one. It may have too little memory to come to its end, but what it reads from swap makes
// room there for what others hold.
func (m *Manager) pageIn(available resource.Amount) bool {
	for _, s := range m.stuck {
		c := s.container
		switch more := min(available, c.holds()-c.limit, c.Max-c.limit); {
		case c.swap == 0:
		case more > c.minGrowth():
			m.order(Grow, c, c.limit+more, Reason{Code: RoomToGrow, A: int64(available)})
			return true
		case c.state.suspended() && m.settled(c) && !c.atRisk && c.limit >= c.Min:
			c.mayPage = true
			m.order(Resume, c, 0, Reason{Code: NothingToWaitFor, A: int64(c.demand()), B: int64(c.limit)})
			return true
		}
	}
	return false
}

// youngest returns the last container after c, in the order of their jobs, that may be requeued, if c could then have
// what it lacks from all of those; nil if there is none. With all, one before c may be, too, and one that has come back
// and keeps to what it came back with: that one comes last.
func (m *Manager) youngest(c *container, lacks resource.Amount, all bool) (last *container) {
	for _, o := range m.ordered {
		if o == c || !o.mayRequeue() || !o.onCall() && !all || m.now < o.retryAt || !all && m.byRank(o, c) < 0 ||
			m.protects(o, c) && (!all || c.mayRequeue()) { // rather than lose c, if nothing else goes on
			continue
		}
		lacks -= o.holds() // what it has in swap makes room there
		if last == nil || last.onCall() == o.onCall() && m.byRank(o, last) > 0 || !last.onCall() && o.onCall() {
			last = o
		}
	}
	if lacks > 0 {
		return nil
	}
	return last
}

// byRank compares containers as byPlace does while none has its turn or yields.
func (m *Manager) byRank(a, b *container) int {
	return cmp.Or(comparePlaces(m.p.ranked(&a.Envelope), m.p.ranked(&b.Envelope)), compareIDs(a.Container, b.Container))
}

// endOne frees memory where nothing runs whose end would, and no container after c can be requeued for it.
func (m *Manager) endOne(c *container, available resource.Amount) {
	worst, others := c, false
	for _, o := range m.ordered {
		if o == c || !o.flex() || o.leaving() {
			continue
		}
		others = true
		if !o.Requeue && o.wants() && m.now >= o.retryAt && m.endsBefore(o, worst) {
			worst = o
		}
	}
	switch {
	case others && c.mayRequeue():
		m.requeue(c, Reason{Code: NoRoomBeside, A: int64(c.demand()), B: int64(c.limit)})
	case worst != c:
		m.order(End, worst, 0, Reason{Code: OutgrewMost, A: int64(worst.demand()), B: int64(c.Rank)})
	case min(available, c.Max-c.limit, m.left(c)) > c.minGrowth():
		m.order(Grow, c, c.limit+min(available, c.Max-c.limit, m.left(c)), Reason{Code: RoomToGrow, A: int64(available)})
	case c.state.suspended() && m.settled(c):
		c.runsOn = true
		m.order(Resume, c, 0, Reason{Code: RunsOn, A: int64(c.demand()), B: int64(c.limit)})
	case !c.state.suspended():
		c.runsOn = true
	}
}

// endsBefore reports whether o is to end before the other: one whose owner exceeds the share is, and else one that has
// outgrown what it was known to need by more.
func (m *Manager) endsBefore(o, other *container) bool {
	if m.protects(o, other) || m.protects(other, o) {
		return m.protects(other, o)
	}
	return o.outgrew() > other.outgrew()
}

// outgrew is by how much c exceeds what it was known to need, or else began with.
func (c *container) outgrew() resource.Amount { return max(c.room(), c.demand()) - max(c.Min, c.Need) }

// fitDry takes memory back that the node has lost, bytes, and requeues the youngest container if that is not enough.
func (m *Manager) fitDry(lost resource.Amount, why Reason) {
	freed := m.collectDry(lost, 0, nil, nil, true)
	m.accept(why)
	if freed >= lost {
		return
	}
	var last *container
	for _, c := range m.ordered {
		if c.mayRequeue() && m.now >= c.retryAt && (last == nil || m.byRank(c, last) > 0) {
			last = c
		}
	}
	if last != nil {
		m.requeue(last, why)
	}
}

// beginDry returns the limit with which an admitted container begins, 0 for its Min: what it had when it was
// requeued, or with headroom. A program that fills its Min before the first reading of it would be killed where it
// cannot swap.
func (m *Manager) beginDry(r *request, unallocated resource.Amount) resource.Amount {
	c := m.containers[r.Container]
	if c == nil || !c.flex() || !m.dry() && r.reserve == 0 {
		return 0
	}
	c.reserve = r.reserve
	if m.dry() && m.p.Lend > 0 && m.shortBefore(r) == nil {
		free := unallocated - m.ledger().reserve - m.owedBefore(r) - metBy(m.requests, m.node.Memory)
		for i := range m.requests { // r included
			if !m.requests[i].claim {
				free -= m.requests[i].Min
			}
		}
		more := min(m.headroom(min(free, m.left(c))), c.Max-c.limit, m.endings().mayGrow(c))
		if more > c.minGrowth() {
			c.limit += more
			c.target, c.grown, c.lastShort = c.limit, true, moment{m.now, true}
			return c.limit
		}
	}
	return r.reserve
}

// slack is what FLEX containers have above what they hold.
func (m *Manager) slack() (sum resource.Amount) {
	for _, c := range m.ordered {
		if c.flex() && c.known {
			sum += max(0, c.room()-c.demand())
		}
	}
	return sum
}

// refuseDry returns why a container that is to start must wait although there may be memory for it.
func (m *Manager) refuseDry(r *request, free resource.Amount) (why Reason, refused bool) {
	if !m.banks() {
		return Reason{}, false
	}
	if back := m.waitsToComeBack(r); back != nil && r.Class == cluster.Flex {
		return Reason{Code: ComesBack, A: int64(r.Min), B: int64(back.at.rank)}, true
	}
	return m.refuseUnsafe(r, min(max(0, r.Min-free), m.slack()))
}

// refuseUnsafe returns why a container does not start that others must end before; coming is as for inTheWay.
func (m *Manager) refuseUnsafe(r *request, coming resource.Amount) (why Reason, refused bool) {
	if e := m.inTheWay(r, coming); e != nil {
		return Reason{Code: NoSafeStart, A: int64(r.Min), B: int64(e.Rank)}, true
	}
	return Reason{}, false
}

// refuseTaken is refuseDry once it is planned what is taken for the request: of that, only what containers have above
// what they hold makes room, and what goes to swap takes room there. Without it, with each request the memory would be
// taken, the container refused all the same, and the memory lent again.
func (m *Manager) refuseTaken(r *request) (why Reason, refused bool) {
	if !m.banks() {
		return Reason{}, false
	}
	freed := resource.Amount(0)
	for i := range m.gifts {
		c := m.gifts[i].from
		freed += max(0, min(m.gifts[i].bytes, c.room()-c.demand()))
	}
	for _, c := range m.ordered {
		if c.doing(Shrink) {
			freed += max(0, min(c.coming(), c.room()-c.demand()))
		}
	}
	return m.refuseUnsafe(r, freed)
}
