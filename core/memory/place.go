package memory

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// standing says why a container has its place. Greater values come later, but between promoted and ranked the job
// decides first.
//
//	from        to         when
//	ranked      promoted   it has been suspended for half of its tolerance (backoff)
//	promoted    ranked     it is resumed
//	any         onTurn     it has been suspended for its tolerance (inOrder)
//	onTurn      ranked     its turn is over
//	any         yielding   it makes no progress while other containers lack memory
//	yielding    ranked     it has been awake for long enough, or no container lacks memory
//	any         ranked     its envelope changes
type standing uint8

const (
	onTurn   standing = iota // before all others, by the number of its turn
	promoted                 // right before the job of the given duration and rank, which comes before its own
	ranked                   // by duration and rank of its job
	yielding                 // after all others, by duration and rank
)

// place is where a container stands in the order in which containers are served. Ranked containers of one job share it.
type place struct {
	standing standing
	turn     int64         // onTurn only: turns are numbered from 1
	duration time.Duration // expected, of the job; 0 unless shortest jobs come first
	rank     int
}

// ranked is the usual place of a container.
func (p *Parameters) ranked(e *Envelope) place {
	at := place{standing: ranked, rank: e.Rank}
	if p.Order == ShortestFirst {
		at.duration = e.Duration
		if at.duration <= 0 {
			at.duration = math.MaxInt64
		}
	}
	return at
}

// group puts promoted and ranked together.
func (s standing) group() standing {
	if s == promoted {
		return ranked
	}
	return s
}

func comparePlaces(a, b place) int {
	if a.standing != b.standing || a.turn != b.turn {
		if c := cmp.Or(cmp.Compare(a.standing.group(), b.standing.group()), cmp.Compare(a.turn, b.turn)); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(a.duration, b.duration), cmp.Compare(a.rank, b.rank), cmp.Compare(a.standing, b.standing))
}

// byPlace compares containers by place. Containers with the same place are in the order of their IDs.
func byPlace(a, b *container) int {
	return cmp.Or(comparePlaces(a.place, b.place), compareIDs(a.Container, b.Container))
}

func compareIDs(a, b cluster.ContainerID) int {
	return cmp.Or(cmp.Compare(a.Task.Job, b.Task.Job), cmp.Compare(a.Task.Stage, b.Task.Stage),
		cmp.Compare(a.Task.Index, b.Task.Index), cmp.Compare(a.Run, b.Run))
}

// move gives c another place. The caller sorts after its last move.
func (m *Manager) move(c *container, to place) { c.place, m.unsorted = to, true }

// sort puts containers in the order of their places, if one has moved or is new.
func (m *Manager) sort() {
	if m.unsorted {
		slices.SortFunc(m.ordered, byPlace)
		m.unsorted = false
	}
}
