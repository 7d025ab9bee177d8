package sim

import "github.com/bellows-rm/bellows/timeline"

// agenda holds what will happen, by time; what is entered first comes first among equals. Most of it is a heap in which
// each item has up to four below it. Polls are entered in the order of their times, each a fixed delay ahead, so that a
// queue beside the heap holds them.
type agenda struct {
	items []item
	polls []item // in order, from first on
	first int
	seq   uint64
	wakes int // items that make nothing happen by themselves, as polls do not either
}

// item holds no pointer, because the garbage collector would look at every move of one.
type item struct {
	at   timeline.Time
	seq  uint64
	who  int32 // node, job or task, by what
	what happening
}

// happening says what an item of the agenda is.
type happening uint8

const (
	arrival       happening = iota // of a job
	nodeHeartbeat                  // of a node
	jobHeartbeat                   // of a job's coordinator
	jobPoll                        // of a coordinator that waits to be granted itself
	jobFound                       // a poll will find that it has been: polls alone make nothing happen
	launched                       // a task
	ended                          // a task
	jobEnded                       // as its coordinator sees it
	woken                          // the policy
	phaseEnded                     // of the task of a node that is next to end one
	dying                          // a task, of what its fate says
	killed                         // a task
	struck                         // the cluster, by an incident
)

func (e *item) before(f *item) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

func (a *agenda) push(at timeline.Time, what happening, who int32) {
	e := item{at, a.turn(), who, what}
	switch what {
	case jobPoll:
		a.pushPoll(e)
		return
	case woken:
		a.wakes++
	}
	a.enter(e)
}

// turn returns the place among equals of what is entered now.
func (a *agenda) turn() uint64 {
	a.seq++
	return a.seq
}

// pushAt enters something in the place among equals that turn once returned.
func (a *agenda) pushAt(at timeline.Time, turn uint64, what happening, who int32) {
	a.enter(item{at, turn, who, what})
}

func (a *agenda) enter(e item) {
	a.items = append(a.items, e)
	i := len(a.items) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&a.items[up]) {
			break
		}
		a.items[i] = a.items[up]
		i = up
	}
	a.items[i] = e
}

// pushPoll drops those that are over before the queue would grow.
func (a *agenda) pushPoll(e item) {
	if len(a.polls) == cap(a.polls) && a.first > 0 {
		a.polls = a.polls[:copy(a.polls, a.polls[a.first:])]
		a.first = 0
	}
	a.polls = append(a.polls, e)
}

// pop returns what happens next; ok is false if nothing more will happen by itself.
func (a *agenda) pop() (next item, ok bool) {
	if len(a.items) == a.wakes {
		return item{}, false
	}
	if a.first < len(a.polls) && a.polls[a.first].before(&a.items[0]) {
		a.first++
		return a.polls[a.first-1], true
	}
	next = a.items[0]
	if next.what == woken {
		a.wakes--
	}
	last := len(a.items) - 1
	e := a.items[last]
	a.items = a.items[:last]
	if last > 0 {
		a.sink(e)
	}
	return next, true
}

// sink puts e, which the top must make room for, where it belongs.
func (a *agenda) sink(e item) {
	items := a.items
	i := 0
	for {
		least := 4*i + 1
		if least >= len(items) {
			break
		}
		for below := least + 1; below < min(4*i+5, len(items)); below++ {
			if items[below].before(&items[least]) {
				least = below
			}
		}
		if !items[least].before(&e) {
			break
		}
		items[i] = items[least]
		i = least
	}
	items[i] = e
}
