package sim

import (
	"math/bits"
	"slices"

	"github.com/bellows-rm/bellows/core/heap"
	"github.com/bellows-rm/bellows/core/timeline"
)

// agenda holds future happenings, ordered by time and then by order of entry. It is a calendar queue (Brown, CACM
// 31(10), 1988): an item less than two seconds ahead goes into the slot of its millisecond, and a slot is sorted only
// when its time has come; later items wait in a heap. Heartbeats, the most frequent items, therefore cost the same at
// any number of nodes. While there are few items, all of them wait in the heap, which is then in the processor's cache,
// as the slots are not. What happens now, after all else that happens now, is appended to the open slot. Polls are
// entered in the order of their times, each a fixed delay ahead, so a plain queue holds them.
type agenda struct {
	slots [numSlots]int32 // ring; slot i holds the items of milliseconds that are i modulo numSlots: the cell of the last
	full  [numSlots / 64]uint64
	cells []cell // the items of slots, by number from 1
	free  int32  // the first cell that holds no item; 0 if none
	now   int64  // the present millisecond; its slot is empty
	open  []item // items of the present millisecond, in order; more of them may be in the heap
	taken int    // items consumed from open
	near  int    // items in slots and in open, not consumed
	heap  heap.Heap[timeline.Time, heapItem]
	polls []item // in order, from first on
	first int
	seq   uint64
	wakes int // items of the policy's wakes: like polls, they make nothing happen by themselves
}

const (
	slotWidth = timeline.Time(1e6)
	numSlots  = 2048
	few       = 16
)

// item contains no pointers, so that the garbage collector need not track its moves.
type item struct {
	at   timeline.Time
	seq  uint64
	who  int32 // node, job or task, depending on what
	what happening
}

// cell is an item in a slot. All cells are in one slice, so that a slot costs no memory of its own.
type cell struct {
	item
	next int32 // the cell of the item that entered the slot before this one, or the next free cell; 0 if none
}

// heapItem is an item without what orders it.
type heapItem struct {
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
	wanted                         // what is wanted of a task is to be carried out, or its throttle is over
	// leveling ends its hold of a task, so that the task makes progress again: unlike woken, that happens by itself
	holdEnds
	// the pause of a task between attempts ends, so that the task may start again: this, too, happens by itself
	pauseEnds
	solved // the question about a node
	paged  // the memory of a paused task is out, or back
)

func (e *item) before(f *item) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

func (a *agenda) push(at timeline.Time, what happening, who int32) {
	a.pushAt(at, a.turn(), what, who)
}

// turn returns the rank, among items of the same time, of an item entered now. The next higher rank is free, too.
func (a *agenda) turn() uint64 {
	a.seq += 2
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
	case slot <= a.now && (a.taken == len(a.open) || !e.before(&a.open[len(a.open)-1])):
		a.near++
		a.open = append(a.open, e)
	case slot <= a.now || slot >= a.now+numSlots || a.near+len(a.heap) < few:
		a.heap.Push(at, turn, heapItem{who, what})
	default:
		a.near++
		a.throw(slot, e)
	}
}

func (a *agenda) throw(slot int64, e item) {
	i := slot % numSlots
	at := a.free
	if at == 0 {
		a.cells = append(a.cells, cell{})
		at = int32(len(a.cells))
	}
	c := &a.cells[at-1]
	a.free = c.next
	*c = cell{e, a.slots[i]}
	a.slots[i] = at
	a.full[i/64] |= 1 << (i % 64)
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
	if a.near+len(a.heap) == a.wakes {
		return item{}, false
	}
	if a.taken == len(a.open) {
		slot := a.nextSlot()
		if a.first < len(a.polls) && int64(a.polls[a.first].at/slotWidth) < slot {
			return a.takePoll(), true
		}
		a.turnTo(slot)
	}
	fromHeap := len(a.heap) > 0
	if fromHeap {
		next = item{a.heap[0].Key, a.heap[0].Rank, a.heap[0].Value.who, a.heap[0].Value.what}
	}
	if a.taken < len(a.open) && (!fromHeap || a.open[a.taken].before(&next)) {
		next, fromHeap = a.open[a.taken], false
	}
	if a.first < len(a.polls) && a.polls[a.first].before(&next) {
		return a.takePoll(), true
	}
	if fromHeap {
		a.heap.Pop()
	} else {
		a.taken++
		a.near--
	}
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
	if len(a.heap) > 0 {
		next = min(next, int64(a.heap[0].Key/slotWidth))
	}
	return next
}

// turnTo makes a millisecond the present one, once all items of the one before have been consumed.
func (a *agenda) turnTo(slot int64) {
	a.now, a.taken, a.open = slot, 0, a.open[:0]
	i := slot % numSlots
	if a.near == 0 || a.full[i/64]&(1<<(i%64)) == 0 {
		return
	}
	a.full[i/64] &^= 1 << (i % 64)
	for at := a.slots[i]; at != 0; {
		c := &a.cells[at-1]
		a.open = append(a.open, c.item)
		at, c.next, a.free = c.next, a.free, at
	}
	a.slots[i] = 0
	slices.Reverse(a.open)
	if !slices.IsSortedFunc(a.open, compareItems) {
		slices.SortFunc(a.open, compareItems)
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

// nextFull returns the next millisecond whose slot is not empty. There must be one.
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
