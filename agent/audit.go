package agent

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/memory"
)

// auditInterval is how often the memory manager's books are compared with the containers. A report about a container
// may be on its way; therefore only what was wrong the last time, too, is corrected.
const auditInterval = time.Minute

// audit compares the memory manager's books with the agent's containers, and corrects what was wrong twice. Without it,
// memory of a container that is gone would never be given out again, and memory of a container that is missing from the
// books would be given out twice.
func (k *keeper) audit() {
	var in memory.Input
	wrong := map[cluster.ContainerID]bool{}
	there := k.agent.started()
	k.auditStillness(there)
	for id := range k.manager.Containers() {
		if _, known := there[id]; known {
			continue
		}
		if wrong[id] = true; k.suspects[id] && !k.agent.has(id) {
			in.Ended = append(in.Ended, id)
			k.drop(id)
			k.mend(id, "is gone, and its memory was not given back")
		}
	}
	books := map[cluster.ContainerID]bool{}
	for id := range k.manager.Containers() {
		books[id] = true
	}
	for id, c := range there {
		if books[id] {
			continue
		}
		if wrong[id] = true; k.suspects[id] {
			s := &memory.Started{Envelope: c.spec.envelope(), Limit: limitOf(c.group)}
			k.takeNews(news{started: s, of: c}, &in)
			k.mend(id, "runs, and its memory was not counted")
		}
	}
	k.suspects = wrong
	if len(in.Ended)+len(in.Started) > 0 {
		k.decide(in)
	}
}

func (k *keeper) mend(id cluster.ContainerID, what string) {
	k.mended.Add(1)
	k.agent.log.Error("the memory manager's books were wrong and have been corrected", "container", id, "what", what)
}

// Mended implements live.Audited.
func (a *Agent) Mended() int64 { return a.keeper.mended.Load() }

// has reports whether the agent knows a container, started or not.
func (a *Agent) has(id cluster.ContainerID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.containers[id]
	return ok
}

// started returns the containers that have a control group and a record.
func (a *Agent) started() map[cluster.ContainerID]*container {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[cluster.ContainerID]*container{}
	for id, c := range a.containers {
		if c.group != nil && c.spec != nil {
			all[id] = c
		}
	}
	return all
}
