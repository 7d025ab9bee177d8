package sim

import (
	"math/bits"
	"slices"

	"github.com/bellows-rm/bellows/internal/heap"
	"github.com/bellows-rm/bellows/timeline"
)

// agenda holds future happenings, ordered by time and then by order of entry. It is a calendar queue (Brown, CACM
// 31(10), 1988): an item less than two seconds ahead goes into the slot of its millisecond, and a slot is sorted only
// when its time has come; later items wait in a heap. Heartbeats, the most frequent items, therefore cost the same at
// any number of nodes. Polls are entered in the order of their times, each a fixed delay ahead, so a plain queue holds
// them.
type agenda struct {
	slots [numSlots][]item // ring; slot i holds the items of milliseconds that are i modulo numSlots
	full  [numSlots / 64]uint64
	now   int64 // millisecond of the open slot, which is sorted and consumed
	taken int   // items consumed from the open slot
	near  int   // items in slots, not consumed
	far   heap.Heap[timeline.Time, farItem]
	due   []item // buffer for items of far whose time has come
	polls []item // in order, from first on
	first int
	seq   uint64
	wakes int // items of the policy's wakes: like polls, they make nothing happen by themselves
}

const (
	slotWidth = timeline.Time(1e6)
	numSlots  = 2048
)

// item contains no pointers, so that the garbage collector need not track its moves.
type item struct {
	at   timeline.Time
	seq  uint64
	who  int32 // node, job or task, depending on what
	what happening
}

// farItem is an item without what orders it.
type farItem struct {
	who  int32
	what happening
}

// happening is the kind of an item.
type happening uint8

const (
	arrival       happening = iota // of a job
	nodeHeartbeat                  // of a node
	jobHeartbeat                   // of a job's coordinator
	jobPoll                        // of a coordinator that waits for its own grant
	jobFound                       // a coordinator's next poll will find its grant; polls alone make nothing happen
	launched                       // of a task
	ended                          // of a task
	jobEnded                       // from the view of its coordinator
	woken                          // of the policy
	phaseEnded                     // the earliest end of a phase on a node
	dying                          // a task ends by itself: see task.ending
	killed                         // of a task
	incident                       // an incident of the cluster
	kept                           // a node's memory manager has something to do
	moved                          // the end of the first transfer in the queue of a node's swap device
	ordered                        // the next step of a memory manager's order for the container of a task
	throttled                      // a task is to be throttled, or no longer
)

func (e *item) before(f *item) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

func (a *agenda) push(at timeline.Time, what happening, who int32) {
	a.pushAt(at, a.turn(), what, who)
}

// turn returns the rank, among items of the same time, of an item entered now.
func (a *agenda) turn() uint64 {
	a.seq++
	return a.seq
}

// pushAt enters an item with a rank that turn returned before.
func (a *agenda) pushAt(at timeline.Time, turn uint64, what happening, who int32) {
	e := item{at, turn, who, what}
	switch what {
	case jobPoll:
		a.pushPoll(e)
		return
	case woken:
		a.wakes++
	}
	switch slot := int64(at / slotWidth); {
	case slot <= a.now:
		a.near++
		a.insert(e)
	case slot < a.now+numSlots:
		a.near++
		a.throw(slot, e)
	default:
		a.far.Push(at, turn, farItem{who, what})
	}
}

func (a *agenda) throw(slot int64, e item) {
	i := slot % numSlots
	a.slots[i] = append(a.slots[i], e)
	a.full[i/64] |= 1 << (i % 64)
}

// insert puts e into the open slot, in order.
func (a *agenda) insert(e item) {
	open := append(a.slots[a.now%numSlots], e)
	i := len(open) - 1
	for ; i > a.taken && e.before(&open[i-1]); i-- {
		open[i] = open[i-1]
	}
	open[i] = e
	a.slots[a.now%numSlots] = open
}

// pushPoll drops consumed polls before the queue would grow.
func (a *agenda) pushPoll(e item) {
	if len(a.polls) == cap(a.polls) && a.first > 0 {
		a.polls = a.polls[:copy(a.polls, a.polls[a.first:])]
		a.first = 0
	}
	a.polls = append(a.polls, e)
}

// pop returns the next happening; ok is false if nothing more will happen by itself.
func (a *agenda) pop() (next item, ok bool) {
	if a.near+len(a.far) == a.wakes {
		return item{}, false
	}
	poll := a.first < len(a.polls)
	if a.taken == len(a.slots[a.now%numSlots]) {
		slot := a.nextSlot()
		if poll && int64(a.polls[a.first].at/slotWidth) < slot {
			return a.takePoll(), true
		}
		a.open(slot)
	}
	next = a.slots[a.now%numSlots][a.taken]
	if poll && a.polls[a.first].before(&next) {
		return a.takePoll(), true
	}
	a.taken++
	a.near--
	if next.what == woken {
		a.wakes--
	}
	return next, true
}

func (a *agenda) takePoll() item {
	a.first++
	return a.polls[a.first-1]
}

// nextSlot returns the next millisecond that has an item in its slot or in the heap.
func (a *agenda) nextSlot() int64 {
	next := int64(timeline.Never)
	if a.near > 0 {
		next = a.nextFull()
	}
	if len(a.far) > 0 {
		next = min(next, int64(a.far[0].Key/slotWidth))
	}
	return next
}

// open opens a slot in place of the slot that is used up.
func (a *agenda) open(slot int64) {
	i := a.now % numSlots
	a.slots[i], a.taken = a.slots[i][:0], 0
	a.full[i/64] &^= 1 << (i % 64)
	a.now, i = slot, slot%numSlots
	a.due = a.due[:0]
	for len(a.far) > 0 && int64(a.far[0].Key/slotWidth) == slot {
		e := a.far.Pop()
		a.due = append(a.due, item{e.Key, e.Rank, e.Value.who, e.Value.what})
	}
	if len(a.due) > 0 {
		// Items of the heap were entered before the items of this slot, and so come first among items of the same time.
		a.near += len(a.due)
		a.due = append(a.due, a.slots[i]...)
		a.slots[i], a.due = a.due, a.slots[i]
	}
	a.full[i/64] |= 1 << (i % 64)
	if open := a.slots[i]; !slices.IsSortedFunc(open, compareItems) {
		slices.SortFunc(open, compareItems)
	}
}

func compareItems(e, f item) int {
	switch {
	case e.before(&f):
		return -1
	case f.before(&e):
		return 1
	}
	return 0 // one of them is void: see run.file
}

// nextFull returns the next millisecond after now whose slot is not empty. There must be one.
func (a *agenda) nextFull() int64 {
	from := (a.now + 1) % numSlots
	for steps := int64(0); ; {
		i := (from + steps) % numSlots
		if rest := a.full[i/64] >> (i % 64); rest != 0 {
			return a.now + 1 + steps + int64(bits.TrailingZeros64(rest))
		}
		steps += 64 - i%64
	}
}
