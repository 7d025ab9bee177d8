package mira

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/share"
)

// miraQueue is what is kept with a queue.
type miraQueue struct {
	share.Claim            // but for Demand and Held
	at          int        // its place in levels
	apps        []*miraApp // of a leaf, those that demand executors; for the division in progress
	held        int        // executors of its jobs; for the assignments in progress
}

func (m *mira) declareQueues(s *contract.Settings) {
	queues := s.Declare("queues", "",
		"queues with their weights and, if wanted, the least and the most executors that they are granted, such as "+
			"prod=3:10..,prod.etl=1,prod.web=2:..20,adhoc=1:5..50; jobs name a leaf, and jobs without a queue are in the "+
			"leaf default; without "+
			"queues all jobs are equal, whatever queue they name")
	if err := m.tree.Parse(queues.Text, readMiraQueue); err != nil {
		queues.Reject(err)
		return
	}
	if m.paper && !m.tree.Root.Leaf() {
		queues.Fail("empty with the rule of the paper, which has no queues")
	}
	m.tree.Root.Own.Weight = 1
	m.levels = []*queue.Queue[miraQueue]{m.tree.Root}
	for i := 0; i < len(m.levels); i++ {
		m.levels[i].Own.at = i
		m.levels = append(m.levels, m.levels[i].Children...)
	}
}

// readMiraQueue reads WEIGHT, WEIGHT:MIN.., WEIGHT:..MAX or WEIGHT:MIN..MAX.
func readMiraQueue(q *miraQueue, text string) error {
	weight, bounds, bounded := strings.Cut(text, ":")
	w, err := strconv.ParseFloat(weight, 64)
	if err != nil || !(w >= 0.001 && w <= share.MaxWeight/1000) {
		return fmt.Errorf("weight %q: must be a number from 0.001 to %d", weight, int64(share.MaxWeight/1000))
	}
	q.Weight = int64(math.Round(w * 1000))
	if !bounded {
		return nil
	}
	least, most, ok := strings.Cut(bounds, "..")
	number := func(text string, lowest int) (n int) {
		if text != "" {
			if n, err = strconv.Atoi(text); err != nil || n < lowest || n > share.MaxClaims {
				ok = false
			}
		}
		return n
	}
	q.Min, q.Max = number(least, 0), number(most, 1)
	if !ok || q.Max > 0 && q.Min > q.Max {
		return fmt.Errorf("executors %q: must be MIN.., ..MAX or MIN..MAX, whole numbers up to %d", bounds, share.MaxClaims)
	}
	return nil
}

// entitle divides the executors among the jobs.
func (m *mira) entitle(p *book.Plan) {
	m.executors = p.Present
	for _, q := range m.levels {
		q.Own.apps = q.Own.apps[:0]
	}
	for _, j := range p.Jobs {
		if a := m.app(j); a != nil {
			if a.entitled = 0; a.demand > 0 {
				a.leaf.Own.apps = append(a.leaf.Own.apps, a)
			}
		}
	}
	m.nodes = m.nodes[:0]
	for _, q := range m.levels {
		m.nodes = append(m.nodes, share.Node{Claim: q.Own.Claim, Children: len(q.Children)})
		if len(q.Children) > 0 {
			m.nodes[q.Own.at].First = q.Children[0].Own.at
		}
	}
	for _, q := range m.levels {
		n := &m.nodes[q.Own.at]
		if q.Leaf() {
			n.First, n.Children = len(m.nodes), len(q.Own.apps)
		}
		for _, a := range q.Own.apps {
			m.nodes = append(m.nodes,
				share.Node{Claim: share.Claim{Weight: shareWeight(a.job), Demand: a.demand, Held: a.job.Reservations}})
		}
	}
	m.divide()
	next := len(m.levels)
	m.limits = false
	for _, q := range m.levels {
		limited := limited(q)
		for _, a := range q.Own.apps {
			// It would be asked at once for what it has above that.
			a.entitled, a.limited = m.granted[next], limited || a.job.Drives
			m.limits = m.limits || a.limited
			next++
		}
	}
}

// divide divides the executors among the nodes.
func (m *mira) divide() {
	for len(m.granted) < len(m.nodes) {
		m.granted = append(m.granted, 0)
	}
	if !m.paper {
		m.fair.DivideTree(m.executors, m.nodes, m.granted[:len(m.nodes)])
		return
	}
	m.claims = m.claims[:0]
	for _, n := range m.nodes[1:] {
		m.claims = append(m.claims, n.Claim)
	}
	share.Mira(m.executors, m.claims, m.granted[1:len(m.nodes)])
}

// limited reports whether q, or a queue that it is in, is never granted more than some number of executors.
func limited(q *queue.Queue[miraQueue]) bool {
	for ; q != nil; q = q.Parent {
		if q.Own.Max > 0 {
			return true
		}
	}
	return false
}

// count works out how many executors the jobs of each queue hold.
func (m *mira) count(p *book.Plan) {
	if m.tree.Root.Leaf() {
		return
	}
	for _, q := range m.levels {
		q.Own.held = 0
	}
	for _, j := range p.Jobs {
		if a := m.app(j); a != nil && a.leaf != nil {
			hold(a.leaf, j.Reservations)
		}
	}
}

// hold notes that a job of q holds more executors.
func hold(q *queue.Queue[miraQueue], more int) {
	for ; q != nil; q = q.Parent {
		q.Own.held += more
	}
}

// full reports whether the jobs of q, or of a queue that it is in, hold as many executors as they may. That a job
// holds more than it is entitled to does not let another one of its queue exceed that.
func full(q *queue.Queue[miraQueue]) bool {
	for ; q != nil; q = q.Parent {
		if q.Own.Max > 0 && q.Own.held >= q.Own.Max {
			return true
		}
	}
	return false
}
