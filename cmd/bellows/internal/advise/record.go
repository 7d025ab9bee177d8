package advise

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
)

// task is a task of a record: what it asked for, and what it did.
type task struct {
	app       profile.App
	submitted timeline.Time
	part      int   // of the record, from 1: its stage
	behind    []int // parts that ended before it was submitted
	cpus      resource.Amount
	// asked is bytes; 0 if the record does not have it.
	asked  resource.Amount
	peak   resource.Amount
	input  resource.Amount
	ran    time.Duration
	phases []cluster.Phase // of memory
}

// needs is the least box in which the task ran as it did: what it asked for, or its peak if that was more.
func (t *task) needs() resource.Amount { return max(t.asked, t.peak) }

// record is what happened, from any source.
type record struct {
	source string // its format, as people call it
	tasks  []task // in the order of submission
	parts  int    // how many parts are numbered
	// machine is from the record, or suggested for it; said is where it is from.
	machine workload.ClusterShape
	said    string
	ends    map[profile.App]importer.Ends
	// onePeak says that the record has one peak for each task, and no course over time.
	onePeak bool
	// askless says that the record has no requests for memory.
	askless bool
	notes   []string
	// unmeasured are tasks that ended well, and whose memory the daemon did not measure.
	unmeasured int
	byStage    bool // the name of a stage is that of its program: see appOf
	// teach is a command that makes the runs of the record known to a daemon; empty if there is none.
	teach string
	// box writes a request for memory in the words of what was recorded; nil if it has none.
	box func(a *appJSON, most resource.Amount) string
}

// numbers differ from run to run of what recurs.
var numbers = regexp.MustCompile(`[0-9]+`)

// appOf names what recurs of a stage. byStage says that the name of a stage is that of its program, in every job.
func appOf(j *cluster.Job, stage int, byStage bool) profile.App {
	named := *j
	named.App = cmp.Or(j.App, j.DeriveApp())
	if named.App == "" && byStage {
		return profile.App{Owner: j.Owner, Name: j.StageName(stage)}
	}
	if named.App == "" {
		named.App = cmp.Or(cluster.NameFor(numbers.ReplaceAllString(j.Name, "#")), "jobs")
	}
	return profile.AppOf(&named, stage)
}

// take makes every task of a workload, up to most of them, a task of the record.
func (r *record) take(w *workload.Workload, most int) {
	ofJob, left := make([][]int, len(w.Jobs)), 0
	r.onePeak = true
	for i := range w.Jobs {
		j := &w.Jobs[i]
		number := make([]int, len(j.Stages))
		for s := range number {
			r.parts++
			number[s] = r.parts
		}
		ofJob[i] = number
		for s := range j.Stages {
			stage := &j.Stages[s]
			if stage.Coordinator {
				continue
			}
			t := task{app: appOf(&j.Job, s, r.byStage), submitted: j.Submitted, part: number[s],
				cpus: max(1, stage.Ideal[resource.CPU]), asked: stage.Ideal[resource.Memory]}
			for _, p := range stage.Parents {
				t.behind = append(t.behind, number[p])
			}
			if j.After >= 0 {
				t.behind = append(t.behind, ofJob[j.After]...)
			}
			if r.askless {
				t.asked = 0
			}
			for k := range stage.Tasks {
				if len(r.tasks) == most {
					left += stage.Tasks - k
					break
				}
				truth := j.Task(s, k)
				t.ran, t.peak = max(truth.Duration, time.Millisecond), max(1, truth.IdealMemory)
				t.phases = memoryOf(truth.Phases, t.ran)
				t.input = stage.Input
				if s < len(j.Truth) {
					read, _ := j.Truth[s].Input.Of(k)
					t.input = cmp.Or(read, t.input)
				}
				if len(t.phases) > 1 {
					r.onePeak = false
				}
				for p := range t.phases {
					t.peak = max(t.peak, t.phases[p].Demand[resource.Memory])
				}
				r.tasks = append(r.tasks, t)
			}
		}
	}
	if left > 0 {
		r.notes = append(r.notes, fmt.Sprintf("The first %d tasks count, and %d more are left out (--tasks).", most, left))
	}
	slices.SortStableFunc(r.tasks, func(a, b task) int { return cmp.Compare(a.submitted, b.submitted) })
}

// memoryOf returns the phases of a task in which its memory differs.
func memoryOf(phases []cluster.Phase, ran time.Duration) (all []cluster.Phase) {
	for _, p := range profile.Lasting(phases, ran) {
		use := resource.Vector{}.With(resource.Memory, p.Demand[resource.Memory])
		if last := len(all) - 1; last >= 0 && all[last].Demand == use {
			all[last].Duration += p.Duration
			continue
		}
		all = append(all, cluster.Phase{Duration: p.Duration, Demand: use})
	}
	return all
}

// fit bounds requests by a node of the machine, as people do whose machine is smaller than what a workflow asks for.
// Tasks that used more than a node has are left out.
func (r *record) fit() {
	node, cut, left := r.machine.Node, 0, 0
	r.tasks = slices.DeleteFunc(r.tasks, func(t task) bool {
		if t.peak > node[resource.Memory] {
			left++
			return true
		}
		return false
	})
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.asked > node[resource.Memory] || t.cpus > node[resource.CPU] {
			cut++
		}
		t.asked, t.cpus = min(t.asked, node[resource.Memory]), min(t.cpus, node[resource.CPU])
	}
	if cut > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%s asked for more than a node has: a whole node is assumed.",
			terminal.Count(cut, "task")))
	}
	if left > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%s used more memory than a node has, and %s left out.",
			terminal.Count(left, "task"), terminal.IsOrAre(left)))
	}
}
