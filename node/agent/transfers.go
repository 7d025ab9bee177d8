package agent

import (
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// transfers counts what one container reads from disks and writes to them. Where the kernel knows whose pages it
// writes, the counters of the group have everything. Elsewhere they have everything that is read, but only those
// writes for which a process waits; what the processes themselves have made dirty is added up.
type transfers struct {
	byGroup bool          // the counters of the group have everything
	tally   *cgroup.Tally // nil if byGroup, or if the kernel does not count transfers of processes
	// countsIO says that the kernel counts by group, so that a group without a count had none.
	countsIO bool
	written  int64 // by the processes, without what was cancelled; it never falls
}

// newTransfers begins to count. If keepOpen is set, files of the kernel stay open until close.
func newTransfers(g *cgroup.Group, countsIO, keepOpen bool) *transfers {
	t := &transfers{byGroup: g.BoundsAll(), countsIO: countsIO}
	if t.byGroup {
		return t
	}
	if t.tally, _ = g.Tally(); t.tally != nil && keepOpen {
		t.tally.KeepOpen()
	}
	return t
}

func (t *transfers) close() {
	if t.tally != nil {
		t.tally.Close()
		t.tally = nil
	}
}

// read puts the counters of a container that runs into a sample.
func (t *transfers) read(g *cgroup.Gauge, s *usage.Sample) {
	if t.tally != nil {
		if has, err := t.tally.Read(); err == nil {
			t.put(g, &has, s)
			return
		}
	}
	t.put(g, nil, s)
}

// put puts the counters into a sample; processes is what the container's processes have transferred, nil if that is
// unknown.
func (t *transfers) put(g *cgroup.Gauge, processes *cgroup.Transfers, s *usage.Sample) {
	read, written, counted := g.Transfers()
	counted = counted || t.countsIO && !t.byGroup
	knowsWritten := counted
	if !t.byGroup {
		if knowsWritten = processes != nil; knowsWritten {
			t.written = max(t.written, written, processes.Written-processes.Cancelled)
			written = t.written
			if !counted {
				read, counted = processes.Read, true
			}
		}
	}
	if counted {
		s.Value[usage.Read] = read
		s.Known |= usage.SetOf(usage.Read)
	}
	if knowsWritten {
		s.Value[usage.Written] = written
		s.Known |= usage.SetOf(usage.Written)
	}
}
