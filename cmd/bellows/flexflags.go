package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/flags"
	"github.com/bellows-rm/bellows/memory"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/workload"
)

// managerOptions are the flags that say how the memory of FLEX containers is managed, simulated or on a machine.
type managerOptions struct {
	manager   string
	puffRatio float64 // 0 is that of the manager
}

// flexOptions are these and the flags that say what the simulator makes of it.
type flexOptions struct {
	managerOptions
	minContainer resource.Amount // 0 is as the workload says
	look         time.Duration
	swapSpeed    resource.Amount
	setsSpeed    bool
}

// paperLook is how often Pufferfish's nodes look at their containers.
const paperLook = 2 * time.Second

// managers are the ways to manage memory, by name.
func managers() map[string]memory.Parameters {
	all := memory.Variants()
	all["default"], all["paper"] = memory.Default(), memory.Paper()
	return all
}

func (o *managerOptions) flags(f *pflag.FlagSet) {
	o.manager = "default"
	names := slices.Sorted(maps.Keys(managers()))
	f.Var(flags.Choice(&o.manager, names...), "flex", "`how` memory of FLEX containers is managed: as bellows does, paper: as Pufferfish, or as is compared there: "+
		strings.Join(slices.Sorted(maps.Keys(memory.Variants())), ", "))
	f.Float64Var(&o.puffRatio, "puff-ratio", 0, "how much a FLEX container grows at a time, as a `share` of its limit; 0: as --flex says")
}

// parameters are those of the manager that was chosen.
func (o *managerOptions) parameters() (memory.Parameters, error) {
	p := managers()[o.manager]
	if o.puffRatio != 0 {
		p.PuffRatio = o.puffRatio
	}
	if o.puffRatio < 0 || p.Check() != nil {
		return p, command.Usagef("puff-ratio %v: must be 0, or from 0.01 to 100", o.puffRatio)
	}
	return p, nil
}

func (o *flexOptions) flags(f *pflag.FlagSet) {
	o.managerOptions.flags(f)
	f.Var(flags.Memory(&o.minContainer).OrZero(), "min-container", "memory that FLEX containers start with; 0: as the workload says")
	f.Var(flags.Duration(&o.look, 0), "look", "between looks of a node at its containers; 0: it knows at once (2s unless --flex default)")
	f.Var(flags.Rate(&o.swapSpeed).OrZero(), "swap-speed", "how fast FLEX containers swap; 0: at once (as --machine)")
}

func (o *flexOptions) settle(changed func(string) bool) {
	o.setsSpeed = changed("swap-speed")
	if !changed("look") && o.manager != "default" {
		o.look = paperLook
	}
}

// apply completes c.
func (o *flexOptions) apply(c *sim.Config) error {
	p, err := o.parameters()
	if err != nil {
		return err
	}
	c.Flex = sim.Flex{Manager: p, Look: o.look}
	if o.setsSpeed {
		c.Machine.SwapSpeed = o.swapSpeed
	}
	return nil
}

// flexManagerJSON repeats how memory was managed.
type flexManagerJSON struct {
	Manager      string  `json:"manager"`
	PuffRatio    float64 `json:"puff_ratio"`
	MinContainer int64   `json:"min_container_bytes,omitempty"` // unless as the workload says
	Look         float64 `json:"look_s"`
	SwapSpeed    int64   `json:"swap_bytes_per_s"`
}

func (o *flexOptions) describe(c *sim.Config) *flexManagerJSON {
	return &flexManagerJSON{o.manager, c.Flex.Manager.PuffRatio, int64(o.minContainer), c.Flex.Look.Seconds(), int64(c.Machine.SwapSpeed)}
}

// box is what FLEX jobs run in where they are not to breathe.
type box struct {
	given bool
	size  resource.Amount // 0 is the most that each task holds
}

// parseBox reads a size, or peak.
func parseBox(text string) (box, error) {
	if text == "peak" {
		return box{given: true}, nil
	}
	size, err := resource.ParseMemory(text)
	if err != nil || size <= 0 {
		return box{}, fmt.Errorf("must be pool, peak or a positive amount of memory")
	}
	return box{true, size}, nil
}

func (b box) String() string {
	switch {
	case !b.given:
		return ""
	case b.size == 0:
		return "peak"
	}
	return resource.FormatMemoryExact(b.size)
}

// fill puts the FLEX jobs of w into boxes, if there are any.
func (b box) fill(w *workload.Workload) *workload.Workload {
	if !b.given {
		return w
	}
	return workload.Boxed(w, b.size)
}

// hasFlex reports whether a workload has FLEX jobs.
func hasFlex(w *workload.Workload) bool {
	return slices.ContainsFunc(w.Jobs, func(j workload.Job) bool { return j.Class == cluster.Flex })
}

// flexJSON is what managing the memory of FLEX containers cost.
type flexJSON struct {
	Suspended    float64 `json:"suspended_s"`
	Waited       float64 `json:"waited_for_memory_s"`
	Swapped      int64   `json:"swapped_bytes"`
	ManagerKills int     `json:"manager_kills"`
}

func flexOf(r *sim.Result) *flexJSON {
	return &flexJSON{r.Suspended.Seconds(), r.WaitedForMemory.Seconds(), int64(r.SwappedBytes), r.ManagerKills}
}

// row is a line of the table that tells of FLEX jobs, or of what became of them in boxes.
func (r *resultJSON) flexRow() []string {
	if r.Error != "" {
		return []string{r.title(), "failed", "", "", "", ""}
	}
	killed := 0
	if r.Losses != nil {
		killed = r.Losses.OutOfMemory
	}
	f := r.Flex
	if f == nil {
		return []string{r.title(), "-", "-", "-", "-", fmt.Sprint(killed)}
	}
	return []string{r.title(), secondsText(&f.Suspended), secondsText(&f.Waited), resource.FormatMemory(resource.Amount(f.Swapped)),
		fmt.Sprint(f.ManagerKills), fmt.Sprint(killed)}
}
