package agent

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cgroup"
	"github.com/bellows-rm/bellows/memory"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/swap"
)

// gauge tells how much may still be swapped out. One goroutine uses it, and another saves its count.
type gauge struct {
	agent   *Agent
	machine swap.Machine
	budget  *swap.Budget
	at      time.Time
	room    swap.Room
	takes   resource.Amount // the devices, reserve and write budget or not
	left    resource.Amount
	failed  bool          // to read the last time, which was said
	spent   bool          // the last time, which was said
	saved   chan struct{} // closed when all is counted and saved
	// What all groups hold, and of that the supervisors; nil if that cannot be read.
	all, supervisors *cgroup.Gauge
}

// How often swap is looked at at most, and how often the count of what was written is saved.
const (
	gaugeInterval = 100 * time.Millisecond
	countInterval = time.Minute
)

func newGauge(a *Agent) *gauge {
	g := gaugeOf(a, swap.Machine{})
	if err := g.open(); err != nil {
		a.log.Warn("what containers hold is not known, so that zram counts for less", "error", err)
	}
	return g
}

func (g *gauge) open() (err error) {
	if g.all, err = g.agent.root.Gauge(); err != nil {
		return err
	}
	g.supervisors, err = g.agent.supervisors.Gauge()
	return err
}

// close ends its use.
func (g *gauge) close() {
	for _, open := range []*cgroup.Gauge{g.all, g.supervisors} {
		if open != nil {
			open.Close()
		}
	}
}

func gaugeOf(a *Agent, m swap.Machine) *gauge {
	b, err := swap.OpenBudget(m, swap.BudgetPath(a.config.Dir), a.config.SwapBudget)
	if err != nil {
		a.log.Warn("what was swapped out is counted from the start of the machine", "error", err)
	}
	g := &gauge{agent: a, machine: m, budget: b, saved: make(chan struct{})}
	g.read()
	g.save()
	return g
}

// free returns how much may still be swapped out.
func (g *gauge) free() resource.Amount {
	if now := time.Now(); now.Sub(g.at) >= gaugeInterval || now.Before(g.at) {
		g.at = now
		g.read()
	}
	return g.room.Bytes
}

// full tells whether the devices have so little room left that the kernel may kill for what programs touch next.
func (g *gauge) full() bool {
	return !g.failed && g.takes < memory.SwapReserve(g.agent.config.Capacity[resource.Memory])
}

// read looks at the machine. What cannot be known is no room.
func (g *gauge) read() {
	room, err := g.measure()
	if err != nil && !g.failed {
		g.agent.log.Warn("nothing is swapped out on purpose", "error", err)
	}
	if room.Budgeted && g.left == 0 && !g.spent {
		g.agent.log.Warn("the write budget of swap is spent: containers give way again as what was written gets a day old", "budget", int64(g.budget.PerDay))
	}
	g.room, g.failed, g.spent = room, err != nil, room.Budgeted && g.left == 0
}

func (g *gauge) measure() (swap.Room, error) {
	devices, err := g.machine.Devices()
	if err != nil {
		return swap.Room{}, err
	}
	left, bounded, err := g.budget.Left()
	if err != nil {
		return swap.Room{}, err
	}
	g.left = left
	var spare resource.Amount
	if slices.ContainsFunc(devices, func(d swap.Device) bool { return d.Kind == swap.Zram }) {
		_, available, err := g.machine.Memory()
		if err != nil {
			return swap.Room{}, err
		}
		spare = available - g.promised()
	}
	g.takes = swap.FreeOn(devices, spare)
	return swap.RoomOn(devices, spare, left, bounded), nil
}

// promised is memory that containers do not hold yet and may come to hold. The kernel adds up what they hold: that takes as
// long for a thousand of them as for one.
func (g *gauge) promised() resource.Amount {
	left := g.agent.config.Capacity[resource.Memory]
	if g.all == nil || g.supervisors == nil {
		return left
	}
	all, err := g.all.Read()
	own, errOwn := g.supervisors.Read()
	if err == nil && errOwn == nil {
		left -= resource.Amount(all.InMemory() - own.InMemory())
	}
	return max(0, left)
}

// explain adds to a refusal what the write budget has to do with it.
func (g *gauge) explain(r memory.Reason) string {
	if r.Code != memory.NoSwapLeft || !g.room.Budgeted {
		return r.Words()
	}
	return fmt.Sprintf("%s: the write budget of %s a day leaves %s", r.Words(), resource.FormatMemory(g.budget.PerDay), resource.FormatMemory(g.left))
}

// keepCount saves the count now and then, and at the end.
func (g *gauge) keepCount() {
	defer close(g.saved)
	tick := time.NewTicker(countInterval)
	defer tick.Stop()
	for open := true; open; {
		select {
		case <-tick.C:
		case <-g.agent.closed.Done():
			open = false
		}
		if _, _, err := g.budget.Left(); err == nil {
			g.save()
		}
	}
}

func (g *gauge) save() {
	if err := g.budget.Save(); err != nil {
		g.agent.log.Warn("a restart of the machine will forget what was swapped out", "error", err)
	}
}
