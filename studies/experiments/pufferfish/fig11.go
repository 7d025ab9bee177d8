package pufferfish

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// flexRivals are the memory managers to compare on one node.
var flexRivals = []lab.Contender{pufferfishPaper, ours}

// aloneUnder simulates a job's hot executor alone on a node, in a FLEX container that starts with minCont if o has FLEX
// containers, and returns the result.
func (j job) aloneUnder(o lab.Contender, minCont resource.Amount) (*sim.Result, error) {
	j.cold = nil
	t := j.flexFrom(minCont, maxHeap)
	if o.Box > 0 {
		t = j.regular(o.Box)
	}
	t.ID, t.MaxAttempts = 1, 1
	r, err := o.ToTheEnd(pufferfishCluster(1), &workload.Workload{Jobs: []workload.Job{t}})
	if err == nil && !r.Jobs[0].Done {
		err = fmt.Errorf("%s: %s failed: %s", o.Label, j, r.Jobs[0].Failure)
	}
	return r, err
}

// overhead returns how much longer a job's hot executor takes under m than in 64 GB, as a share, and the share of its
// run time in which it is suspended.
func (j job) overhead(m lab.Contender, minCont resource.Amount) (overhead, suspended float64, err error) {
	static, err := j.aloneUnder(largeHeap, 0)
	if err != nil {
		return 0, 0, err
	}
	flex, err := j.aloneUnder(m, minCont)
	if err != nil {
		return 0, 0, err
	}
	took := flex.Jobs[0].Runtime().Seconds()
	return took/static.Jobs[0].Runtime().Seconds() - 1, flex.Suspended.Seconds() / took, nil
}

func fig11Overhead(*lab.Lab) (*lab.Findings, error) {
	table := lab.NewTable("Run time over that with 64 GB from the start (simulated)", "application", "Pufferfish",
		"suspended for", "bellows", "suspended for", "Pufferfish, if the peak comes after a tenth of the time")
	data := lab.NewTable("overheads", "application", "manager", "overhead", "suspended_share")
	bars := &chart.Bars{Title: "What starting with 4 GB costs",
		Subtitle: "simulated; run time over that with 64 GB from the start", Y: "%"}
	for _, m := range flexRivals {
		bars.Series = append(bars.Series, chart.BarSeries{Name: m.Label})
	}
	var most [2]float64
	for _, a := range []*pufferfishApp{app("WC", false), app("KM", false), app("PR", false), app("NW", false),
		app("TS", true), app("II", true)} {
		row := []string{a.name}
		for i, m := range flexRivals {
			more, suspended, err := a.typical().overhead(m, minCont)
			if err != nil {
				return nil, err
			}
			most[i] = max(most[i], more)
			bars.Series[i].Values = append(bars.Series[i].Values, 100*more)
			row = append(row, percent1(more), percent1(suspended))
			data.Put(a.name, m.Label, more, suspended)
		}
		bars.Groups = append(bars.Groups, a.name)
		early := []submission{{a.typical(), 0}}
		soonFull(early, 0)
		more, _, err := early[0].overhead(pufferfishPaper, minCont)
		if err != nil {
			return nil, err
		}
		table.Add(append(row, percent1(more))...)
	}
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "overhead", Caption: "Overhead of starting with 4 GB (simulated)", Picture: bars}},
		Claims: []lab.Claim{
			Paper.Stated("pufferfish/fig11", "below-10").
				Judge(fmt.Sprintf("at most %s, bellows %s", percent1(most[0]), percent1(most[1])),
					most[0] < 0.1, lab.Median(bars.Series[0].Values) < 10),
		},
	}, nil
}
