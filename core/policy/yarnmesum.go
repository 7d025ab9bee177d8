package policy

import (
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// sum estimates ends of jobs by adding up estimates. YARN-ME section 3.2 "iterates over all the nodes, adding up the
// task duration estimates of the executing and queued tasks", and does not say which queued task goes to which node.
// Instead of a timeline per node, sum has one pool of memory × time as large as the cluster.
//
// It adds up memory × time, as shares of the whole cluster: what running tasks will still use; what reserved nodes keep
// idle until the waiting task fits; and what queued tasks will use, each counted with its part of a node (a task of 6
// GB on a node of 10 GB keeps equal tasks from the other 4 GB). Under fair sharing, a job of work w shares the cluster
// with every other job until one of them has no more queued tasks, so that it waits for the sum of min(w, work of the
// other job).
type sum struct {
	outlook book.Outlook
	nodes   []nodeWork              // by NodeID
	work    []jobWork               // by ascending queued work
	known   map[*book.JobState]bool // the jobs in work
	node    resource.Vector         // the largest node, which stands for all nodes in partOfNode
}

// Estimate implements timelineGenerator.
func (s *sum) Estimate(now timeline.Time, p *book.Plan) {
	capacity := float64(p.Capacity[resource.Memory])
	busy := s.committed(now, p)
	s.measure(p)
	smaller := 0.0 // sum over the jobs with less queued work
	for i := range s.work {
		w := &s.work[i]
		ahead := smaller + w.queued*float64(len(s.work)-i)
		smaller += w.queued
		end := max(now.Add(w.still), w.running)
		if w.longest > 0 {
			end = max(end, p.LaunchTime(w.submitted, now).Add(w.longest))
			if capacity > 0 {
				end = max(end, now.Add(seconds((busy+ahead)/capacity)))
			}
		}
		p.EstimateEnd(w.job, end, w.known)
		p.EstimateAllStarted(w.job, max(now, end.Add(-w.longest)), w.known && w.longest > 0)
	}
}

// DropCaches implements timelineGenerator.
func (s *sum) DropCaches() { *s = sum{} }

func seconds(s float64) time.Duration { return time.Duration(min(s, 1e9) * 1e9) }

// nodeWork is the committed memory × time of one node, computed once for each version of the node.
type nodeWork struct {
	version uint64
	valid   bool
	held    resource.Amount // memory of tasks with a known end, bytes
	ends    timeline.Area   // the same memory × the time when it is freed, since the origin
	first   timeline.Time   // the earliest of those ends: after it, some task is overdue; the past if a task stands still
	kept    resource.Amount // memory that a reservation keeps idle, bytes
	until   timeline.Time   // when the reservation should be used; meaningful if kept > 0
}

// committed adds up the memory × time, in byte-seconds, that is not available to queued tasks.
func (s *sum) committed(now timeline.Time, p *book.Plan) float64 {
	if len(s.nodes) != len(p.Nodes) {
		s.nodes = make([]nodeWork, len(p.Nodes))
	}
	var total timeline.Area
	for i, n := range p.Nodes {
		w := &s.nodes[i]
		if !w.valid || w.version != n.Version || now > w.first {
			*w = s.commit(now, p, n)
		}
		total = total.Add(w.ends).Sub(timeline.AreaOf(w.held, now))
		if w.until > now {
			total = total.Add(timeline.AreaOf(w.kept, w.until-now))
		}
	}
	return total.UnitSeconds()
}

func (s *sum) commit(now timeline.Time, p *book.Plan, n *book.NodeState) nodeWork {
	w := nodeWork{version: n.Version, valid: true, first: timeline.Never}
	for _, t := range n.Tasks {
		if end, ok := p.EstimatedEnd(t, now); ok && end > now {
			memory := t.Grant[resource.Memory]
			w.held += memory
			w.ends = w.ends.Add(timeline.AreaOf(memory, end))
			if w.first = min(w.first, end); t.Suspended {
				w.first = timeline.Earliest
			}
		}
	}
	if n.ReservedFor != nil {
		need := n.ReservedNeed()
		s.outlook.Look(n, func(t *book.TaskState) (timeline.Time, bool) { return p.EstimatedEnd(t, now) })
		if until, ok := s.outlook.RoomAfterEnd(need.FitsIn); ok {
			w.kept, w.until = n.Free[resource.Memory], until
		}
	}
	return w
}
