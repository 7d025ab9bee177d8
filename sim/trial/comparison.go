package trial

import "fmt"

// Comparison collects the outcomes of contenders, seed by seed and on each seed contender by contender.
type Comparison struct {
	Contenders []Contender // the others are compared with the first
	Outcomes   []Outcome
}

// Add adds the next outcome.
func (c *Comparison) Add(o Outcome) { c.Outcomes = append(c.Outcomes, o) }

// seeds returns how many seeds there are.
func (c *Comparison) seeds() int {
	seen := map[uint64]bool{}
	for _, o := range c.Outcomes {
		seen[o.Seed] = true
	}
	return len(seen)
}

// Summary sums up a contender over all seeds. Ratios are relative to the first contender on the same seeds.
type Summary struct {
	Runs   int `json:"runs" doc:"seeds with a result"`
	Failed int `json:"failed_runs" doc:"seeds without a result"`
	// FailedJobs counts over all runs.
	FailedJobs int `json:"failed_jobs" doc:"jobs that ended without success, over all runs"`

	Average      Estimate `json:"average_job_runtime_s" doc:"estimate of the field of one seed"`
	Makespan     Estimate `json:"makespan_s" doc:"the same"`
	Utilisation  Estimate `json:"memory_utilisation" doc:"the same"`
	Elastic      Estimate `json:"elastic_task_share" doc:"the same"`
	AverageOver  Estimate `json:"average_job_runtime_over_bound" doc:"estimate of the result / its lower bound"`
	MakespanOver Estimate `json:"makespan_over_bound" doc:"the same"`

	AverageRatio       Estimate `json:"average_job_runtime_ratio" doc:"estimate over pairs of the result / the result of the first policy"`
	MakespanRatio      Estimate `json:"makespan_ratio" doc:"the same"`
	AverageDifference  Estimate `json:"average_job_runtime_difference_s" doc:"estimate over pairs of the result − the result of the first policy"`
	MakespanDifference Estimate `json:"makespan_difference_s" doc:"the same"`
}

// Summaries returns one summary per contender, in their order.
func (c *Comparison) Summaries() []Summary {
	all := make([]Summary, len(c.Contenders))
	base := map[uint64]*Outcome{}
	for i := range c.Outcomes {
		if r := &c.Outcomes[i]; r.Contender == 0 && r.Error == "" {
			base[r.Seed] = r
		}
	}
	for p := range all {
		all[p] = c.summary(p, base)
	}
	return all
}

func (c *Comparison) summary(p int, base map[uint64]*Outcome) Summary {
	s := Summary{}
	var of [6][]float64
	var ratio, difference [2][]float64
	for i := range c.Outcomes {
		r := &c.Outcomes[i]
		switch {
		case r.Contender != p:
			continue
		case r.Error != "":
			s.Failed++
			continue
		}
		s.Runs++
		s.FailedJobs += r.FailedJobs
		for k, v := range []float64{r.Average, r.Makespan, r.Utilisation, r.Elastic, r.Average / r.BoundAverage,
			r.Makespan / r.BoundMakespan} {
			of[k] = append(of[k], v)
		}
		if b := base[r.Seed]; b != nil {
			ratio[0], ratio[1] = append(ratio[0], r.Average/b.Average), append(ratio[1], r.Makespan/b.Makespan)
			difference[0], difference[1] = append(difference[0], r.Average-b.Average),
				append(difference[1], r.Makespan-b.Makespan)
		}
	}
	s.Average, s.Makespan, s.Utilisation, s.Elastic = Mean(of[0]), Mean(of[1]), Mean(of[2]), Mean(of[3])
	s.AverageOver, s.MakespanOver = GeometricMean(of[4]), GeometricMean(of[5])
	s.AverageRatio, s.MakespanRatio = GeometricMean(ratio[0]), GeometricMean(ratio[1])
	s.AverageDifference, s.MakespanDifference = Mean(difference[0]), Mean(difference[1])
	return s
}

// PerSeed returns the outcomes of contender p, in the order of the seeds.
func (c *Comparison) PerSeed(p int) []Outcome {
	all := []Outcome{}
	for _, o := range c.Outcomes {
		if o.Contender == p {
			all = append(all, o)
		}
	}
	return all
}

// Errors returns a sentence for each outcome without a result. It names the seed if there are several.
func (c *Comparison) Errors() []string {
	var all []string
	several := c.seeds() > 1
	for _, o := range c.Outcomes {
		if o.Error == "" {
			continue
		}
		who := "policy " + c.Contenders[o.Contender].Label
		if several {
			who += fmt.Sprintf(", seed %d", o.Seed)
		}
		all = append(all, who+": "+o.Error)
	}
	return all
}
