package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// IncidentKind is the kind of an incident.
type IncidentKind uint8

const (
	NodeLoss  IncidentKind = iota + 1 // Node leaves, with the tasks that run on it
	NodeJoin                          // New joins; it gets the next NodeID
	JobCancel                         // the owner cancels Job, unless it has ended
	// Node reports that it gives only Gives, because of other programs there; the simulated tasks are not slowed down
	NodePressure
	JobPause  // the owner pauses Job, unless it has not been submitted or has ended; PageOut
	JobResume // the owner resumes Job, if it is paused
)

// Incident is an event from outside the cluster at a given time. Each IncidentKind names the fields that it uses.
type Incident struct {
	At   time.Duration // from the origin of the workload
	Kind IncidentKind
	Node cluster.NodeID
	New  cluster.Node
	Job  cluster.JobID
	// PageOut says that the memory of what is paused is to be paged out.
	PageOut bool
	// Gives is what the node gives of each rate under pressure, and 0 of each other rate. The zero Vector ends the
	// pressure.
	Gives resource.Vector
}

// happens carries out an incident. An incident that has become void has no effect.
func (r *run) happens(i *Incident) {
	switch i.Kind {
	case NodeLoss:
		r.loseNode(i.Node)
	case NodeJoin:
		r.joinNode(i.New)
	case JobCancel:
		r.cancel(i.Job)
	case JobPause, JobResume:
		r.pause(i.Job, i.Kind == JobPause, i.PageOut)
	case NodePressure:
		if int(i.Node) < len(r.engine.Snapshot().Nodes) {
			r.reports = append(r.reports,
				report{event: cluster.Event{Kind: cluster.NodePressed, Node: i.Node, Found: &cluster.Condition{Bound: i.Gives}}})
		}
	}
}

func (r *run) loseNode(id cluster.NodeID) {
	nodes := r.engine.Snapshot().Nodes
	if int(id) >= len(nodes) || nodes[id].Gone {
		return
	}
	if r.keepers != nil {
		r.keepers[id].gone = true
	}
	var lost []*task
	events := r.events[:0]
	for _, t := range nodes[id].Tasks {
		if t := r.latest(t.ID); t.ended() && t.job.done { // its job has ended with it, and the end was reported
			events = append(events, cluster.Event{Kind: cluster.TaskEnded, Task: t.id, Node: id, Outcome: t.result.Outcome})
		} else {
			lost = append(lost, t)
		}
	}
	slices.SortFunc(lost, func(a, b *task) int { return int(a.index) - int(b.index) })
	for _, t := range lost {
		if t.ended() {
			if t.result.Outcome == cluster.Succeeded {
				r.forfeit(t)
			}
		} else {
			r.stop(t, cluster.Lost)
		}
	}
	r.endIdle(id, r.now)
	r.capacity.change(r.now, -nodes[id].Capacity[resource.Memory])
	if r.config.Series.Nodes {
		r.nodes[id].left = true
		r.recordNode(id)
	}
	r.events = append(events, cluster.Event{Kind: cluster.NodeLeft, Node: id})
	r.step(r.events)
	r.recordCapacity()
	r.protocol.left(id)
	for _, t := range lost {
		if r.err == nil {
			r.protocol.lost(t)
			r.afterLoss(t, cluster.Lost)
		}
	}
	r.protocol.freed()
}

func (r *run) joinNode(n cluster.Node) {
	n.ID = cluster.NodeID(len(r.engine.Snapshot().Nodes))
	r.capacity.change(r.now, n.Capacity[resource.Memory])
	if r.fluid {
		r.addNode(&n)
	}
	if r.keepers != nil {
		r.err = r.addKeeper(&n)
	}
	r.protocol.joined(n.ID)
	r.stepOne(cluster.Event{Kind: cluster.NodeJoined, NewNode: r.described(&n)})
	r.recordCapacity()
}

