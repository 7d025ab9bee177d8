package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// flexJob is a FLEX job of one task that starts with the given memory and has the given working sets, each for a
// minute.
func flexJob(id int, least resource.Amount, sets ...resource.Amount) workload.Job {
	var phases []cluster.Phase
	for _, s := range sets {
		phases = append(phases, cluster.Phase{Duration: time.Minute, Demand: resource.Of(resource.Core, s*testGB)})
	}
	return workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(id), Name: fmt.Sprint("flex", id),
		Class: cluster.Flex, MaxAttempts: 1,
		Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, least*testGB),
			Duration: time.Duration(len(sets)) * time.Minute}}},
		Truth: []workload.StageTruth{{Phases: workload.ForAll(phases)}}}
}

// swapping is a machine that swaps 2 GB per second.
func swapping() Machine {
	return Machine{Swap: 100 * testGB, SwapSpeed: 2 * testGB, Paging: SSDPaging}
}

func runFlex(t *testing.T, c Config, jobs ...workload.Job) *Result {
	t.Helper()
	p, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(c, &workload.Workload{Jobs: jobs}, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A container at its maximum pages while its working set is larger, and releases memory that it no longer needs.
func TestFullGrownContainerPages(t *testing.T) {
	j := flexJob(1, 1, 1, 2, 1)
	j.Stages[0].MaxMemory = testGB
	r := runFlex(t, Config{Nodes: Uniform(1, resource.Of(resource.Core, 10*testGB)), Machine: swapping()}, j)
	// Half of the working set is resident: 3 times as long on a solid-state disk.
	if got, want := r.Jobs[0].Runtime(), 5*time.Minute; got != want {
		t.Errorf("the job took %v, not %v", got, want)
	}
	if r.SwappedBytes != testGB || r.Suspended != 0 || r.ManagerKills != 0 {
		t.Errorf("%d bytes went to swap, it was suspended for %v and killed %d times", r.SwappedBytes, r.Suspended,
			r.ManagerKills)
	}
}

// Pages that a running container faults in are read more slowly.
func TestFaultsAreSlow(t *testing.T) {
	took := func(share float64) time.Duration {
		c := Config{Nodes: Uniform(1, resource.Of(resource.Core, 10*testGB)), Machine: swapping(),
			Flex: Flex{Manager: memory.Variants()["kill"], Look: 2 * time.Second}}
		c.Machine.FaultShare = share
		r := runFlex(t, c, flexJob(1, 1, 1, 4))
		if !r.Jobs[0].Done || r.SwappedBytes == 0 || r.Suspended != 0 {
			t.Fatalf("%+v", r.Jobs[0])
		}
		return r.Jobs[0].Runtime()
	}
	if all, full, half, tenth := took(0), took(1), took(0.5), took(0.1); all != full || !(full < half && half < tenth) {
		t.Errorf("it takes %v, and with faults at 1, 0.5 and 0.1 of the speed %v, %v and %v", all, full, half, tenth)
	}
}

// The time for which a program is suspended teaches nothing.
func TestSuspensionTeachesNothing(t *testing.T) {
	flex, regular := flexJob(1, 1, 8, 8), flexJob(2, 5, 5)
	flex.App, flex.Stages[0].MaxMemory = "flex", 8*testGB
	regular.Class, regular.Submitted = cluster.Regular, timeline.Seconds(30)
	h := &profile.History{}
	r := runFlex(t, Config{Nodes: Uniform(1, resource.Of(4*resource.Core, 10*testGB)), Machine: swapping(), History: h},
		flex, regular)
	runs, _ := h.Runs(profile.App{Name: "flex"})
	if j := r.Jobs[0]; j.Suspended < 10*time.Second || len(runs) != 1 || runs[0].Duration != j.Runtime()-j.Suspended {
		t.Errorf("suspended for %v of %v, taught %+v", j.Suspended, j.Runtime(), runs)
	}
}

// A REGULAR container waits until a FLEX container has made room: no longer than swapping the pages takes.
func TestRegularTakesFromFlex(t *testing.T) {
	flex, regular := flexJob(1, 1, 8, 8), flexJob(2, 5, 5)
	flex.Stages[0].MaxMemory = 8 * testGB
	regular.Class, regular.Submitted = cluster.Regular, timeline.Seconds(30)
	var seen []ContainerMemory
	c := Config{Nodes: Uniform(1, resource.Of(4*resource.Core, 10*testGB)), Machine: swapping(),
		Observers: Observers{ObserveContainers: func(m ContainerMemory) { seen = append(seen, m) }}}
	r := runFlex(t, c, flex, regular)
	if got, want := r.Jobs[1].WaitedForMemory, 1500*time.Millisecond; got != want {
		t.Errorf("the REGULAR task waited for %v, not %v", got, want)
	}
	if got, want := r.Jobs[1].Runtime(), r.Jobs[1].WaitedForMemory+time.Minute; got != want {
		t.Errorf("the REGULAR job took %v, not %v", got, want)
	}
	if r.Jobs[0].Suspended == 0 || r.Jobs[0].SwappedBytes < 3*testGB {
		t.Errorf("the FLEX job was suspended for %v and wrote %d bytes to swap", r.Jobs[0].Suspended, r.Jobs[0].SwappedBytes)
	}
	var held []resource.Amount
	for _, m := range seen {
		if m.Resident > m.Limit || m.Limit > 8*testGB {
			t.Errorf("%+v", m)
		}
		if m.Class == cluster.Regular {
			held = append(held, m.Limit)
		}
	}
	if !slices.Equal(held, []resource.Amount{5 * testGB, 0}) {
		t.Errorf("the REGULAR container may hold %v", held)
	}
}

// The memory that a REGULAR container waits for is freed in two pieces, and hardly any swap is allowed. With a claim
// the container starts before a FLEX container grows; without a claim it waits until the FLEX container ends.
func TestClaimComesBeforeGrowth(t *testing.T) {
	waits := func(claimFor time.Duration) time.Duration {
		flex, one := flexJob(1, 2, 12, 12, 12, 17, 17, 17, 17, 17, 17), flexJob(2, 6, 6, 6, 6, 6)
		other, regular := flexJob(3, 4, 4, 4, 4, 4, 4), flexJob(4, 10, 10)
		one.Class, other.Class, regular.Class = cluster.Regular, cluster.Regular, cluster.Regular
		regular.Submitted = timeline.Seconds(60)
		m := memory.Default()
		m.ClaimFor = claimFor
		c := Config{Nodes: Uniform(1, resource.Of(4*resource.Core, 22*testGB)), Machine: swapping(), Flex: Flex{Manager: m}}
		c.Machine.Swap = testGB
		return runFlex(t, c, flex, one, other, regular).Jobs[3].WaitedForMemory
	}
	if with := waits(memory.Default().ClaimFor); with < 4*time.Minute || with > 4*time.Minute+2*time.Second {
		t.Errorf("it waits for %v, and for nobody but those that end after 4 and 5 minutes", with)
	}
	if without := waits(0); without < 8*time.Minute {
		t.Errorf("without claims it waits for %v, before the end of the FLEX job", without)
	}
}

// While a FLEX container gives memory to a waiting REGULAR container, their node is lost or the REGULAR container is
// cancelled: nothing is left behind.
func TestEndInTheMiddleOfAnOrder(t *testing.T) {
	const middle = 30*time.Second + 700*time.Millisecond
	flex, regular := flexJob(1, 1, 7, 7), flexJob(2, 5, 5)
	flex.Stages[0].MaxMemory = 8 * testGB
	regular.Class, regular.Submitted = cluster.Regular, timeline.Seconds(30)
	c := Config{Nodes: Uniform(2, resource.Of(4*resource.Core, 9*testGB)), Machine: swapping()}
	for name, i := range map[string]Incident{"lost": {At: middle, Kind: NodeLoss, Node: 0},
		"cancelled": {At: middle, Kind: JobCancel, Job: 2}} {
		c.Incidents = []Incident{i}
		p, err := policy.New("fifo", nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := newRun(c, &workload.Workload{Jobs: []workload.Job{flex, regular}}, p)
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.play()
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Jobs[1].WaitedForMemory; got != 700*time.Millisecond {
			t.Errorf("%s: the REGULAR task waited for %v", name, got)
		}
		if !res.Jobs[0].Done || res.Jobs[1].Done != (i.Kind == NodeLoss) {
			t.Errorf("%s: %+v", name, res.Jobs)
		}
		for n, k := range r.keepers {
			if len(k.containers) > 0 || len(k.device.queue) > 0 || k.held != 0 || k.promised != 0 ||
				r.nodes[n].swap != c.Machine.Swap {
				t.Errorf("%s: on node %d there is still %+v", name, n, k)
			}
		}
	}
}

// Granted is the sum of limits, used the memory in use.
func TestFlexSeries(t *testing.T) {
	j := flexJob(1, 1, 1, 2)
	j.Stages[0].MaxMemory = testGB
	r := runFlex(t, Config{Nodes: Uniform(1, resource.Of(resource.Core, 10*testGB)), Machine: swapping(),
		Series: SeriesOptions{Resolution: time.Minute}}, j)
	for i, s := range r.Series.Samples {
		if s.Granted != resource.Of(resource.Core, testGB) || s.Used != resource.Of(resource.Core, testGB) {
			t.Errorf("sample %d is %+v", i, s)
		}
	}
	j = flexJob(1, 1, 4)
	j.Stages[0].MaxMemory = 4 * testGB
	r = runFlex(t, Config{Nodes: Uniform(1, resource.Of(resource.Core, 10*testGB)), Machine: swapping(),
		Series: SeriesOptions{Resolution: time.Second}}, j)
	for i, s := range r.Series.Samples[1 : len(r.Series.Samples)-1] {
		if s.Granted != resource.Of(resource.Core, 4*testGB) || s.Used != resource.Of(resource.Core, 4*testGB) {
			t.Errorf("sample %d is %+v", i+1, s)
		}
	}
	if u := r.MemoryUtilisation; u < 0.399 || u > 0.4 {
		t.Errorf("memory utilisation is %v", u)
	}
}

// A task that a manager kills runs again, and the run does not count as an attempt.
func TestKilledByTheManagerRunsAgain(t *testing.T) {
	c := Config{Nodes: Uniform(1, resource.Of(4*resource.Core, 10*testGB)), Machine: swapping(),
		Flex: Flex{Manager: memory.Variants()["ejf"], Look: 2 * time.Second}}
	r := runFlex(t, c, flexJob(1, 1, 1, 7), flexJob(2, 1, 1, 7))
	if r.ManagerKills == 0 || r.Preempted != r.ManagerKills || r.Jobs[1].ManagerKills != r.ManagerKills ||
		!r.Jobs[1].Done {
		t.Errorf("%+v", r.Jobs)
	}
}

// A job that never ends because the managers let its containers wait for ever is reported.
func TestStandstillIsReported(t *testing.T) {
	forever := memory.Paper() // no container is killed for too long a suspension
	forever.Tolerance, forever.LongestSuspension, forever.KillPatience = 0, 0, 1000*time.Hour
	c := Config{Nodes: Uniform(1, resource.Of(4*resource.Core, 10*testGB)), Machine: swapping(),
		Flex: Flex{Manager: forever}}
	r := runFlex(t, c, flexJob(1, 1, 1, 9), flexJob(2, 1, 1, 9))
	for _, j := range r.Jobs {
		if !strings.Contains(j.Stuck, "wait for memory") {
			t.Errorf("%+v", j)
		}
	}
	if u := r.MemoryUtilisation; !(u > 0 && u <= 1) {
		t.Errorf("memory utilisation is %v", u)
	}
}

func TestFlexIsChecked(t *testing.T) {
	good := Config{Nodes: Uniform(1, resource.Of(resource.Core, testGB))}
	for want, change := range map[string]func(*Config){
		"flex look -1s: must not be negative":                  func(c *Config) { c.Flex.Look = -time.Second },
		"flex: memory puff ratio 1000: must be 0.01 to 100":    func(c *Config) { c.Flex.Manager.PuffRatio = 1000 },
		"swap speed -1 bytes per second: must not be negative": func(c *Config) { c.Machine.SwapSpeed = -1 },
		"fault share 2: must be 0 to 1":                        func(c *Config) { c.Machine.FaultShare = 2 },
		"pressed below 1.1: must be 0 to 1":                    func(c *Config) { c.Machine.PressedBelow = 1.1 },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil || err.Error() != want {
			t.Errorf("error is %v, not %s", err, want)
		}
	}
}
