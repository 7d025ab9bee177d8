package scenarios

import (
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// paging says where the memory of a run is.
type paging struct {
	wanted bool            // by the newest order: it is to be out
	out    resource.Amount // what is not in memory
	coming resource.Amount // what is on its way back
	moves  int             // counts moves, so that the end of one that was turned round is void
}

// returns reports whether a run waits for its memory.
func (p *process) returns() bool { return !p.wanted && p.out+p.coming > 0 }

// turnOut makes the memory of a run go out, or come back.
func (w *world) turnOut(p *process, out bool) {
	if p.wanted == out {
		return
	}
	p.wanted = out
	p.moves++
	switch {
	case !out && p.out+p.coming > 0:
		w.returning = append(w.returning, p)
	case out && p.out+p.coming > 0:
		p.out, p.coming = p.out+p.coming, 0
	case out:
		w.move(p, func() {
			p.out = p.has
			w.saysOut(p)
		})
	}
}

// move does something when the memory of a run has moved.
func (w *world) move(p *process, do func()) {
	moves, takes := p.moves, time.Duration(0) // at once, unless the scenario says how fast
	if w.s.outSpeed > 0 {
		takes = time.Duration(math.Ceil(float64(p.has) * 1e9 / float64(w.s.outSpeed)))
	}
	w.enter(w.now.Add(takes), func() {
		if p.moves == moves && !p.over {
			do()
		}
	})
}

func (w *world) saysOut(p *process) {
	e := cluster.Event{Kind: cluster.TaskPagedOut, Task: p.task, Node: p.node, Run: p.run}
	e.SetCondition(cluster.Condition{Out: p.out})
	w.say(e)
}

// bringBack lets memory come back where it is free.
func (w *world) bringBack() {
	var waits []*process
	for _, p := range w.returning {
		switch {
		case p.over || p.wanted || p.out == 0:
		case p.out > w.free(p.node):
			waits = append(waits, p)
		default:
			p.out, p.coming = 0, p.out
			w.move(p, func() {
				p.coming = 0
				w.saysOut(p)
				w.stand(p)
			})
		}
	}
	w.returning = waits
}

// free is the memory of a node that no run has.
func (w *world) free(n cluster.NodeID) resource.Amount {
	free := w.s.nodes[n].Capacity[resource.Memory]
	for _, p := range w.runs {
		if !p.over && p.node == n {
			free -= p.has - p.out
		}
	}
	return free
}
