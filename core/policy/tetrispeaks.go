package policy

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// peaks are what a task needs, and the same with the peaks of its forecast, if it has one, where they are larger.
type peaks struct{ ideal, most resource.Vector }

func peaksOf(s *cluster.Stage) peaks {
	d := peaks{s.Ideal, s.Ideal}
	if len(s.Phases) > 0 {
		peak := s.Peak()
		for _, k := range peakKinds {
			d.most[k] = max(d.most[k], peak[k])
		}
	}
	return d
}

// peakKinds are the resources whose peak a task is granted.
var peakKinds = []resource.Kind{resource.Disk, resource.Network}

// on is what the task is granted on n. A peak above what n has when nothing runs there is cut to that, so that the
// task can run there alone.
func (d *peaks) on(n *book.NodeState) resource.Vector {
	grant := d.ideal
	if d.ideal != d.most {
		room := n.Room()
		for _, k := range peakKinds {
			grant[k] = max(d.ideal[k], min(d.most[k], room[k]))
		}
	}
	return grant
}

// lacksPeak says which peak of a stage's task is not free on the first node with room for what the task needs; ok is
// false if there is no such node, or if the task fits there.
func lacksPeak(s *book.Snapshot, stage *cluster.Stage) (why cluster.Reason, ok bool) {
	d := peaksOf(stage)
	if n, ok := s.FirstOpen(d.ideal, 0); ok && d.ideal != d.most {
		grant := d.on(n)
		for _, k := range peakKinds {
			if grant[k] > n.Free[k] {
				return cluster.BecauseNoBandwidth(k, grant[k]), true
			}
		}
	}
	return cluster.Reason{}, false
}
