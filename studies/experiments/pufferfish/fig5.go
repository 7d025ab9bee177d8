package pufferfish

import (
	"fmt"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

const (
	contendedStay = 200 * time.Second
	contendedShow = 500.0            // seconds of the pictures
	contendedEnd  = 20 * time.Minute // a program that has not ended by then never ends
)

// contention is one case of Fig. 5: two programs whose working sets grow by speed per second up to most.
type contention struct {
	name   string
	most   resource.Amount
	speed  resource.Amount
	oneJob bool // both containers are of one job
	flex   sim.Flex
}

// contended is the result of a contention.
type contended struct {
	watch  memoryWatch
	ids    [2]cluster.TaskID
	killed [2]bool
	ended  [2]float64 // seconds; 0: did not end
	holds  [2]float64 // share of the node at the end
	stands [2]bool    // suspended at the end
}

// growing returns the phases of a program.
func (c contention) growing() []cluster.Phase {
	var all []cluster.Phase
	add := func(set resource.Amount, long time.Duration) {
		all = append(all, cluster.Phase{Duration: long, Demand: resource.Of(resource.Core, set)})
	}
	for set := 4 * resource.GB; set < c.most; set += c.speed {
		add(set, time.Second)
	}
	add(c.most, contendedStay)
	return all
}

// programs returns the two programs as a workload, and their tasks.
func (c contention) programs() (w *workload.Workload, ids [2]cluster.TaskID) {
	w = &workload.Workload{}
	stage := cluster.Stage{Name: "grow", Tasks: 1, Ideal: resource.Of(resource.Core, minCont)}
	for i := range ids {
		ids[i] = cluster.TaskID{Job: cluster.JobID(i + 1), Stage: 1} // stage 0 is the coordinator
		if c.oneJob {
			ids[i], stage.Tasks = cluster.TaskID{Job: 1, Stage: 1, Index: int32(i)}, len(ids)
		}
	}
	for i := range len(ids) / stage.Tasks {
		w.Jobs = append(w.Jobs, workload.Job{After: -1, Truth: []workload.StageTruth{{Phases: workload.ForAll(c.growing())}},
			Job: cluster.Job{ID: cluster.JobID(i + 1), Name: "program", Class: cluster.Flex, MaxAttempts: 1,
				Stages: []cluster.Stage{stage}}})
	}
	return w, ids
}

// play simulates the two programs.
func (c contention) play() (*contended, error) {
	r := &contended{}
	config := r.watch.watching(pufferfishCluster(1))
	w, ids := c.programs()
	r.ids = ids
	for _, j := range w.Jobs {
		config.Incidents = append(config.Incidents, sim.Incident{At: contendedEnd, Kind: sim.JobCancel, Job: j.ID})
	}
	config.KeepTasks = true
	result, err := inFlex(c.name, c.flex, nil).Run(config, w)
	if err != nil {
		return nil, err
	}
	for _, t := range result.Tasks {
		for i, id := range r.ids {
			if t.ID == id && t.Outcome == cluster.Succeeded {
				r.ended[i] = time.Duration(t.Finished).Seconds()
			}
		}
	}
	for _, o := range r.watch.orders {
		for i, id := range r.ids {
			r.killed[i] = r.killed[i] || o.Kind == memory.Kill && o.Container.Task == id
		}
	}
	for i := range r.ids {
		for _, m := range r.watch.states {
			if r.of(i)(m) && m.Limit > 0 {
				r.holds[i], r.stands[i] = float64(m.Limit)/float64(nodeHas), m.Suspended
			}
		}
	}
	return r, nil
}

// of selects the samples of one program's container.
func (r *contended) of(i int) func(sim.ContainerMemory) bool {
	return func(m sim.ContainerMemory) bool { return m.Container.Task == r.ids[i] && m.Class == cluster.Flex }
}

// outcome describes the end of a program in a few words.
func (r *contended) outcome(i int) string {
	text := ""
	if r.killed[i] {
		text = "killed, "
	}
	if r.ended[i] > 0 {
		return text + fmt.Sprintf("ends at %.0f s", r.ended[i])
	}
	if !r.stands[i] {
		return text + fmt.Sprintf("runs after %.0f s", contendedEnd.Seconds())
	}
	return text + fmt.Sprintf("suspended for ever, with %s of the node", lab.Percent(r.holds[i]))
}

// stuck reports whether both programs are suspended, so that nothing will change any more.
func (r *contended) stuck() bool { return r.ended == [2]float64{} && r.stands == [2]bool{true, true} }

// withoutKills returns Pufferfish without kills.
func withoutKills() sim.Flex {
	p := pufferfishPaper.Flex
	p.Manager.KillPatience = 2 * contendedEnd
	return p
}

// contentions are the cases of Fig. 5. The back-off is meant for working sets that are soon far larger than the
// containers.
func contentions() []contention {
	const speed = 20 * resource.GB
	return []contention{
		{"(a) equal ratios, no kill", 70 * resource.GB, speed, true, withoutKills()},
		{"(a) back-off, no kill", 70 * resource.GB, speed, false, withoutKills()},
		{"(a) Pufferfish", 70 * resource.GB, speed, false, pufferfishPaper.Flex},
		{"(a) bellows", 70 * resource.GB, speed, false, ours.Flex},
		{"(b) Pufferfish", 110 * resource.GB, speed, false, pufferfishPaper.Flex},
		{"(b) bellows", 110 * resource.GB, speed, false, ours.Flex},
	}
}

// picture shows the limits of both containers, and the working sets of their programs.
func (r *contended) picture(title string) *chart.Plot {
	p := &chart.Plot{Title: title, Subtitle: "simulated; dashed: what the program wants", X: "time, s",
		Y: "memory, GB", YMin: new(float64), XMin: new(float64), XMax: new(float64), YMax: new(float64)}
	*p.XMax, *p.YMax = contendedShow, 135
	p.Lines = []chart.Rule{{At: float64(nodeHas) / float64(resource.GB), Label: "node"}}
	for i := range r.ids {
		for k, of := range []func(sim.ContainerMemory) resource.Amount{limitOf, func(m sim.ContainerMemory) resource.Amount {
			return m.Resident + m.Swapped
		}} {
			s := chart.Series{Color: i + 1, Step: true, Dashed: k == 1}
			if k == 0 {
				s.Name = fmt.Sprintf("container %d", i+1)
			}
			s.X, s.Y = r.watch.over(r.of(i), of)
			for n := range s.X {
				if s.X[n] > contendedShow {
					s.X, s.Y = s.X[:n], s.Y[:n]
					break
				}
			}
			if n := len(s.X); n > 0 { // nothing changes any more
				s.X, s.Y = append(s.X, contendedShow), append(s.Y, s.Y[n-1])
			}
			p.Series = append(p.Series, s)
		}
	}
	return p
}

// rows adds the containers over time to a table.
func (r *contended) rows(name string, data *lab.Table) {
	for i := range r.ids {
		for _, m := range r.watch.states {
			if r.of(i)(m) {
				data.Put(name, i+1, time.Duration(m.At).Seconds(), float64(m.Limit), float64(m.Resident), float64(m.Swapped),
					m.Suspended)
			}
		}
	}
}

func fig5Contention(*lab.Lab) (*lab.Findings, error) {
	table := lab.NewTable(
		"What becomes of container 1, which comes first, and of container 2; working sets grow by 20 GB/s",
		"case", "container 1", "container 2")
	data := lab.NewTable("memory", "case", "container", "time_s", "limit_bytes", "resident_bytes", "swapped_bytes",
		"suspended")
	cases := contentions()
	results := make([]*contended, len(cases))
	for i, c := range cases {
		var err error
		if results[i], err = c.play(); err != nil {
			return nil, err
		}
		table.Add(c.name, results[i].outcome(0), results[i].outcome(1))
		results[i].rows(c.name, &data)
	}
	grid, freed, tried, err := backOffGrid()
	if err != nil {
		return nil, err
	}
	equal, backOff, paperFull, oursFull := results[0], results[1], results[4], results[5]
	return &lab.Findings{
		Tables: []lab.Table{table, grid}, Data: []lab.Table{data},
		Pictures: []lab.Picture{
			{Name: "equal", Caption: "Two containers of 70 GB on 120 GB, equal ratios, nothing is killed (simulated; Fig. 5a)",
				Picture: equal.picture("Equal ratios: both are stuck")},
			{Name: "backoff", Caption: "The same with Algorithm 1's back-off (simulated)",
				Picture: backOff.picture("Back-off: the first is served")},
			{Name: "kill", Caption: "Two containers of 110 GB, Pufferfish: the last is killed (simulated; Fig. 5b)",
				Picture: paperFull.picture("Algorithm 1: the last is killed for the first")},
			{Name: "reclaim", Caption: "The same under bellows: the last gives way, and goes on later (simulated)",
				Picture: oursFull.picture("bellows: the last gives way and goes on later")},
		},
		Claims: []lab.Claim{
			Paper.Stated("pufferfish/fig5", "stuck").
				Judge(fmt.Sprintf("container 1 %s, container 2 %s", equal.outcome(0), equal.outcome(1)),
					equal.stuck() && equal.holds[0] >= 0.4 && equal.holds[1] >= 0.4, equal.stuck()),
			Paper.Stated("pufferfish/fig5", "back-off").
				Judge(fmt.Sprintf("in %d of the %d cases of the second table", freed, tried),
					freed == tried, freed > 0),
			Paper.Stated("pufferfish/fig5", "kill").
				Judge("container 2 "+paperFull.outcome(1)+", container 1 "+paperFull.outcome(0),
					paperFull.killed == [2]bool{false, true} && paperFull.ended[0] > 0, false),
		},
	}, nil
}

// backOffGrid compares equal ratios and the back-off, without kills, over working sets and growth. freed is the number
// of cases in which equal ratios block both programs and the back-off lets the first end.
func backOffGrid() (t lab.Table, freed, tried int, err error) {
	speeds := []resource.Amount{1, 2, 5, 20, 100}
	t = lab.NewTable("Without kills, is the first container served? Equal ratios / back-off, by working set (down) and "+
		"how fast it grows", "GB", "1 GB/s", "2 GB/s", "5 GB/s", "20 GB/s", "100 GB/s")
	word := func(r *contended) string {
		switch {
		case r.ended[0] > 0:
			return "served"
		case r.stuck():
			return "stuck"
		}
		return "slow"
	}
	for _, most := range []resource.Amount{62, 70, 80, 90, 110} {
		row := []string{strconv.Itoa(int(most))}
		for _, speed := range speeds {
			var both [2]*contended
			for i, oneJob := range []bool{true, false} {
				c := contention{most: most * resource.GB, speed: speed * resource.GB, oneJob: oneJob, flex: withoutKills()}
				if both[i], err = c.play(); err != nil {
					return t, 0, 0, err
				}
			}
			row = append(row, word(both[0])+" / "+word(both[1]))
			if both[0].stuck() {
				tried++
				if both[1].ended[0] > 0 {
					freed++
				}
			}
		}
		t.Add(row...)
	}
	return t, freed, tried, nil
}
