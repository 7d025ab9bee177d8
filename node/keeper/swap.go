package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/swap"
)

// gauge reports how much may still be swapped out. One goroutine uses it, and another saves its count.
type gauge struct {
	closed  context.Context
	config  *Config
	log     *slog.Logger
	machine swap.Machine
	budget  *swap.Budget
	at      time.Time
	room    swap.Room
	takes   resource.Amount // room on the devices, regardless of reserve and write budget
	left    resource.Amount
	failed  bool          // the last read failed, which was logged
	spent   bool          // the budget was spent at the last read, which was logged
	none    bool          // no device was in use at the last read
	total   atomic.Int64  // size of the swap at the last read, bytes
	shrank  atomic.Int64  // when it was last seen to have become less, ns
	filled  atomic.Int64  // when it was last seen full, ns
	saved   chan struct{} // closed when everything is counted and saved
	// The use of all groups, and the part of it that containers do not use; nil if that cannot be read.
	all, apart *cgroup.Gauge
}

// The shortest interval between reads of swap, and the interval at which the count of writes is saved.
const (
	gaugeInterval = 100 * time.Millisecond
	countInterval = time.Minute
)

func newGauge(closed context.Context, c *Config) *gauge {
	g := gaugeOf(closed, c, swap.Machine{})
	if err := g.open(); err != nil {
		g.log.Warn("cannot read the use of the containers, so zram counts for less", "error", err)
	}
	return g
}

func (g *gauge) open() (err error) {
	if g.all, err = g.config.All.Gauge(); err != nil {
		return err
	}
	g.apart, err = g.config.Apart.Gauge()
	return err
}

// close closes the gauge.
func (g *gauge) close() {
	for _, open := range []*cgroup.Gauge{g.all, g.apart} {
		if open != nil {
			open.Close()
		}
	}
}

func gaugeOf(closed context.Context, c *Config, m swap.Machine) *gauge {
	g := &gauge{closed: closed, config: c, log: c.Log, machine: m, saved: make(chan struct{})}
	var err error
	if g.budget, err = swap.OpenBudget(m, c.Written, c.SwapBudget); err != nil {
		g.log.Warn("swap writes are counted from the start of the machine", "error", err)
	}
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

// full reports whether the devices have so little room left that the kernel may kill at the programs' next page faults.
func (g *gauge) full() bool {
	is := !g.failed && g.takes < memory.SwapReserve(g.config.Capacity)
	if is {
		g.filled.Store(time.Now().UnixNano())
	}
	return is
}

// wasFull reports whether swap was full lately.
func (g *gauge) wasFull(lately time.Duration) bool {
	return time.Since(time.Unix(0, g.filled.Load())) < lately
}

// read samples the machine. An unknown amount counts as no room.
func (g *gauge) read() {
	room, err := g.measure()
	if err != nil && !g.failed {
		g.log.Warn("cannot read the room in swap, so containers are not swapped out", "error", err)
	}
	if room.Budgeted && g.left == 0 && !g.spent {
		g.log.Warn("the write budget of swap is spent: containers yield memory again when its writes are a day old",
			"budget", int64(g.budget.PerDay))
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
	g.none = !slices.ContainsFunc(devices, func(d swap.Device) bool { return d.On })
	var spare resource.Amount
	if slices.ContainsFunc(devices, func(d swap.Device) bool { return d.Kind == swap.Zram }) {
		memory, err := g.machine.Memory()
		if err != nil {
			return swap.Room{}, err
		}
		spare = memory.Available - g.promised()
	}
	leaving := g.leaving(devices)
	g.takes = max(0, swap.FreeOn(devices, spare)-leaving)
	room := swap.RoomOn(devices, spare, left, bounded)
	room.Bytes = max(0, room.Bytes-leaving)
	return room, nil
}

// leaving returns the room of devices that are being turned off, bytes: they are listed until the last page is back,
// and nothing more goes there. It notes whether swap has become less.
func (g *gauge) leaving(devices []swap.Device) (room resource.Amount) {
	total, ok := g.machine.Total()
	if !ok {
		return 0
	}
	if was := g.total.Swap(int64(total)); int64(total) < was {
		g.shrank.Store(time.Now().UnixNano())
	}
	for i := range devices {
		if devices[i].On {
			room += devices[i].Size
		}
	}
	return max(0, room-total)
}

// removed reports whether swap has become less lately, or is about to.
func (g *gauge) removed(lately time.Duration) bool {
	total, ok := g.machine.Total()
	return ok && int64(total) < g.total.Load() || time.Since(time.Unix(0, g.shrank.Load())) < lately
}

// swapOutlook is how much may still be swapped out, and what bounds that.
type swapOutlook struct {
	room  resource.Amount
	bound string
}

// outlook reads swap now.
func (g *gauge) outlook() swapOutlook {
	g.at = time.Now()
	g.read()
	o := swapOutlook{room: g.room.Bytes}
	switch {
	case g.failed:
		o.bound = "the room in swap is unknown"
	case g.none:
		o.bound = "this machine has no swap"
	case g.room.Budgeted:
		o.bound = fmt.Sprintf("the write budget of swap, %s a day, leaves %s", resource.FormatMemory(g.budget.PerDay),
			resource.FormatMemory(g.left))
	default:
		o.bound = fmt.Sprintf("swap has room for %s", resource.FormatMemory(o.room))
	}
	return o
}

// promised returns the memory that containers do not use yet but may come to use. The kernel adds up their use: that
// takes the same time for one container as for a thousand.
func (g *gauge) promised() resource.Amount {
	left := g.config.Capacity
	if g.all == nil || g.apart == nil {
		return left
	}
	all, err := g.all.Read()
	own, errOwn := g.apart.Read()
	if err == nil && errOwn == nil {
		left -= resource.Amount(all.InMemory() - own.InMemory())
	}
	return max(0, left)
}

// explain adds the role of the write budget to a refusal.
func (g *gauge) explain(r memory.Reason) string {
	if r.Code != memory.NoSwapLeft || !g.room.Budgeted {
		return r.Words()
	}
	return fmt.Sprintf("%s: the write budget of %s a day leaves %s", r.Words(), resource.FormatMemory(g.budget.PerDay),
		resource.FormatMemory(g.left))
}

// keepCount saves the count at intervals, and at the end.
func (g *gauge) keepCount() {
	defer close(g.saved)
	tick := time.NewTicker(countInterval)
	defer tick.Stop()
	for open := true; open; {
		select {
		case <-tick.C:
		case <-g.closed.Done():
			open = false
		}
		if _, _, err := g.budget.Left(); err == nil {
			g.save()
		}
	}
}

func (g *gauge) save() {
	if err := g.budget.Save(); err != nil {
		g.log.Warn("a restart of the machine will lose the count of swap writes", "error", err)
	}
}
