package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/profiler"
	"github.com/bellows-rm/bellows/studies/boundeddisk"
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
	// CPU is the CPU time of the programs, Busy that of the machine, Stolen what a hypervisor took of the machine
	// meanwhile.
	CPU    time.Duration `json:"cpu_ns"`
	Busy   time.Duration `json:"busy_ns"`
	Stolen time.Duration `json:"stolen_ns"`
	// Counted is the share of what the disk transferred that was counted for the programs: the rest is the machine's
	// own, or written back by a kernel that does not attribute it.
	Counted float64 `json:"counted"`
	// Over is how long the running programs demanded more than the cores, Stops how often programs were to be stopped
	// for others to keep going, Suspended how long programs stood still, in total, and Resizes how often grants were to be
	// changed.
	Over      time.Duration `json:"over_allocated_ns,omitempty"`
	Stops     int           `json:"stops,omitempty"`
	Suspended time.Duration `json:"still_ns,omitempty"`
	Resizes   int           `json:"resizes,omitempty"`
	Took      time.Duration `json:"took_ns"` // setup included
}

// DemandJob is a program in a DemandRun: a job, or a stage of a job.
type DemandJob struct {
	Name    string        `json:"name"`          // that of the DemandProgram
	Job     string        `json:"job,omitempty"` // if it has several programs
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

// wait is how long the jobs waited for the start of their first program, on average.
func (r *DemandRun) wait() time.Duration {
	return r.ofJobs(func(j *DemandJob) time.Duration {
		return j.Started
	}, func(a, b time.Duration) time.Duration { return min(a, b) })
}

// jobTime is how long the jobs took until their last program ended, on average.
func (r *DemandRun) jobTime() time.Duration {
	return r.ofJobs(func(j *DemandJob) time.Duration {
		return j.Ended
	}, func(a, b time.Duration) time.Duration { return max(a, b) })
}

// ofJobs returns the mean over the jobs of a time, which is one of their programs'.
func (r *DemandRun) ofJobs(of func(*DemandJob) time.Duration,
	which func(a, b time.Duration) time.Duration) (sum time.Duration) {
	times := map[string]time.Duration{}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		name, t := cmp.Or(j.Job, j.Name), of(j)
		if was, ok := times[name]; ok {
			t = which(was, t)
		}
		times[name] = t
	}
	for _, t := range times {
		sum += t
	}
	return sum / time.Duration(max(1, len(times)))
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

// demanded returns what all running programs would use per second, in each second, if each were alone.
func (r *DemandRun) demanded(of *DemandResult, what func(*Piece) resource.Amount) []resource.Amount {
	all := make([]resource.Amount, len(r.Disk))
	for _, j := range r.Jobs {
		if len(j.Use) == 0 {
			continue
		}
		for i, d := range j.Use.demand(of.program(j.Name).Phases, what) {
			if at := int(j.Started/time.Second) + i; at < len(all) {
				all[at] += d
			}
		}
	}
	return all
}

// judge computes what follows from the records of a run.
func (r *DemandRun) judge(of *DemandResult) {
	r.Areas = areas(of.Speed, r.Makespan(), r.Disk, r.demanded(of, (*Piece).disk))
	r.Over, r.Suspended = 0, 0
	if !of.mix().byCores() {
		return
	}
	for _, d := range r.demanded(of, (*Piece).cpu) {
		if float64(d) > overAllocated*float64(of.Node[resource.CPU]) {
			r.Over += time.Second
		}
	}
	for _, j := range r.Jobs {
		for i := range j.Use {
			r.Suspended += j.Use[i].Suspended
		}
	}
}

// overAllocated is the share of the cores beyond which programs demand too much: what two programs of one core each
// use alone is now and then a little more than two cores.
const overAllocated = 1.05

// runDemand runs the mix once under a contender.
func (d *demandDemonstration) runDemand(ctx context.Context, c *contender) (r *DemandRun, err error) {
	r = &DemandRun{Policy: c.Label}
	var meter diskMeter
	look := func(*sandbox.Session) {
		if m, err := d.disk.Meter(); err == nil {
			meter.look(m)
		}
	}
	_, err = sandbox.Run(ctx, d.work, c.Policy, c.Settings, d.result.Node, 250*time.Millisecond, look,
		func(ctx context.Context, s *sandbox.Session) (time.Duration, error) {
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
			if err := r.count(s.Driver.EventLog()); err != nil {
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
	r.judge(d.result)
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
func (d *demandDemonstration) play(ctx context.Context, s *sandbox.Session, c *contender, r *DemandRun,
	begun time.Time) error {
	var ids []cluster.JobID
	for i := range d.jobs {
		id, err := submitDemand(ctx, s, d.mix.under(c, d.jobs[i], d.learned))
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for i, id := range ids {
		d.Show(fmt.Sprintf("%s: %.0f s, %d of %d jobs ended", c.Label, time.Since(begun).Seconds(), i, len(ids)))
		j, used, err := awaitDemand(ctx, s, id)
		if err != nil {
			return err
		}
		for k := range j.Tasks {
			t := &j.Tasks[k]
			stage := int(t.Task.Stage)
			program := DemandJob{Name: programName(&d.jobs[i], stage), Started: t.Started.Sub(begun),
				Ended: t.Ended.Sub(begun), Use: used[stage]}
			if program.Name != j.Name {
				program.Job = j.Name
			}
			r.Jobs = append(r.Jobs, program)
			if t.Exit != nil {
				r.CPU += t.Exit.CPUTime
			}
		}
	}
	return nil
}

// count counts the decisions in the event log of a run.
func (r *DemandRun) count(log string) error {
	file, err := os.Open(log)
	if err != nil {
		return err
	}
	defer file.Close()
	in, err := eventlog.NewReader(file, "event log")
	if err != nil {
		return err
	}
	leveled := map[cluster.TaskID]bool{}
	for {
		record, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range record.Decisions {
			switch d := &record.Decisions[i]; d.Kind {
			case cluster.Suspend, cluster.Resume: // one that is stopped may be stopped for longer
				was, is := leveled[d.Task], d.By&cluster.HeldByLeveling != 0
				if leveled[d.Task] = is; is && !was {
					r.Stops++
				}
			case cluster.Resize:
				r.Resizes++
			}
		}
	}
}

func submitDemand(ctx context.Context, s *sandbox.Session, j cluster.Job) (cluster.JobID, error) {
	id, err := s.Driver.Submit(ctx, live.Submission{Job: j, Caller: sandbox.Caller(), Env: sandbox.Environment(),
		Dir: s.Input})
	if err != nil {
		return 0, fmt.Errorf("submit job %q: %w", j.Name, err)
	}
	return id, nil
}

// awaitDemand waits for a job, and returns what each of its stages, of one task, used. A job that fails is an error.
func awaitDemand(ctx context.Context, s *sandbox.Session, id cluster.JobID) (api.Job, []curve, error) {
	j, err := s.Driver.Wait(ctx, id)
	if err != nil {
		return j, nil, fmt.Errorf("wait for job %d: %w", id, err)
	}
	if j.Status != cluster.StatusSucceeded {
		return j, nil, fmt.Errorf("job %q ended as %s: %s", j.Name, j.Status, j.Detail)
	}
	used, err := s.Driver.Usage(ctx, id, 0)
	if err != nil || len(used) != len(j.Tasks) {
		return j, nil, fmt.Errorf("job %q: %d runs were measured, must be %d: %w", j.Name, len(used), len(j.Tasks), err)
	}
	curves := make([]curve, len(used))
	for i := range used {
		curves[used[i].Task.Stage] = curveOf(&used[i])
	}
	return j, curves, nil
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

// perSecond returns what was transferred in each second until the end; the last second may be a part of one. Between
// two readings the rate is taken to be constant.
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
