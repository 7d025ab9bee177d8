package demo

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// The sorts: the ideal memory of each is more than half of the node's memory, so that two with ideal memory do not fit
// side by side.
const (
	sortLines   = 1_250_000
	sortIdeal   = 145 * resource.MiB // the text, sort's record per line, and the process
	sortLeast   = 48 * resource.MiB
	sortMemory  = 208 * resource.MiB // of the node
	sortJobs    = 5
	sortTasks   = 3 // of a job
	sortNumbers = "numbers.txt"
)

// sortCommand sorts the numbers in its granted memory, less the process's own memory.
const sortCommand = "LC_ALL=C sort -n --parallel=1 -T . -S {memory-24MiB} " + sortNumbers + " | cksum"

// elastic runs jobs that sort: with their ideal memory, and with less memory where the job then ends no later.
func (d *demonstration) elastic(ctx context.Context, p *Part) error {
	p.About = fmt.Sprintf("%d jobs of %d sorts each; a sort is fastest with %s and can run with %s", sortJobs, sortTasks,
		resource.FormatMemory(sortIdeal), resource.FormatMemory(sortLeast))
	p.Node = resource.Of(2*resource.Core, sortMemory)
	if p.LeftOut = withoutSort(ctx); p.LeftOut == "" {
		p.LeftOut = d.unsuitable(ctx, p.Node)
	}
	if p.LeftOut != "" || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := writeNumbers(filepath.Join(d.input(), sortNumbers)); err != nil {
		return err
	}
	// First, the cost of less memory is measured.
	ideal, err := d.timeOf(ctx, p.Node, sortIdeal)
	if err != nil {
		return err
	}
	least, err := d.timeOf(ctx, p.Node, sortLeast)
	if err != nil {
		return err
	}
	cost := cluster.Elasticity{Kind: cluster.Step, Factor: max(1, least.Seconds()/ideal.Seconds())}
	d.Say(fmt.Sprintf("a sort takes %.1f s with %s, and %.2f times as long with %s", ideal.Seconds(),
		resource.FormatMemory(sortIdeal), cost.Factor, resource.FormatMemory(sortLeast)))
	stage := sortStage(sortTasks, sortIdeal)
	stage.Duration = ideal
	fixed := under{about: "fixed sizes", policy: "fair"}
	if p.Fixed, err = d.run(ctx, &fixed, p.Node, sorts(stage)); err != nil {
		return err
	}
	stage.MinMemory, stage.Elasticity = sortLeast, cost
	shared := under{about: "elastic sizes", policy: "yarn-me", settings: map[string]string{"yarn-me.granularity": "4MiB"}}
	p.Shared, err = d.run(ctx, &shared, p.Node, sorts(stage))
	return err
}

func sortStage(tasks int, memory resource.Amount) cluster.Stage {
	return cluster.Stage{Name: "sort", Tasks: tasks, Ideal: resource.Of(resource.Core, memory),
		Command: cluster.Command{Args: []string{"sh", "-c", sortCommand}}}
}

// sorts returns the jobs, one a second.
func sorts(stage cluster.Stage) *workload.Workload {
	w := &workload.Workload{}
	for i := range sortJobs {
		w.Jobs = append(w.Jobs,
			workload.Job{After: -1, Job: cluster.Job{Name: fmt.Sprintf("sort-%d", i+1), Stages: []cluster.Stage{stage},
				Submitted: timeline.Time(time.Duration(i) * time.Second)}})
	}
	return w
}

// timeOf returns how long one sort takes alone with the given memory.
func (d *demonstration) timeOf(ctx context.Context, node resource.Vector, memory resource.Amount) (time.Duration,
	error) {
	w := &workload.Workload{Jobs: []workload.Job{{After: -1,
		Job: cluster.Job{Name: "sort", Stages: []cluster.Stage{sortStage(1, memory)}}}}}
	alone := under{about: "a sort alone", policy: "fair"}
	r, err := d.run(ctx, &alone, node, w)
	if err != nil {
		return 0, err
	}
	if len(r.Wrong) > 0 {
		return 0, fmt.Errorf("a sort with %s: %s", resource.FormatMemory(memory), r.Wrong[0])
	}
	return r.taskTime, nil
}

// writeNumbers writes lines that begin with a number; every call writes the same lines.
func writeNumbers(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the numbers: %w", err)
	}
	out := bufio.NewWriter(file)
	random := rand.New(rand.NewPCG(7, 11))
	for range sortLines {
		fmt.Fprintf(out, "%010d GET /item/%05d/page%02d 200 mozilla\n", random.Uint32(), random.IntN(40_000), random.IntN(50))
	}
	err = out.Flush()
	if err == nil {
		err = file.Sync() // now, so that write-back does not disturb the measurement
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("write the numbers: %w", err)
	}
	return nil
}
