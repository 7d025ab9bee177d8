package keeper

import (
	"context"
	"errors"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// Party is a set of parties that have stopped a container. The container is stopped while the set is not empty.
type Party uint8

const (
	ByMemory   Party = 1 << iota // the memory manager suspended it
	ByBackOff                    // it is throttled, and transferred more than it may
	BySwapping                   // its memory is being swapped out, which may take it as long as its heartbeats allow
	ByEngine                     // the engine has stopped it, for example because its owner paused it
	ByOut                        // its memory is out, or on its way out or back: see pageOut
)

// stance is the wanted state of a container's programs: everything that freezes, thaws, slows down or speeds up
// programs changes the stance, from which limits and the freezer's state follow. The memory manager decides the
// container's size.
type stance struct {
	grant resource.Vector
	// mostCPU is the most CPU that it may use, if that is more than its grant: see cluster.Envelope.
	mostCPU resource.Amount
	// still are the parties that have stopped it. A breath overrides all of them: the programs run, to send heartbeats.
	still Party
	// engine is the hold by which the engine has stopped it: ByEngine is set while it has a holder.
	engine cluster.Hold
	// breaths are the parties that let it run for a breath.
	breaths Party
	// slows says that its programs send heartbeats, and that this machine can bound their CPU time: while they are
	// stopped, they keep a little CPU time instead of being frozen.
	slows bool
	// raise is a memory limit to be reached at once, 0 for none. It never lowers the limit: the memory manager does
	// that, slowly.
	raise resource.Amount
	// disk bounds what the kernel lets it transfer.
	disk cgroup.DiskLimit
}

// SuspendedMillicores is what a suspended container with heartbeats may use: 1 % of one core (Pufferfish section 3.2).
const SuspendedMillicores = 10

// held reports whether its programs are to be stopped.
func (s *stance) held() bool { return s.still != 0 && s.breaths == 0 }

// wants returns the limits that follow from a stance, and whether the container is to be frozen. Limits that are not
// set stay as they are: a frozen container needs no bound on its CPU time.
func (s *stance) wants() (limits cgroup.Limits, frozen bool) {
	if s.raise > 0 {
		limits.MemoryBytes = cgroup.At(int64(s.raise))
	}
	limits.Disk = s.disk
	switch {
	case s.held() && (s.still&BySwapping != 0 || !s.slows):
		return limits, true
	case s.held():
		limits.CPUMillicores = cgroup.At(SuspendedMillicores)
	case s.grant[resource.CPU] > 0:
		limits.CPUMillicores = cgroup.At(int64(max(s.grant[resource.CPU], s.mostCPU)))
	}
	return limits, false
}

// carryOut brings a control group into the state of its stance, and waits until it is reached. The bound on the disk is
// set only if it differs from the bound of the stance before: the kernel restarts its count with each write. Where the
// kernel has no freezer, a container that is to be frozen is slowed down; without a bound on CPU time either, nothing
// can stop it, and it runs at the speed of swap.
func (s *stance) carryOut(ctx context.Context, g *cgroup.Group, before stance) error {
	limits, frozen := s.wants()
	if limits.Disk != before.disk {
		if err := g.Apply(ctx, cgroup.Limits{Disk: limits.Disk}); err != nil {
			return err
		}
	}
	limits.Disk = cgroup.DiskLimit{}
	if s.grant[resource.CPU] != before.grant[resource.CPU] {
		if err := weigh(ctx, g, s.grant); err != nil {
			return err
		}
	}
	_, slows := g.Has(cgroup.CPU)
	if room, ok := limits.MemoryBytes.Get(); ok {
		if _, err := g.RaiseMemory(room); err != nil {
			return err
		}
		limits.MemoryBytes = cgroup.Limit{}
	}
	if !slows {
		limits.CPUMillicores = cgroup.Limit{}
	}
	if frozen {
		err := g.Freeze(ctx)
		if !errors.Is(err, cgroup.ErrUnsupported) || !slows || s.still == BySwapping {
			return supported(err)
		}
		return g.Apply(ctx, cgroup.Limits{CPUMillicores: cgroup.At(SuspendedMillicores)})
	}
	var err error
	if limits != (cgroup.Limits{}) {
		err = g.Apply(ctx, limits)
	}
	if err != nil && s.held() {
		return supported(g.Freeze(ctx))
	}
	return errors.Join(err, supported(g.Thaw(ctx)))
}

// weigh gives a control group the weight of a grant, which decides when containers that lent their cores run again,
// were resized, or may use more than their grants, and all containers together demand more than there is.
func weigh(ctx context.Context, g *cgroup.Group, grant resource.Vector) error {
	if _, ok := g.Has(cgroup.CPU); !ok || grant[resource.CPU] == 0 {
		return nil
	}
	return g.Apply(ctx, cgroup.Limits{CPUWeight: cgroup.WeightOf(int64(grant[resource.CPU]))})
}

// free ends everything that keeps a container from running as it was granted. I/O that the kernel holds back would
// otherwise also hold back the end of its programs.
func (s *stance) free() {
	s.still, s.engine, s.breaths = 0, cluster.Hold{}, 0
	if s.disk.Device != "" {
		s.disk.Rate = cgroup.Unlimited()
	}
}

// hasten begins the parts of carryOut that are quick in the kernel, without waiting for the result.
func (s *stance) hasten(ctx context.Context, g *cgroup.Group) {
	limits, frozen := s.wants()
	room, raise := limits.MemoryBytes.Get()
	switch {
	case raise:
		_, _ = g.RaiseMemory(room)
	case frozen:
		_ = g.AskFreeze()
	default:
		_ = g.Apply(ctx, cgroup.Limits{CPUMillicores: limits.CPUMillicores})
	}
}

// supported returns err unless it says that the kernel cannot freeze.
func supported(err error) error {
	if errors.Is(err, cgroup.ErrUnsupported) {
		return nil
	}
	return err
}

// change changes the stance of a container and carries it out. If that fails, the stance is what it was.
func (c *Container) change(ctx context.Context, how func(*stance)) error {
	return c.posture.change(ctx, c.Group, how)
}

// hasten begins a change of stance that is about to be made, unless another one is under way.
func (c *Container) hasten(ctx context.Context, how func(*stance)) {
	c.posture.look(func(s *stance) {
		next := *s
		how(&next)
		next.hasten(ctx, c.Group)
	})
}

// Stop stops the programs for a party.
func (c *Container) Stop(ctx context.Context, by Party) error { return c.stand(ctx, by, by, 0) }

// Release ends what a party does: the programs run unless another one has stopped them.
func (c *Container) Release(ctx context.Context, by Party) error { return c.stand(ctx, by, 0, 0) }

// Breathe lets the programs run for a party, even if others have stopped them.
func (c *Container) Breathe(ctx context.Context, by Party) error { return c.stand(ctx, by, 0, by) }

// stand ends what a party does, and begins a stop or a breath in its place.
func (c *Container) stand(ctx context.Context, by, still, breaths Party) error {
	return c.change(ctx, func(s *stance) {
		s.still = s.still&^by | still
		s.breaths = s.breaths&^by | breaths
		s.slows = c.slows()
	})
}

// slows reports whether the programs keep a little CPU time while they are stopped, to send heartbeats.
func (c *Container) slows() bool {
	_, slows := c.Group.Has(cgroup.CPU)
	return slows && c.Envelope.HeartbeatTimeout > 0
}

// Busy reports whether an action of the memory manager is under way.
func (c *Container) Busy() bool {
	if !c.acting.TryLock() {
		return true
	}
	c.acting.Unlock()
	return false
}

// Stopped returns the parties that have stopped the container.
func (c *Container) Stopped() Party { return c.posture.now().still }

// SuspendedFor returns how long the container has stood still until now, since this keeper has it, and the bound on its
// disk, bytes per second for reads and for writes each; 0 is no bound.
func (c *Container) SuspendedFor() (total time.Duration, bound int64) { return c.posture.stoodStill() }

// CPU returns the CPU that the container is granted now, millicores: its weight, and its quota unless it may use more.
func (c *Container) CPU() resource.Amount { return c.posture.granted() }

// Rest is how a container is to be while it has no keeper, or before it has one.
type Rest struct {
	Grant    resource.Vector
	Envelope cluster.Envelope
	// Stopped says that its programs are stopped; otherwise they run.
	Stopped bool
	// Raise is a memory limit to which its limit is raised, bytes; 0 for none.
	Raise resource.Amount
	// Lift is the disk of a throttle whose bound ends, major:minor; empty for none.
	Lift string
}

// CarryOut brings a control group into that state.
func (r *Rest) CarryOut(ctx context.Context, g *cgroup.Group) error {
	s := stance{grant: r.Grant, mostCPU: r.Envelope.MostCPU, raise: r.Raise}
	if r.Stopped {
		_, slows := g.Has(cgroup.CPU)
		s.still, s.slows = ByEngine, slows && r.Envelope.HeartbeatTimeout > 0
	}
	if r.Lift != "" {
		s.disk = cgroup.DiskLimit{Device: r.Lift, Rate: cgroup.Unlimited()}
	}
	return s.carryOut(ctx, g, stance{})
}

// heldByMemory is the change by which the memory manager suspends a container.
func (c *Container) heldByMemory(e memory.Envelope) func(*stance) {
	_, slows := c.Group.Has(cgroup.CPU)
	return func(s *stance) {
		s.still = s.still&^BySwapping | ByMemory
		s.slows = slows && e.HeartbeatTimeout > 0
	}
}
