package agent

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/netcount"
)

// network counts the network bytes of containers, where the kernel can. Elsewhere they are unknown.
type network struct {
	agent *Agent
	why   string // why this machine does not count them; empty if it does
	warn  sync.Once
}

// newNetwork finds out whether the kernel counts network bytes, and logs it once if the kernel does not.
func newNetwork(a *Agent) *network {
	n := &network{agent: a}
	dir, _ := a.groups.root.Unified()
	n.why = uncounted(dir, netcount.Try)
	if n.why != "" {
		a.log.Info("the network bytes of containers are not counted", "because", n.why)
	}
	return n
}

// uncounted returns why network bytes are not counted for control groups whose directory in the version 2 hierarchy
// is given, empty for none; it returns "" if try finds nothing in the way.
func uncounted(unified string, try func(dir string) error) string {
	if unified == "" {
		return "its control groups are not in a hierarchy of version 2"
	}
	if err := try(unified); err != nil {
		return err.Error()
	}
	return ""
}

// begin counts for a new group, before its first process is there; nil if that is not possible.
func (n *network) begin(g *cgroup.Group) *netcount.Counter { return n.count(g, netcount.Begin) }

// resume continues to count for a group; nil if that is not possible.
func (n *network) resume(g *cgroup.Group) *netcount.Counter { return n.count(g, netcount.Attach) }

func (n *network) count(g *cgroup.Group, how func(dir string) (*netcount.Counter, error)) *netcount.Counter {
	dir, ok := g.Unified()
	if n.why != "" || !ok {
		return nil
	}
	c, err := how(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.warn.Do(func() {
			n.agent.log.Warn("cannot count a container's network bytes; other containers may be affected", "group", dir,
				"error", err)
		})
	}
	return c
}

// meters are the files of the kernel that show what a container uses.
type meters struct {
	*cgroup.Gauge
	network *netcount.Counter // nil where the kernel does not count
	late    bool              // counting began after the container did: the next reading is not used
}

// openMeters opens the meters of a container. They use the counter that began with the container, if there is one.
func (a *Agent) openMeters(g *cgroup.Group, begun *netcount.Counter) (*meters, error) {
	gauge, err := g.Gauge()
	if err != nil {
		return nil, errors.Join(err, begun.Close())
	}
	m := &meters{Gauge: gauge, network: begun}
	if begun == nil {
		m.network = a.network.resume(g)
		m.late = m.network != nil && !m.network.Resumed
	}
	return m, nil
}

// Network returns what the container has transferred; ok is false if it is unknown.
func (m *meters) Network() (n netcount.Reading, ok bool) {
	if m.network == nil {
		return n, false
	}
	n, err := m.network.Read()
	ok = err == nil && !m.late
	m.late = false
	return n, ok
}

// Close closes the files.
func (m *meters) Close() {
	m.Gauge.Close()
	m.network.Close()
}

// Unmeasured implements live.Metered.
func (a *Agent) Unmeasured(k resource.Kind) string {
	switch k {
	case resource.Network:
		return a.network.why
	case resource.Disk:
		return a.groups.diskUnknown
	}
	return ""
}
