package book

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Suit is how a node suits the tasks of a job.
type Suit struct {
	Node  cluster.NodeID
	Keeps bool // the node keeps something of the job: a task of it starts sooner there
	Fails bool // what the job ran there has failed
}

// suit records how a node suits a job. A job that has ended starts nothing any more.
func (s *Snapshot) suit(node cluster.NodeID, job cluster.JobID, c cluster.Condition) error {
	if _, err := s.node(node); err != nil {
		return err
	}
	if j := s.byJob[job]; j != nil {
		j.suit(Suit{node, c.Keeps, c.Fails})
	}
	return nil
}

func (j *JobState) suit(is Suit) {
	at, known := j.findSuit(is.Node)
	if known {
		j.Suits = slices.Delete(j.Suits, at, at+1)
	}
	if is != (Suit{Node: is.Node}) {
		j.Suits = slices.Insert(j.Suits, at, is)
	}
}

func (j *JobState) findSuit(node cluster.NodeID) (at int, known bool) {
	return slices.BinarySearchFunc(j.Suits, node, func(s Suit, id cluster.NodeID) int { return cmp.Compare(s.Node, id) })
}

// SuitOf returns how a node suits j.
func (j *JobState) SuitOf(node cluster.NodeID) Suit {
	if at, known := j.findSuit(node); known {
		return j.Suits[at]
	}
	return Suit{Node: node}
}

// FailsOn reports whether what j ran on a node has failed.
func (j *JobState) FailsOn(node cluster.NodeID) bool { return j.SuitOf(node).Fails }

// suited returns the events that say how nodes suit j.
func (j *JobState) suited() (all []cluster.Event) {
	for _, is := range j.Suits {
		all = append(all, cluster.Event{Kind: cluster.NodeSuits, Node: is.Node, Job: j.ID,
			Found: &cluster.Condition{Keeps: is.Keeps, Fails: is.Fails}})
	}
	return all
}
