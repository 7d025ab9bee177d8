package policy

import (
	"fmt"
	"strings"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// queueTree is a hierarchy of queues. Jobs are in its leaves; a job that names no queue is in the leaf "default".
type queueTree struct {
	root   *queue
	all    []*queue // parents before children, in the order declared; the root is the first
	byName map[string]*queue
}

// queue is a node of the tree.
type queue struct {
	name     string // path from the root, its parts separated by dots; empty for the root
	index    int    // in queueTree.all
	parent   *queue // nil for the root
	children []*queue

	// share and most are its guaranteed and maximum shares of its parent, from 0 to 1; weight is its weight among its
	// siblings. A policy uses either the shares or the weight.
	share, most float64
	weight      float64

	// jobs are the jobs of a leaf that can start a task, in the order in which the policy serves them.
	jobs fairQueue
	// runnable counts the jobs in and below the queue that can start a task.
	runnable int
	// used adds up the use of the jobs in and below the queue.
	used resource.Vector
}

// defaultQueue takes the jobs that name no queue.
const defaultQueue = "default"

// parseQueues reads "NAME=VALUE,NAME=VALUE", or the empty text. The name of a child is the name of its parent, a dot
// and its own name; a child comes after its parent. value parses the VALUE of one queue.
func parseQueues(text string, value func(q *queue, text string) error) (*queueTree, error) {
	t := &queueTree{byName: map[string]*queue{}}
	t.add(&queue{share: 1, most: 1, weight: 1})
	if text == "" {
		return t, nil
	}
	for _, item := range strings.Split(text, ",") {
		name, v, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			return nil, fmt.Errorf("queue %q: must be NAME=VALUE", strings.TrimSpace(item))
		}
		q := &queue{name: name}
		at := strings.LastIndexByte(name, '.')
		switch {
		case at == 0 || !isQueueName(name[at+1:]):
			return nil, fmt.Errorf("queue %q: its name must be letters, digits, dashes and underscores, below another queue after that queue's name and a dot", name)
		case t.byName[name] != nil:
			return nil, fmt.Errorf("queue %q: is there twice", name)
		}
		if q.parent = t.byName[name[:max(0, at)]]; q.parent == nil {
			return nil, fmt.Errorf("queue %q: queue %q must stand before it", name, name[:at])
		}
		if err := value(q, strings.TrimSpace(v)); err != nil {
			return nil, fmt.Errorf("queue %q: %w", name, err)
		}
		t.add(q)
	}
	return t, nil
}

func isQueueName(name string) bool {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	return name != "" && !strings.ContainsFunc(name, odd)
}

func (t *queueTree) add(q *queue) {
	q.index = len(t.all)
	t.all = append(t.all, q)
	t.byName[q.name] = q
	if q.parent == nil {
		t.root = q
		return
	}
	q.parent.children = append(q.parent.children, q)
}

// leaf reports whether q may have jobs.
func (q *queue) leaf() bool { return len(q.children) == 0 }

// home returns the leaf of a job; nil if no queue has the name that the job gives.
func (t *queueTree) home(j *cluster.Job) *queue {
	name := j.Queue
	if name == "" {
		name = defaultQueue
	}
	if q := t.byName[name]; q != nil && q.leaf() {
		return q
	}
	return nil
}

// check returns an error if the queue of j does not exist.
func (t *queueTree) check(j *cluster.Job) error {
	if t.home(j) != nil {
		return nil
	}
	var leaves []string
	for _, q := range t.all {
		if q.leaf() {
			leaves = append(leaves, q.name)
		}
	}
	return fmt.Errorf("job %q queue %q: must be one of %s", j.Name, j.Queue, strings.Join(leaves, ", "))
}

// clear discards everything that was computed from jobs.
func (t *queueTree) clear() {
	for _, q := range t.all {
		q.jobs, q.runnable, q.used = fairQueue{}, 0, resource.Vector{}
	}
}

// member is a job in its leaf.
type member struct {
	job      *cluster.JobState
	leaf     *queue          // nil if the queue does not exist
	counted  resource.Vector // the job's part of the leaf's use
	runnable bool
}

// count updates the leaf of m, and the queues above, from the job.
func (m *member) count() {
	if m.leaf == nil {
		return
	}
	_, runnable := m.job.NextStage()
	more, change := 0, m.job.Used.Sub(m.counted)
	switch {
	case runnable && !m.runnable:
		more = 1
	case !runnable && m.runnable:
		more = -1
	}
	if more == 0 && change.IsZero() {
		return
	}
	m.counted, m.runnable = m.job.Used, runnable
	for q := m.leaf; q != nil; q = q.parent {
		q.used = q.used.Add(change)
		q.runnable += more
	}
}
