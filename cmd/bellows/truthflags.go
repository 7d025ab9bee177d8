package main

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/flags"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/sim"
)

// truthOptions are the flags that say how the simulated cluster really works, whatever policies believe.
type truthOptions struct {
	acquire   string
	machine   string
	swap      resource.Amount
	failEvery time.Duration
	repair    time.Duration
	failSeed  uint64
}

func (o *truthOptions) flags(f *pflag.FlagSet) {
	o.machine, o.failSeed = "ideal", 1
	f.Var(flags.Choice(&o.acquire, sim.Acquisitions()...), "acquire", "how tasks get what they run in, with all its delays: "+strings.Join(sim.Acquisitions(), ", "))
	f.Var(flags.Choice(&o.machine, sim.Machines()...), "machine", "what nodes make of too much demand, by `kind` of disk: "+strings.Join(sim.Machines(), ", "))
	f.Var(flags.Memory(&o.swap).OrZero(), "swap", "swap of a node")
	f.Var(flags.Duration(&o.failEvery, 0), "fail-every", "mean time between losses of a node; 0: none is lost")
	f.Var(flags.Duration(&o.repair, 0), "repair-after", "until a node like the lost one joins; 0: none does")
	f.Uint64Var(&o.failSeed, "fail-seed", o.failSeed, "a `number` to draw those losses from")
}

// settle takes the heartbeats of a preset where no flag says otherwise.
func (o *truthOptions) settle(s *simulateOptions, changed func(string) bool) {
	a, err := sim.AcquisitionOf(o.acquire)
	if err != nil {
		return
	}
	if !changed("heartbeat") {
		s.heartbeat = a.Heartbeat
	}
	if !changed("am-heartbeat") {
		s.amHeartbeat = a.CoordinatorHeartbeat
	}
	if !changed("starts-per-heartbeat") {
		s.perHeartbeat = a.StartsPerHeartbeat
	}
}

// mostFailures is how many losses are drawn at most, on average.
const mostFailures = 10_000

// apply completes c.
func (o *truthOptions) apply(c *sim.Config) error {
	m, err := sim.MachineOf(o.machine)
	if err != nil {
		return err
	}
	if m.Swap = o.swap; o.swap > 0 && len(m.Paging) == 0 {
		return command.Usagef("swap %s: needs --machine hdd or ssd, which say what paging costs", resource.FormatMemoryExact(o.swap))
	}
	c.Machine = m
	if o.acquire != "" {
		a, err := sim.AcquisitionOf(o.acquire)
		if err != nil {
			return err
		}
		c.Startup = a.Startup
	}
	if o.failEvery > 0 {
		c.Incidents, err = sim.RandomFailures(sim.Failures{Every: o.failEvery, Until: mostFailures * o.failEvery, Repair: o.repair}, c.Nodes, o.failSeed)
	}
	return err
}

// truthJSON repeats what differs from an ideal cluster.
type truthJSON struct {
	Acquire   string  `json:"acquire,omitempty"`
	Machine   string  `json:"machine,omitempty"`
	Swap      int64   `json:"swap_bytes,omitempty"`
	FailEvery float64 `json:"fail_every_s,omitempty"`
	Repair    float64 `json:"repair_after_s,omitempty"`
	FailSeed  uint64  `json:"fail_seed,omitempty"`
}

func (o *truthOptions) describe() truthJSON {
	t := truthJSON{Acquire: o.acquire, Swap: int64(o.swap), FailEvery: o.failEvery.Seconds(), Repair: o.repair.Seconds()}
	if o.machine != "ideal" {
		t.Machine = o.machine
	}
	if o.failEvery > 0 {
		t.FailSeed = o.failSeed
	}
	return t
}

// lossesJSON is what was lost of one policy's run.
type lossesJSON struct {
	OutOfMemory int     `json:"out_of_memory"`
	Killed      int     `json:"killed"`
	Preempted   int     `json:"preempted"`
	Lost        int     `json:"lost"`
	Retries     int     `json:"retries"`
	LostWork    float64 `json:"lost_work_s"`
}

// lossesOf returns nil if nothing was lost.
func lossesOf(r *sim.Result) *lossesJSON {
	l := lossesJSON{r.OutOfMemory, r.Killed, r.Preempted, r.Lost, r.Retries, r.LostWork.Seconds()}
	if l == (lossesJSON{}) {
		return nil
	}
	return &l
}
