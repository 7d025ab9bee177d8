package lab

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// Ground is workloads of one kind with the cluster that they run on, for comparisons of policies.
type Ground struct {
	Name string
	// Seeds are the policies whose paper, or whose use, the ground is from.
	Seeds []string
	// Settings are what the experiments of the paper set, by POLICY.NAME.
	Settings map[string]string
	// Makespan says that the end of the last job is what counts, and not the mean run time of the jobs.
	Makespan bool
	// Make returns the cluster and the workload of a run.
	Make func(l *Lab, run int) (sim.Config, *workload.Workload, error)
}

// Apart makes the tasks of a workload start one by one, also where their stage says that they start together.
func Apart(w *workload.Workload) {
	for i := range w.Jobs {
		for k := range w.Jobs[i].Stages {
			w.Jobs[i].Stages[k].Together = false
		}
	}
}

// Loaded submits jobs at random times so that they demand a multiple of the CPU or memory that a cluster has meanwhile,
// whichever is more.
func Loaded(jobs []workload.Job, nodes []cluster.Node, load float64,
	at func(n int, over time.Duration) []timeline.Time) {
	var has, work resource.Vector
	for i := range nodes {
		has = has.Add(nodes[i].Capacity)
	}
	for i := range jobs {
		for k := range jobs[i].Stages {
			s := &jobs[i].Stages[k]
			for _, kind := range []resource.Kind{resource.CPU, resource.Memory} {
				work[kind] += resource.Amount(float64(s.Tasks) * s.RunTime().Seconds() * float64(s.Ideal[kind]))
			}
		}
	}
	share := max(float64(work[resource.CPU])/float64(has[resource.CPU]),
		float64(work[resource.Memory])/float64(has[resource.Memory]))
	for i, t := range at(len(jobs), time.Duration(share/load*1e9)) {
		jobs[i].Submitted = t
	}
}

// Number sorts jobs by their submission and numbers them.
func Number(w *workload.Workload) {
	slices.SortStableFunc(w.Jobs, func(a, b workload.Job) int { return cmp.Compare(a.Submitted, b.Submitted) })
	for i := range w.Jobs {
		w.Jobs[i].ID, w.Jobs[i].After = cluster.JobID(i+1), -1
	}
}
