package yarnme

import (
	"fmt"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

func fig3Workload() *workload.Workload {
	memory := func(gb int) resource.Vector { return resource.Of(resource.Core, resource.Amount(gb)*resource.GB) }
	others := workload.Job{After: -1, Job: cluster.Job{ID: 1, Name: "others", Stages: []cluster.Stage{
		{Name: "first", Tasks: 1, Ideal: memory(4), Duration: 100 * time.Second},
		{Name: "second", Tasks: 1, Ideal: memory(5), Duration: 200 * time.Second}}}}
	job := workload.Job{After: -1, Job: cluster.Job{ID: 2, Name: "job", Submitted: timeline.Time(time.Second),
		Stages: []cluster.Stage{
			{Name: "tasks", Tasks: 3, Ideal: memory(3), MinMemory: 300 * resource.MB, Duration: 25 * time.Second,
				Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 2}}}}}
	return &workload.Workload{Jobs: []workload.Job{others, job}}
}

func fig3(*lab.Lab) (*lab.Findings, error) {
	config := sim.Config{Nodes: sim.Uniform(1, resource.Of(16*resource.Core, 10*resource.GB)), KeepTasks: true}
	table := lab.NewTable("The job of three tasks", "scheduler", "job runtime", "runs of its tasks")
	data := lab.NewTable("tasks", "scheduler", "job", "task", "memory_bytes", "launched_s", "finished_s")
	gantt := &chart.Gantt{Title: "Three tasks on a busy node", Subtitle: "simulated",
		Legend: []string{"other jobs", "the job"}, Faint: "under-sized"}
	var runtime [2]float64
	for k, c := range []lab.Contender{yarn, yarnMESum} {
		r, err := c.Succeed(config, fig3Workload())
		if err != nil {
			return nil, err
		}
		runtime[k] = r.Jobs[1].Runtime().Seconds()
		ran := ""
		for i, t := range r.Tasks {
			from, to := time.Duration(t.Launched).Seconds(), time.Duration(t.Finished).Seconds()
			mine := t.ID.Job == 2
			data.Put(c.Label, int(t.ID.Job), i, int64(t.Memory), from, to)
			span := chart.Span{Row: len(gantt.Rows), From: from, To: to, Label: resource.FormatMemory(t.Memory),
				Faint: t.UnderSized}
			row := "others"
			if mine {
				row, span.Color = "task "+strconv.Itoa(int(t.ID.Index)+1), 1
				ran += fmt.Sprintf("%g–%g s with %s; ", from, to, resource.FormatMemory(t.Memory))
			}
			gantt.Rows, gantt.Spans = append(gantt.Rows, policyName(c)+", "+row), append(gantt.Spans, span)
		}
		table.Add(c.Label, lab.Decimals(runtime[k], 0)+" s", ran[:len(ran)-2])
	}
	share := runtime[1] / runtime[0]
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "gantt", Caption: "What runs when: above under YARN, below under YARN-ME (simulated)",
			Picture: gantt}},
		Claims: []lab.Claim{Paper.Stated("yarn-me/fig3", "sooner").Judge(lab.Decimals(100*share, 1)+" %", share < 0.3,
			share < 0.5)},
	}, nil
}

// policyName returns the contender's name without the estimator.
func policyName(c lab.Contender) string {
	if c.Policy == "yarn-me" {
		return "YARN-ME"
	}
	return "YARN"
}
