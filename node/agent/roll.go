package agent

import (
	"maps"
	"slices"
	"sync"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// roll has the containers that are being started or run. The zero value has none.
type roll struct {
	mu  sync.Mutex
	all map[cluster.ContainerID]*container
}

// add adds a container, unless there is one of that name.
func (r *roll) add(c *container) (added bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, twice := r.all[c.id]; twice {
		return false
	}
	if r.all == nil {
		r.all = map[cluster.ContainerID]*container{}
	}
	r.all[c.id] = c
	return true
}

// drop removes a container; there need not be one.
func (r *roll) drop(id cluster.ContainerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, id)
}

// get returns a container, and whether it has a group; nil if there is none.
func (r *roll) get(id cluster.ContainerID) (c *container, started bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.all[id]
	return c, c != nil && c.group != nil
}

// made notes the record of a container, and its group, nil if it has none.
func (r *roll) made(c *container, s *spec, g *cgroup.Group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.spec = s; g != nil {
		c.group, c.kept = g, c.keep(g, s)
	}
}

// each returns all containers.
func (r *roll) each() []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.all))
}

// kept returns what the keeper keeps of each container, nil of one that has no group yet.
func (r *roll) kept() map[cluster.ContainerID]*keeper.Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make(map[cluster.ContainerID]*keeper.Container, len(r.all))
	for id, c := range r.all {
		kept[id] = c.kept
	}
	return kept
}

// groups returns the control groups of all containers that have one.
func (r *roll) groups() map[cluster.ContainerID]*cgroup.Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	groups := make(map[cluster.ContainerID]*cgroup.Group, len(r.all))
	for id, c := range r.all {
		if c.group != nil {
			groups[id] = c.group
		}
	}
	return groups
}
