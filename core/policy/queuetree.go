package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// queueTree is a hierarchy of queues. Jobs are in its leaves: a job that names no queue is in the leaf "default". If no
// queues are declared, all jobs are in the root. A policy keeps a Q with each queue and a J with each job.
type queueTree[Q, J any] struct {
	root    *queue[Q]
	all     []*queue[Q] // parents before children, in the order declared; the root is the first
	byName  map[string]*queue[Q]
	members map[*book.JobState]*member[Q, J] // nil until changed is called
}

// queue is a node of the tree.
type queue[Q any] struct {
	name     string    // path from the root, its parts separated by dots; empty for the root
	parent   *queue[Q] // nil for the root
	children []*queue[Q]

	// runnable counts the jobs in and below the queue that can start a task.
	runnable int
	// used adds up the use of the jobs in and below the queue.
	used resource.Vector

	own Q
}

// member is a job in its leaf.
type member[Q, J any] struct {
	job      *book.JobState
	leaf     *queue[Q]       // nil if the queue does not exist
	counted  resource.Vector // the job's part of the leaf's use
	runnable bool

	own J
}

// defaultQueue takes the jobs that name no queue.
const defaultQueue = "default"

// parse reads "NAME=VALUE,NAME=VALUE", or the empty text. The name of a child is the name of its parent, a dot and its
// own name; a child comes after its parent. value parses the VALUE of one queue.
func (t *queueTree[Q, J]) parse(text string, value func(own *Q, text string) error) error {
	t.byName = map[string]*queue[Q]{}
	t.root = t.add(&queue[Q]{})
	if text == "" {
		return nil
	}
	for _, item := range strings.Split(text, ",") {
		name, v, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			return fmt.Errorf("queue %q: must be NAME=VALUE", strings.TrimSpace(item))
		}
		q := &queue[Q]{name: name}
		at := strings.LastIndexByte(name, '.')
		switch {
		case at == 0 || !isQueueName(name[at+1:]):
			return fmt.Errorf("queue %q: its name must be letters, digits, dashes and underscores, after the name of its "+
				"parent queue and a dot if it has a parent", name)
		case t.byName[name] != nil:
			return fmt.Errorf("queue %q: given twice", name)
		}
		if q.parent = t.byName[name[:max(0, at)]]; q.parent == nil {
			return fmt.Errorf("queue %q: its parent queue %q must be given before it", name, name[:at])
		}
		if err := value(&q.own, strings.TrimSpace(v)); err != nil {
			return fmt.Errorf("queue %q: %w", name, err)
		}
		t.add(q)
	}
	return nil
}

func isQueueName(name string) bool {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	return name != "" && !strings.ContainsFunc(name, odd)
}

func (t *queueTree[Q, J]) add(q *queue[Q]) *queue[Q] {
	t.all = append(t.all, q)
	t.byName[q.name] = q
	if q.parent != nil {
		q.parent.children = append(q.parent.children, q)
	}
	return q
}

// leaf reports whether q may have jobs.
func (q *queue[Q]) leaf() bool { return len(q.children) == 0 }

// home returns the leaf of a job; nil if no queue has the name that the job gives.
func (t *queueTree[Q, J]) home(j *cluster.Job) *queue[Q] {
	if t.root.leaf() {
		return t.root
	}
	if q := t.byName[cmp.Or(j.Queue, defaultQueue)]; q != nil && q.leaf() {
		return q
	}
	return nil
}

// check returns an error if the queue of j does not exist.
func (t *queueTree[Q, J]) check(j *cluster.Job) error {
	if t.home(j) != nil {
		return nil
	}
	var leaves []string
	for _, q := range t.all {
		if q.leaf() {
			leaves = append(leaves, q.name)
		}
	}
	return fmt.Errorf("job %q queue %q: must be one of %s", j.Name, j.Queue, cluster.ClipList(leaves, ", "))
}

// changed returns the jobs to update: the jobs that changed, or all jobs if the tree has no jobs yet.
func (t *queueTree[Q, J]) changed(p *book.Plan) []*book.JobState {
	if t.members != nil {
		return p.Changes.Jobs
	}
	t.members = make(map[*book.JobState]*member[Q, J], len(p.Jobs))
	for _, q := range t.all {
		q.runnable, q.used = 0, resource.Vector{}
	}
	return p.Jobs
}

// update brings what is known of one job up to date. file puts the job in its place in its leaf, and calls count.
func (t *queueTree[Q, J]) update(j *book.JobState, file func(*member[Q, J])) {
	m := t.members[j]
	if m == nil {
		if j.Retired() {
			return
		}
		m = &member[Q, J]{job: j, leaf: t.home(j.Job)}
		t.members[j] = m
	}
	if m.leaf != nil {
		file(m)
	}
	if j.Retired() {
		delete(t.members, j)
	}
}

// count updates the leaf of m, and the queues above, from the job.
func (m *member[Q, J]) count() {
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
