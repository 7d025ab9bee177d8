package queue

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Tree is a hierarchy of queues. Jobs are in its leaves: a job that names no queue is in the leaf "default". If no
// queues are declared, all jobs are in the root. A policy keeps a Q with each queue and a J with each job.
type Tree[Q, J any] struct {
	Root    *Queue[Q]
	All     []*Queue[Q] // parents before children, in the order declared; the root is the first
	byName  map[string]*Queue[Q]
	Members map[*book.JobState]*Member[Q, J] // nil until changed is called
}

// Queue is a node of the tree.
type Queue[Q any] struct {
	Name     string    // path from the root, its parts separated by dots; empty for the root
	Parent   *Queue[Q] // nil for the root
	Children []*Queue[Q]

	// runnable counts the jobs in and below the queue that can start a task.
	Runnable int
	// used adds up the use of the jobs in and below the queue.
	Used resource.Vector

	Own Q
}

// Member is a job in its leaf.
type Member[Q, J any] struct {
	Job      *book.JobState
	Leaf     *Queue[Q]       // nil if the queue does not exist
	Counted  resource.Vector // the job's part of the leaf's use
	Runnable bool

	Own J
}

// defaultQueue takes the jobs that name no queue.
const defaultQueue = "default"

// Parse reads "NAME=VALUE,NAME=VALUE", or the empty text. The name of a child is the name of its parent, a dot and its
// own name; a child comes after its parent. value parses the VALUE of one queue.
func (t *Tree[Q, J]) Parse(text string, value func(own *Q, text string) error) error {
	t.byName = map[string]*Queue[Q]{}
	t.Root = t.add(&Queue[Q]{})
	if text == "" {
		return nil
	}
	for _, item := range strings.Split(text, ",") {
		name, v, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			return fmt.Errorf("queue %q: must be NAME=VALUE", strings.TrimSpace(item))
		}
		q := &Queue[Q]{Name: name}
		at := strings.LastIndexByte(name, '.')
		switch {
		case at == 0 || !isQueueName(name[at+1:]):
			return fmt.Errorf("queue %q: its name must be letters, digits, dashes and underscores, after the name of its "+
				"parent queue and a dot if it has a parent", name)
		case t.byName[name] != nil:
			return fmt.Errorf("queue %q: given twice", name)
		}
		if q.Parent = t.byName[name[:max(0, at)]]; q.Parent == nil {
			return fmt.Errorf("queue %q: its parent queue %q must be given before it", name, name[:at])
		}
		if err := value(&q.Own, strings.TrimSpace(v)); err != nil {
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

func (t *Tree[Q, J]) add(q *Queue[Q]) *Queue[Q] {
	t.All = append(t.All, q)
	t.byName[q.Name] = q
	if q.Parent != nil {
		q.Parent.Children = append(q.Parent.Children, q)
	}
	return q
}

// Leaf reports whether q may have jobs.
func (q *Queue[Q]) Leaf() bool { return len(q.Children) == 0 }

// Home returns the leaf of a job; nil if no queue has the name that the job gives.
func (t *Tree[Q, J]) Home(j *cluster.Job) *Queue[Q] {
	if t.Root.Leaf() {
		return t.Root
	}
	if q := t.byName[cmp.Or(j.Queue, defaultQueue)]; q != nil && q.Leaf() {
		return q
	}
	return nil
}

// Check returns an error if the queue of j does not exist.
func (t *Tree[Q, J]) Check(j *cluster.Job) error {
	if t.Home(j) != nil {
		return nil
	}
	var leaves []string
	for _, q := range t.All {
		if q.Leaf() {
			leaves = append(leaves, q.Name)
		}
	}
	return fmt.Errorf("job %q queue %q: must be one of %s", j.Name, j.Queue, cluster.ClipList(leaves, ", "))
}

// Changed returns the jobs to update: the jobs that changed, or all jobs if the tree has no jobs yet.
func (t *Tree[Q, J]) Changed(p *book.Plan) []*book.JobState {
	if t.Members != nil {
		return p.Changes.Jobs
	}
	t.Members = make(map[*book.JobState]*Member[Q, J], len(p.Jobs))
	for _, q := range t.All {
		q.Runnable, q.Used = 0, resource.Vector{}
	}
	return p.Jobs
}

// Update brings what is known of one job up to date. file puts the job in its place in its leaf, and calls count.
func (t *Tree[Q, J]) Update(j *book.JobState, file func(*Member[Q, J])) {
	m := t.Members[j]
	if m == nil {
		if j.Retired() {
			return
		}
		m = &Member[Q, J]{Job: j, Leaf: t.Home(j.Job)}
		t.Members[j] = m
	}
	if m.Leaf != nil {
		file(m)
	}
	if j.Retired() {
		delete(t.Members, j)
	}
}

// Count updates the leaf of m, and the queues above, from the job.
func (m *Member[Q, J]) Count() {
	_, runnable := m.Job.NextStage()
	more, change := 0, m.Job.Used.Sub(m.Counted)
	switch {
	case runnable && !m.Runnable:
		more = 1
	case !runnable && m.Runnable:
		more = -1
	}
	if more == 0 && change.IsZero() {
		return
	}
	m.Counted, m.Runnable = m.Job.Used, runnable
	for q := m.Leaf; q != nil; q = q.Parent {
		q.Used = q.Used.Add(change)
		q.Runnable += more
	}
}
