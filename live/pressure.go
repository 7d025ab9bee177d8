package live

import (
	"context"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
)

// Pressure says that the machine gives much less of a resource than it could, and what jobs use of it.
type Pressure struct {
	// Gives is what the machine gives of each resource that is pressed, per second. It is zero if none is pressed any
	// more.
	Gives resource.Vector
	// Bounded says that the policy bounds what some programs use of it, so that nothing else need be done. Uses is not
	// found out then.
	Bounded bool
	// Uses are the bytes per second that the running tasks of each job have transferred lately, to and from disk and
	// network. Jobs that have transferred nothing, as far as is known, are left out.
	Uses map[cluster.JobID]resource.Vector
}

// usesOver is the time over which it is found out what jobs use. The agent takes a sample every second.
const usesOver = 3 * time.Second

// Pressure waits until the Backend reports that something of the machine is pressed, or still is, or is not any more.
// It then takes some seconds to find out who uses it. A report that comes meanwhile is for the next call; of several,
// the newest counts. There is one caller.
func (d *Driver) Pressure(ctx context.Context) (p Pressure, err error) {
	if err := await(ctx, d, d.pressed); err != nil {
		return p, err
	}
	running, err := d.underPressure(ctx, &p)
	if err != nil || p.Bounded || p.Gives.IsZero() {
		return p, err
	}
	before := d.transferred(running)
	select {
	case <-time.After(usesOver):
	case <-ctx.Done():
		return p, ctx.Err()
	}
	if running, err = d.underPressure(ctx, &p); err != nil {
		return p, err
	}
	p.Uses = map[cluster.JobID]resource.Vector{}
	for id, now := range d.transferred(running) {
		was, known := before[id]
		if passed := (now.at - was.at).Seconds(); known && passed > 0 {
			uses := p.Uses[id.Task.Job]
			for k, bytes := range now.bytes.Sub(was.bytes) {
				uses[k] += max(0, resource.Amount(float64(bytes)/passed))
			}
			if !uses.IsZero() {
				p.Uses[id.Task.Job] = uses
			}
		}
	}
	return p, nil
}

// underPressure finds out what is pressed, whether the policy bounds programs for that, and which containers run.
func (d *Driver) underPressure(ctx context.Context, p *Pressure) (running []cluster.ContainerID, err error) {
	err = d.look(ctx, func() {
		p.Gives = resource.Vector{}
		for _, n := range d.engine.Snapshot().Nodes {
			if n.Gone {
				continue
			}
			p.Gives = p.Gives.Add(n.Pressed)
			for _, t := range n.Tasks {
				_, bounded := t.Bounded(d.now())
				p.Bounded = p.Bounded || bounded
				if j := d.jobs[t.ID.Job]; j != nil {
					if r := j.newest(t.ID); r != nil && !r.ended() {
						running = append(running, r.Container)
					}
				}
			}
		}
	})
	return running, err
}

// transfers is what the programs of a container have transferred since they began.
type transfers struct {
	bytes resource.Vector // to and from disk and network
	at    time.Duration   // since they began, when that was measured
}

// transferred returns what containers have transferred. Those that are not measured are left out.
func (d *Driver) transferred(containers []cluster.ContainerID) map[cluster.ContainerID]transfers {
	all := map[cluster.ContainerID]transfers{}
	for _, id := range containers {
		u, _ := d.backend.Usage(id) // If a part is missing, the rest counts.
		if len(u.Spans) == 0 {
			continue
		}
		sum := func(a, b usage.Kind) resource.Amount {
			x, _ := u.Total(a)
			y, _ := u.Total(b)
			return resource.Amount(x + y)
		}
		all[id] = transfers{resource.Vector{}.With(resource.Disk, sum(usage.Read, usage.Written)).With(resource.Network,
			sum(usage.Received, usage.Sent)), u.Length()}
	}
	return all
}