func (r *run) pause(id cluster.JobID, paused, pageOut bool) {
	state, here := r.engine.Snapshot().Job(id)
	if !here || state.Status.Ended() || state.PausedWhole() == paused {
		return
	}
	e := cluster.Event{Kind: cluster.JobPaused, Job: id}
	if e.SetCondition(cluster.Condition{PageOut: pageOut}); !paused {
		e = cluster.Event{Kind: cluster.JobResumed, Job: id}
	}
	r.stepOne(e)
	r.protocol.freed()
}

func (r *run) cancel(id cluster.JobID) {
	const why = "cancelled by its owner"
	j := r.byID[id]
	if j == nil || j.done || j.failing != "" {
		return
	}
	if !j.arrived {
		j.failing = why
		r.endJob(j)
		return
	}
	if state, here := r.engine.Snapshot().Job(id); !here || state.Status.Ended() {
		return // the job has ended, and only its coordinator has not noticed yet
	}
	j.failing = why
	r.stepOne(cluster.Event{Kind: cluster.JobCancelled, Job: id})
	if _, here := r.engine.Snapshot().Job(id); !here {
		r.endJob(j)
	}
	r.protocol.freed()
}

func checkIncidents(incidents []Incident) error {
	for n, i := range incidents {
		switch {
		case i.At < 0:
			return fmt.Errorf("incident %d at %v: must not be negative", n+1, i.At)
		case i.Kind < NodeLoss || i.Kind > JobResume:
			return fmt.Errorf("incident %d kind %d: unknown", n+1, i.Kind)
		case (i.Kind == NodeLoss || i.Kind == NodePressure) && i.Node < 0:
			return fmt.Errorf("incident %d node %d: must not be negative", n+1, i.Node)
		}
		for k, a := range i.Gives {
			if kind := resource.Kind(k); a < 0 || a > 0 && !kind.IsRate() {
				return fmt.Errorf("incident %d gives %d of %s: must be of rates, and not negative", n+1, a, kind)
			}
		}
		if i.Kind == NodeJoin {
			if err := checkNode(&i.New); err != nil {
				return fmt.Errorf("incident %d: %w", n+1, err)
			}
		}
	}
	return nil
}

// Failures says how nodes are lost at random.
type Failures struct {
	// Every is the mean time between two losses in the whole cluster, above 0; the times between losses are
	// exponential.
	Every time.Duration
	// Until is the latest time of a loss.
	Until time.Duration
	// Repair is the time from a loss until an equal node joins; 0: no node joins.
	Repair time.Duration
}

// RandomFailures draws losses of nodes; the same arguments give the same incidents. All nodes present are equally
// likely to be lost, except that the last node is never lost.
func RandomFailures(f Failures, nodes []cluster.Node, seed uint64) ([]Incident, error) {
	switch {
	case f.Every <= 0:
		return nil, fmt.Errorf("mean time between losses %v: must be positive", f.Every)
	case f.Until < 0 || f.Repair < 0:
		return nil, fmt.Errorf("losses until %v, repair after %v: must not be negative", f.Until, f.Repair)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	here := slices.Clone(nodes)
	next := cluster.NodeID(len(nodes))
	var coming, all []Incident
	for at := time.Duration(0); ; {
		at += time.Duration(random.ExpFloat64() * float64(f.Every))
		if at > f.Until || at < 0 {
			return append(all, coming...), nil
		}
		for len(coming) > 0 && coming[0].At <= at {
			n := coming[0].New
			n.ID = next
			next++
			here = append(here, n)
			all, coming = append(all, coming[0]), coming[1:]
		}
		if len(here) < 2 {
			continue
		}
		i := random.IntN(len(here))
		all = append(all, Incident{At: at, Kind: NodeLoss, Node: here[i].ID})
		if f.Repair > 0 {
			coming = append(coming, Incident{At: at + f.Repair, Kind: NodeJoin, New: here[i]})
		}
		here = slices.Delete(here, i, i+1)
	}
}
