package memory

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// books are the rooms of containers, counted from the inputs and actions of a manager alone.
type books struct {
	limits map[cluster.ContainerID]resource.Amount // in force
	open   map[cluster.ContainerID][]Action        // resizes that may come into force
	of     map[ActionID]cluster.ContainerID        // actions without an outcome yet
}

func newBooks() *books {
	return &books{map[cluster.ContainerID]resource.Amount{}, map[cluster.ContainerID][]Action{},
		map[ActionID]cluster.ContainerID{}}
}

// follow updates the books for one step.
func (b *books) follow(in *Input, actions []Action, min func(cluster.ContainerID) resource.Amount) {
	for _, s := range in.Started {
		b.limits[s.Container] = s.Limit
	}
	for _, o := range in.Outcomes {
		if id, ok := b.of[o.Action]; ok {
			b.limits[id] = o.Limit
			b.open[id] = slices.DeleteFunc(b.open[id], func(a Action) bool { return a.ID <= o.Action })
		}
	}
	for _, id := range in.Ended {
		delete(b.limits, id)
		delete(b.open, id)
	}
	for _, a := range actions {
		b.of[a.ID] = a.Container
		switch a.Kind {
		case Admit:
			b.limits[a.Container] = max(min(a.Container), a.Limit)
		case Grow, Shrink:
			b.open[a.Container] = append(b.open[a.Container], a)
		}
	}
}

func (b *books) rooms() (sum resource.Amount) {
	for id, room := range b.limits {
		for _, a := range b.open[id] {
			room = max(room, a.Limit)
		}
		sum += room
	}
	return sum
}

// audit returns what is wrong with the ledger of a manager after a step that took the given actions: memory = the rooms
// of all containers + awaited + reserve + claimed + owed + free. Each term is counted again here.
func audit(m *Manager, actions []Action) error {
	l := m.ledger()
	var rooms, coming, awaited, claimed, owed resource.Amount
	for _, c := range m.containers {
		if err := auditContainer(m, c); err != nil {
			return fmt.Errorf("%v: %w", c.Container, err)
		}
		room := max(c.limit, c.target)
		for _, a := range c.overdue {
			room = max(room, a.Limit)
		}
		rooms, owed = rooms+room, owed+c.owed
		if p := c.pending; p != nil && (p.Kind == Kill || p.Kind == End) {
			coming += c.limit
		} else if p != nil && p.Kind == Shrink {
			coming += c.limit - p.Limit
		}
	}
	for i := len(m.requests) - 1; i >= 0; i-- {
		if !m.requests[i].claim {
			awaited = m.requests[i].Min
		}
	}
	for _, r := range m.requests {
		owed += r.owed
		if r.claim && claimed+r.Min <= m.node.Memory {
			claimed += r.Min
		}
	}
	if m.unmet {
		owed = 0
	}
	reserve := m.node.Memory - resource.Amount(m.p.Stop*float64(m.node.Memory))
	switch {
	case rooms+awaited+reserve+claimed+owed+l.free() != m.node.Memory:
		return fmt.Errorf("memory %d is not rooms %d + awaited %d + reserve %d + claimed %d + owed %d + free %d",
			m.node.Memory, rooms, awaited, reserve, claimed, owed, l.free())
	case rooms != l.allocated:
		return fmt.Errorf("rooms add up to %d: %d are allocated", rooms, l.allocated)
	case coming != l.coming:
		return fmt.Errorf("%d are coming: %d are counted", coming, l.coming)
	case len(m.ordered) != len(m.containers):
		return fmt.Errorf("%d containers are ordered of %d", len(m.ordered), len(m.containers))
	}
	for _, c := range m.ordered {
		if s := recount(m, c.Owner); s != m.stake(c.Owner) {
			return fmt.Errorf("the stake of %q is %+v, not %+v", c.Owner, s, m.stake(c.Owner))
		}
	}
	acted := map[cluster.ContainerID]bool{}
	for _, a := range actions {
		switch again := acted[a.Container]; {
		case a.Kind == Admit || a.Kind == Refuse:
		case a.Kind == Grow && left(l, a) < 0:
			return fmt.Errorf("%v grows, and there are %d bytes too few", a.Container, -left(l, a))
		case again && a.Kind != Kill && a.Kind != End:
			return fmt.Errorf("%v gets two actions in a step", a.Container)
		default:
			acted[a.Container] = true
		}
	}
	return nil
}

// recount counts the containers of one owner again.
func recount(m *Manager, owner string) stake {
	s := stake{owner: owner, newest: -1}
	for _, c := range m.ordered {
		if c.Owner != owner {
			continue
		}
		least := c.room()
		if c.flex() {
			least, s.used = min(least, c.Min), s.used+m.used(c)
		}
		if s.rooms, s.least = s.rooms+c.room(), s.least+least; c.Rank >= s.newest {
			s.quota, s.newest = c.Quota, c.Rank
		}
	}
	return s
}

// left is what a step leaves of the memory that a growth may take: a container that gets its Min goes before a
// request that waits.
func left(l ledger, growth Action) resource.Amount {
	if growth.Reason.Code == LeastRaised {
		return l.unallocated()
	}
	return l.available()
}

// auditContainer returns an impossible state of a container.
func auditContainer(m *Manager, c *container) error {
	p, at := c.pending, c.place
	// An end is under way until the container has ended.
	answered := p != nil && (p.Kind == Kill || p.Kind == End) && m.acting[p.ID] == nil
	switch {
	case !slices.Contains(m.ordered, c):
		return fmt.Errorf("is not ordered")
	case !c.flex() && (c.state.suspended() || c.mayPage || c.short || c.atRisk || c.wants() || at.standing != ranked):
		return fmt.Errorf("is REGULAR: %+v", c)
	case p == nil && c.target != c.limit:
		return fmt.Errorf("is to have %d, has %d, and no resize is under way", c.target, c.limit)
	case p != nil && (p.Kind == Grow || p.Kind == Shrink) && c.target != p.Limit:
		return fmt.Errorf("is to have %d and %d", c.target, p.Limit)
	case p != nil && m.acting[p.ID] != c && !answered:
		return fmt.Errorf("does not get its answer")
	case (at.standing == onTurn) != (at.turn > 0), at.standing == onTurn && m.p.Strategy != InOrder,
		at.standing == promoted && m.p.Strategy == InOrder, at.standing == yielding && m.p.Stall == 0:
		return fmt.Errorf("cannot have its place: %+v", at)
	}
	return nil
}
