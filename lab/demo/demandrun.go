package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/internal/boundeddisk"
	"github.com/bellows-rm/bellows/internal/sandbox"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/profiler"
	"github.com/bellows-rm/bellows/resource"
)

// DemandRun is one run of the part demand under one contender. Times count from the submission of the first job.
type DemandRun struct {
	Policy string      `json:"policy"`
	Round  int         `json:"round"` // from 1
	Begun  time.Time   `json:"begun"`
	Jobs   []DemandJob `json:"jobs"`
	// Disk has what the disk transferred in each second.
	Disk  []resource.Amount `json:"disk_bytes_per_s"`
	Areas Areas             `json:"areas"`
	// CPU is the CPU time of the programs, Busy that of the machine, Stolen what a hypervisor took of the machine meanwhile.
	CPU    time.Duration `json:"cpu_ns"`
	Busy   time.Duration `json:"busy_ns"`
	Stolen time.Duration `json:"stolen_ns"`
	// Counted is the share of what the disk transferred that was counted for the programs: the rest is the machine's own, or
	// written back by a kernel that does not attribute it.
	Counted float64       `json:"counted"`
	Took    time.Duration `json:"took_ns"` // setup included
}

// DemandJob is a job in a DemandRun.
type DemandJob struct {
	Name    string        `json:"name"`
	Started time.Duration `json:"started_ns"`
	Ended   time.Duration `json:"ended_ns"`
	Use     curve         `json:"use"`
}

// Makespan is the time until the last of the jobs ended.
func (r *DemandRun) Makespan() (last time.Duration) {
	for _, j := range r.Jobs {
		last = max(last, j.Ended)
	}
	return last
}

// wait is how long the jobs waited for their start, on average.
func (r *DemandRun) wait() time.Duration {
	sum := time.Duration(0)
	for _, j := range r.Jobs {
		sum += j.Started
	}
	return sum / time.Duration(max(1, len(r.Jobs)))
}

// atOnce is how many jobs ran at once, on average over the makespan.
func (r *DemandRun) atOnce() float64 {
	sum := 0.0
	for _, j := range r.Jobs {
		sum += (j.Ended - j.Started).Seconds()
	}
	return sum / max(r.Makespan().Seconds(), 1e-9)
}

// slowdown is how many times as long as alone the jobs ran, on average.
func (r *DemandRun) slowdown(of *DemandResult) float64 {
	sum := 0.0
	for _, j := range r.Jobs {
		sum += (j.Ended - j.Started).Seconds() / max(of.program(j.Name).Alone.Median, 1e-9)
	}
	return sum / float64(max(1, len(r.Jobs)))
}

// demanded returns what all running programs would transfer in each second if each were alone.
func (r *DemandRun) demanded(of *DemandResult) []resource.Amount {
	all := make([]resource.Amount, len(r.Disk))
	for _, j := range r.Jobs {
		if len(j.Use) == 0 {
			continue
		}
		for i, d := range j.Use.demand(of.program(j.Name).Phases) {
			if at := int(j.Started/time.Second) + i; at < len(all) {
				all[at] += d
			}
		}
	}
	return all
}

// runDemand runs the mix once under a contender.
func (d *demandDemonstration) runDemand(ctx context.Context, c *contender) (r *DemandRun, err error) {
	r = &DemandRun{Policy: c.Label}
	var meter diskMeter
	look := func(*sandbox.Session) {
		if m, err := d.disk.Meter(); err == nil {
			meter.look(m)
		}
	}
	_, err = sandbox.Run(ctx, d.work, c.Policy, c.Settings, d.result.Node, 250*time.Millisecond, look, func(ctx context.Context, s *sandbox.Session) (time.Duration, error) {
		if err := d.learned.remember(ctx, s); err != nil {
			return 0, err
		}
		if err := d.prepare(ctx, s.Input); err != nil {
			return 0, err
		}
		m, err := d.disk.Meter()
		if err != nil {
			return 0, err
		}
		begun := time.Now()
		r.Begun = begun.UTC().Truncate(time.Second)
		meter.begin(begun, m)
		busy, _ := profiler.BusyTime()
		stolen, _ := profiler.StolenTime()
		if err := d.play(ctx, s, c, r, begun); err != nil {
			return 0, err
		}
		busyNow, _ := profiler.BusyTime()
		stolenNow, _ := profiler.StolenTime()
		r.Busy, r.Stolen = busyNow-busy, stolenNow-stolen
		return r.CPU, nil
	})
	if err != nil {
		return nil, err
	}
	r.Disk = meter.perSecond(r.Makespan())
	r.Areas = areas(d.result.Speed, r.Makespan(), r.Disk, r.demanded(d.result))
	counted, all := 0.0, 0.0
	for _, j := range r.Jobs {
		bytes, _ := j.Use.totals()
		counted += bytes
	}
	for _, n := range r.Disk {
		all += float64(n)
	}
	r.Counted = counted / max(all, 1)
	return r, nil
}

