package memory

import (
	"fmt"
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Order says which jobs' containers are served first (section 4.3.3).
type Order uint8

const (
	EarliestFirst Order = iota // by Envelope.Rank
	ShortestFirst              // by Envelope.Duration, then rank; jobs of unknown duration come last
)

// Strategy says how containers that are short share the memory of a node. Each strategy has a file of its own.
type Strategy uint8

const (
	Backoff       Strategy = iota // Algorithm 1 of the paper: see backoff.go
	Uncoordinated                 // the baseline KILL of section 5.3: see uncoordinated.go
	InOrder                       // ours, all or nothing: see inorder.go
)

// Parameters are the constants of the memory manager. Paper gives Pufferfish's, Default ours.
type Parameters struct {
	// Order and Strategy say which container is served first, and how.
	Order    Order
	Strategy Strategy

	// PuffRatio is φ: in one puff a container grows by this share of its limit (section 4.3.1; 40 % in section 5.1).
	PuffRatio float64
	// Interval is the time between two puffs of a node (section 4.2: two seconds). 0: in every step.
	Interval time.Duration
	// Stop is the share of the node's memory that growing containers may use; the rest is the reserve.
	Stop float64
	// Hold is how long a container counts as short after it last was (section 4.3.1: e.g. two minutes). Until then it is
	// not shrunk.
	Hold time.Duration
	// SlackShare is what a container keeps above its demand when it is shrunk, as a share of the demand, but not more than
	// SlackBytes (section 4.3.1: 2 GB above 60; the authors' code: 10 %).
	SlackShare float64
	SlackBytes resource.Amount
	// Tolerance is how long a container may be suspended, as a share of the expected duration of its job (section 4.3.3:
	// half). If it is 0 or the duration is unknown, LongestSuspension holds; 0: for ever. A container that is suspended
	// for longer is killed; under InOrder it has its turn, for as long as it may be suspended and at least as long as it
	// was.
	Tolerance         float64
	LongestSuspension time.Duration
	// KillPatience is how long the first container must have been short, with nothing left to give, before the last is
	// killed for it. The paper kills at once; in the authors' code it is ten rounds of two seconds.
	KillPatience time.Duration

	// Ahead is the share of its limit that a container should have left: a container with less left grows before it swaps.
	// 0: never.
	Ahead float64
	// AheadRatio is the share of its limit by which it then grows. Memory that it does not need is taken back as slack.
	AheadRatio float64
	// Lend is the fraction of free memory that each running container's limit exceeds its use by, while no container is
	// short, so that it can grow before the next reading. It is taken back when it is more than twice as much, or when
	// another container needs it. 0: none.
	Lend float64
	// Squeeze is what a suspended container without heartbeats keeps of its Min if the first needs its memory, as a
	// share of Min. 1: all.
	Squeeze float64
	// Settle is the shortest time between a suspension and the next resumption of a container, and between a resumption
	// and the next suspension for its own want.
	Settle time.Duration
	// Stall is after how long without progress a running container yields to containers that lack memory: see yield.go.
	// 0: never. Patience is how long it must then have been awake until it is ranked again. It is also how long the
	// first container is suspended at most while no other FLEX container runs.
	Stall, Patience time.Duration
	// Steady is how long a container must have run without needing more than before, and for at least half of its run,
	// until it counts as one that needs no more, if it is not known what it needs. 0: never. Without swap, programs of
	// unknown need that may not run again wait for each other's ends, and some never end.
	Steady time.Duration
	// BreathEvery and Breath let a container whose programs send heartbeats run while it is suspended: for Breath, but
	// at most half of Envelope.HeartbeatTimeout, whenever it was stopped for Envelope.HeartbeatTimeout × BreathEvery. 0:
	// never, as in the paper, which relies on 1 % of CPU. Breath is to be as long as a garbage collection of a program
	// that pages.
	BreathEvery float64
	Breath      time.Duration
	// Shares divides the memory of the node among the owners of FLEX containers: see share.go.
	Shares bool
	// ActionTimeout is how long the kernel may take for one action before the manager goes on without an answer.
	ActionTimeout time.Duration
	// ClaimFor is how long free and coming memory is kept for a REGULAR container that was refused, if it does not ask
	// again. It is withheld from growth and from FLEX containers that are to start; withheldFrom says which exception
	// there is. It must be longer than the time between two requests of a container. 0: nothing is kept.
	ClaimFor time.Duration
	// RetryAfter is how long a container gets no action after the kernel failed to carry one out; twice as long each
	// time, up to 64 times. Other containers give memory instead.
	RetryAfter time.Duration
}

// Paper returns the constants of "Pufferfish: Container-driven Elastic Memory Management for Data-intensive
// Applications" (Chen et al., SoCC 2019).
func Paper() Parameters {
	return Parameters{
		PuffRatio:     0.4,
		Interval:      2 * time.Second,
		Stop:          1,
		Hold:          2 * time.Minute,
		SlackShare:    0.1,
		SlackBytes:    2 * resource.GB,
		Tolerance:     0.5,
		Squeeze:       1,
		ActionTimeout: time.Minute,
		RetryAfter:    100 * time.Millisecond,

		// The paper kills "any container once it has been suspended for too long", and says no more.
		LongestSuspension: time.Hour,
	}
}

// Variants are the policies that section 5.3 of the paper compares: earliest job first without and with suspension
// tolerance, shortest job first with it, and KILL.
func Variants() map[string]Parameters {
	tolerant := Paper()
	earliest, shortest, kill := tolerant, tolerant, tolerant
	earliest.Tolerance, earliest.LongestSuspension = 0, 0
	shortest.Order = ShortestFirst
	kill.Strategy = Uncoordinated
	return map[string]Parameters{"ejf": earliest, "ejf+s": tolerant, "sjf": shortest, "kill": kill}
}

// Default returns the constants that bellows uses: the paper's, with reactions in milliseconds, growth ahead of
// swapping, and memory in order: the first container has what it lacks, and others are swapped out for it instead of
// killed.
func Default() Parameters {
	p := Paper()
	p.Interval = 0
	p.Hold = 10 * time.Second
	p.KillPatience = 20 * time.Second
	p.Ahead = 0.1
	p.AheadRatio = 1
	p.Lend = 0.25
	p.Strategy = InOrder
	p.Shares = true
	p.Tolerance = 2 // a turn of this length lets the container end
	p.Squeeze = 0.1
	p.Settle = 500 * time.Millisecond
	p.Stall = 3 * time.Second
	p.Patience = 20 * time.Second
	p.Steady = 5 * time.Minute
	p.ClaimFor = 5 * time.Second // a container that was refused asks again every second
	p.BreathEvery = 0.25
	p.Breath = 5 * time.Second
	return p
}

// BreathOf is the length of a breath of a container whose programs may be silent for heartbeatTimeout.
func (p *Parameters) BreathOf(heartbeatTimeout time.Duration) time.Duration {
	return min(p.Breath, heartbeatTimeout/2)
}

// Check returns an error that names the first parameter that is out of range.
func (p *Parameters) Check() error {
	shares := []struct {
		name     string
		value    float64
		from, to float64
	}{
		{"puff ratio", p.PuffRatio, 0.01, 100}, {"stop", p.Stop, 0.01, 1}, {"slack share", p.SlackShare, 0, 10},
		{"tolerance", p.Tolerance, 0, 1000}, {"ahead", p.Ahead, 0, 0.9}, {"ahead ratio", p.AheadRatio, 0, 100},
		{"breath every", p.BreathEvery, 0, 1}, {"squeeze", p.Squeeze, 0.01, 1}, {"lend", p.Lend, 0, 0.5},
	}
	for _, s := range shares {
		if !(s.value >= s.from && s.value <= s.to) || math.IsNaN(s.value) {
			return fmt.Errorf("memory %s %v: must be %v to %v", s.name, s.value, s.from, s.to)
		}
	}
	times := []struct {
		name  string
		value time.Duration
	}{
		{"interval", p.Interval}, {"hold", p.Hold}, {"longest suspension", p.LongestSuspension},
		{"kill patience", p.KillPatience}, {"settle", p.Settle}, {"breath", p.Breath},
		{"claim for", p.ClaimFor}, {"stall", p.Stall}, {"patience", p.Patience}, {"steady", p.Steady},
	}
	for _, t := range times {
		if t.value < 0 {
			return fmt.Errorf("memory %s %v: must not be negative", t.name, t.value)
		}
	}
	if p.Order > ShortestFirst {
		return fmt.Errorf("memory order %d: must be 0 or 1", p.Order)
	}
	if p.Strategy > InOrder {
		return fmt.Errorf("memory strategy %d: must be 0, 1 or 2", p.Strategy)
	}
	if p.ActionTimeout <= 0 {
		return fmt.Errorf("memory action timeout %v: must be positive", p.ActionTimeout)
	}
	if p.RetryAfter <= 0 {
		return fmt.Errorf("memory retry after %v: must be positive", p.RetryAfter)
	}
	if p.SlackBytes < 0 {
		return fmt.Errorf("memory slack %d bytes: must not be negative", p.SlackBytes)
	}
	return nil
}
