package importer

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Slurm reads the accounting of Slurm as sacct --parsable or --parsable2 prints it. A job is a stage with a task for
// each of its nodes; its steps tell what memory it used.
type Slurm struct {
	Memory     resource.Amount // of a job on a node, if it states none and its use is unknown, bytes
	KeepFailed bool            // jobs that ended otherwise than by completion, for as long as they ran
}

// DefaultSlurm returns two gigabytes a node.
func DefaultSlurm() *Slurm { return &Slurm{Memory: 2 * resource.GiB} }

// Name implements Format.
func (f *Slurm) Name() string { return "slurm" }

// Node implements Format.
func (f *Slurm) Node() resource.Vector { return resource.Of(64*resource.Core, 256*resource.GiB) }

func (f *Slurm) check() error { return checkTask(resource.Core, f.Memory) }

// slurmJob is a job, whose steps may follow.
type slurmJob struct {
	id, user, app    string
	submitted        float64 // seconds
	ran, limit, busy float64 // seconds; limit and busy may be unknown, 0
	cpus, nodes      float64
	requested, used  float64 // bytes on a node; 0 is unknown
}

func (f *Slurm) read(in *input, job func(workload.Job) error) error {
	t, err := in.separated("|", "JobID", "?JobName", "?User", "State", "Submit", "Elapsed|ElapsedRaw", "?Timelimit",
		"AllocCPUS|NCPUS|ReqCPUS", "?NNodes|AllocNodes|ReqNodes", "?ReqMem", "?MaxRSS", "?NTasks", "?TotalCPU")
	if err != nil {
		return err
	}
	known, first := map[string]*slurmJob{}, map[string]int{}
	var order []*slurmJob
	err = t.rows(func(r *row) error {
		id, step, isStep := strings.Cut(r.text("JobID"), ".")
		if isStep {
			if j := known[id]; j != nil && step != "extern" {
				j.step(r)
			}
			return nil
		}
		if j := f.job(r, first); j != nil {
			known[id] = j
			order = append(order, j)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, j := range order {
		if err := job(f.workloadJob(in, j)); err != nil {
			return err
		}
	}
	return nil
}

// What the values of sacct must be.
const (
	slurmTimes = "seconds, or a time such as 1-02:03:04"
	slurmDates = "seconds, or a date such as 2024-02-01T10:00:00"
	slurmSizes = "bytes, or a size such as 123K or 4G"
)

// job reads the line of a job; nil is a job that is left out.
func (f *Slurm) job(r *row, first map[string]int) *slurmJob {
	state, _, _ := strings.Cut(r.text("State"), " ") // CANCELLED by 1000
	app := profile.App{Owner: plainName(r.text("User")), Name: cluster.NameFor(r.text("JobName"))}
	switch state {
	case "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL":
		r.in.notes.ended(app, state == "OUT_OF_MEMORY")
	}
	switch state {
	case "COMPLETED":
	case "RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING":
		r.in.notes.add("jobs had not ended and were left out", 1)
		return nil
	default:
		if !f.KeepFailed {
			r.in.notes.add("jobs did not complete and were left out (--keep-failed keeps them)", 1)
			return nil
		}
	}
	j := &slurmJob{id: r.once("JobID", first, ""), user: app.Owner, app: app.Name}
	if r.missing("Submit") {
		r.fail("Submit", "must not be empty")
	}
	j.submitted = r.quantity("Submit", slurmDate, mostMilliseconds/1000, slurmDates)
	j.ran = r.quantity("Elapsed", slurmTime, mostSeconds, slurmTimes)
	j.cpus, j.nodes = r.number("AllocCPUS", 0, mostCores), max(r.numberOr("NNodes", 0, mostTasks, 1), 1)
	// A limit may be a word: UNLIMITED, Partition_Limit.
	if limit, ok := slurmTime(r.text("Timelimit")); ok && limit <= mostSeconds {
		j.limit = limit
	}
	j.busy = r.quantity("TotalCPU", slurmTime, mostBytes, slurmTimes)
	j.requested = j.memory(r)
	j.step(r)
	if j.ran == 0 && r.err == nil {
		r.in.notes.add("jobs did not run and were left out", 1)
		return nil
	}
	return j
}

// memory returns the memory that a job requested on a node: of the whole job, or since before Slurm 21.08 of a node (n)
// or a CPU (c).
func (j *slurmJob) memory(r *row) float64 {
	text := r.text("ReqMem")
	bare := strings.TrimRight(text, "nc")
	v := r.quantity("ReqMem", func(string) (float64, bool) { return slurmSize(bare) }, mostBytes, slurmSizes)
	switch strings.TrimPrefix(text, bare) {
	case "n":
		return v
	case "c":
		return v * j.cpus / j.nodes
	}
	return v / j.nodes
}

// step adds what a step used: its largest task, as often as tasks of it ran on a node.
func (j *slurmJob) step(r *row) {
	one := r.quantity("MaxRSS", slurmSize, mostBytes, slurmSizes)
	tasks := max(r.numberOr("NTasks", 0, mostTasks, 1), 1)
	nodes := max(r.numberOr("NNodes", 0, mostTasks, 1), 1)
	j.used = max(j.used, min(one*math.Ceil(tasks/nodes), mostBytes))
}

func (f *Slurm) workloadJob(in *input, j *slurmJob) workload.Job {
	if j.requested == 0 {
		in.notes.unasked += int(j.nodes)
	}
	if j.requested == 0 && j.used == 0 {
		in.notes.add("jobs do not say what memory they need and get what is assumed", 1)
	}
	memory := cmp.Or(j.requested, j.used, float64(f.Memory))
	s := cluster.Stage{Name: "nodes", Tasks: int(j.nodes),
		Duration: max(seconds(cmp.Or(j.limit, j.ran)), time.Millisecond),
		Ideal:    resource.Of(max(1, amount(j.cpus/j.nodes*float64(resource.Core))), max(1, amount(memory)))}
	return workload.Job{
		Job: cluster.Job{Name: "job-" + j.id, Owner: j.user, App: j.app, Submitted: timeline.Time(seconds(j.submitted)),
			Stages: []cluster.Stage{s}},
		Truth: []workload.StageTruth{batchTruth(&s, max(seconds(j.ran), time.Millisecond),
			amount(j.busy/j.ran/j.nodes*float64(resource.Core)), amount(j.used))},
	}
}

// slurmTime reads seconds, or a time of sacct: [DD-[HH:]]MM:SS, perhaps with a fraction.
func slurmTime(text string) (v float64, ok bool) {
	days, rest, withDays := strings.Cut(text, "-")
	if !withDays {
		days, rest = "0", text
	}
	v, ok = parseNumber(days, 0, math.MaxFloat64)
	parts := strings.Split(rest, ":")
	if len(parts) > 3 || withDays && len(parts) != 3 {
		return 0, false
	}
	v *= 24
	for i, part := range append(make([]string, 3-len(parts)), parts...) {
		if i > 0 {
			v *= 60
		}
		if part == "" && i < 3-len(parts) {
			continue
		}
		n, isNumber := parseNumber(part, 0, math.MaxFloat64)
		v, ok = v+n, ok && isNumber
	}
	return v, ok
}

// slurmDate reads seconds, or a date without a time zone, which does not matter within a file.
func slurmDate(text string) (v float64, ok bool) {
	if v, ok = parseNumber(text, 0, math.MaxFloat64); ok {
		return v, true
	}
	at, err := time.Parse("2006-01-02T15:04:05", text)
	return float64(at.Unix()), err == nil
}

// slurmSize reads bytes, or a size with a unit of sacct, which is a power of 1024.
func slurmSize(text string) (v float64, ok bool) {
	power := 0
	if i := len(text) - 1; i >= 0 {
		if power = strings.IndexByte("KMGTPE", text[i]) + 1; power > 0 {
			text = text[:i]
		}
	}
	v, ok = parseNumber(text, 0, math.MaxFloat64)
	return v * math.Pow(1024, float64(power)), ok
}