// play submits all jobs and waits for them.
func (d *demandDemonstration) play(ctx context.Context, s *sandbox.Session, c *contender, r *DemandRun, begun time.Time) error {
	var ids []cluster.JobID
	for i := range d.jobs {
		id, err := submitDemand(ctx, s, under(c, d.jobs[i], d.learned.by(d.jobs[i].Name).Peak))
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for i, id := range ids {
		d.Show(fmt.Sprintf("%s: %.0f s, %d of %d jobs ended", c.Label, time.Since(begun).Seconds(), i, len(ids)))
		j, use, err := awaitDemand(ctx, s, id)
		if err != nil {
			return err
		}
		t := &j.Tasks[0]
		r.Jobs = append(r.Jobs, DemandJob{j.Name, t.Started.Sub(begun), t.Ended.Sub(begun), use})
		if t.Exit != nil {
			r.CPU += t.Exit.CPUTime
		}
	}
	return nil
}

func submitDemand(ctx context.Context, s *sandbox.Session, j cluster.Job) (cluster.JobID, error) {
	id, err := s.Driver.Submit(ctx, live.Submission{Job: j, Caller: sandbox.Caller(), Env: sandbox.Environment(), Dir: s.Input})
	if err != nil {
		return 0, fmt.Errorf("submit job %q: %w", j.Name, err)
	}
	return id, nil
}

// awaitDemand waits for a job, and returns what its task used. A job that fails is an error.
func awaitDemand(ctx context.Context, s *sandbox.Session, id cluster.JobID) (live.Job, curve, error) {
	j, err := s.Driver.Wait(ctx, id)
	if err != nil {
		return j, nil, fmt.Errorf("wait for job %d: %w", id, err)
	}
	if j.Status != cluster.StatusSucceeded {
		return j, nil, fmt.Errorf("job %q ended as %s: %s", j.Name, j.Status, j.Detail)
	}
	used, err := s.Driver.Usage(ctx, id, 0)
	if err != nil || len(used) != 1 {
		return j, nil, fmt.Errorf("job %q: %d runs were measured, must be 1: %w", j.Name, len(used), err)
	}
	return j, curveOf(&used[0]), nil
}

// diskMeter are readings of the meter of a disk over time.
type diskMeter struct {
	mu    sync.Mutex
	begun time.Time
	at    []time.Duration
	total []resource.Amount
}

// begin forgets all readings but this one.
func (m *diskMeter) begin(now time.Time, is boundeddisk.Meter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun, m.at, m.total = now, []time.Duration{0}, []resource.Amount{is.Total()}
}

func (m *diskMeter) look(is boundeddisk.Meter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begun.IsZero() {
		m.at, m.total = append(m.at, time.Since(m.begun)), append(m.total, is.Total())
	}
}

// perSecond returns what was transferred in each second until the end; the last second may be a part of one. Between two
// readings the rate is taken to be constant.
func (m *diskMeter) perSecond(end time.Duration) (rates []resource.Amount) {
	before := m.by(0)
	for t := time.Duration(0); t < end; t += time.Second {
		now := m.by(min(end, t+time.Second))
		rates, before = append(rates, resource.Amount(now-before)), now
	}
	return rates
}

// by returns what had been transferred at a time.
func (m *diskMeter) by(t time.Duration) float64 {
	for i := 1; i < len(m.at); i++ {
		if t <= m.at[i] && m.at[i] > m.at[i-1] {
			share := (t - m.at[i-1]).Seconds() / (m.at[i] - m.at[i-1]).Seconds()
			return float64(m.total[i-1]) + share*float64(m.total[i]-m.total[i-1])
		}
	}
	return float64(m.total[len(m.total)-1])
}
