package profile

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// AppOf names a stage of a job in a History. Coordinators do not count as stages.
func AppOf(j *cluster.Job, stage int) App {
	app, stages := App{Owner: j.Owner, Name: j.App}, 0
	for i := range j.Stages {
		if !j.Stages[i].Coordinator {
			stages++
		}
	}
	if stages > 1 {
		app.Stage = j.StageName(stage)
	}
	return app
}

// Untimed returns the stages of j without a stated run time.
func Untimed(j *cluster.Job) (stages []int) {
	for i := range j.Stages {
		if j.Stages[i].Duration == 0 && len(j.Stages[i].Phases) == 0 {
			stages = append(stages, i)
		}
	}
	return stages
}

// Forecast fills in what a task of each stage of j is expected to demand when, from the runs of its application: the
// phases, unless they are stated, and the run time of the stages that untimed has, as Untimed returned them before
// anything was filled in. Where the run time is stated, the phases are stretched to it. Of a resource that no run
// measured, the phases demand what the stage requests, as a stage without a forecast does. The elements of j.Stages
// are changed. known reports whether anything was filled in.
func (h *History) Forecast(j *cluster.Job, untimed []int) (known bool) {
	if j.App == "" {
		return false
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		if s.Coordinator || len(s.Phases) > 0 && s.Told == (cluster.Provenance{}) {
			continue // What is stated wins.
		}
		e, ok := h.Estimate(AppOf(j, i), Features{Cores: s.Ideal[resource.CPU], Input: s.Input,
			Memory: s.Ideal[resource.Memory]})
		if !ok {
			continue
		}
		v := &e.Variants[0]
		if slices.Contains(untimed, i) {
			s.Duration = v.Duration
		}
		s.Phases, s.Told, known = Lasting(v.Phases, s.Duration), v.Told, true
		for k := range resource.NumKinds {
			for p := range s.Phases {
				if v.Unknown.Has(k) {
					s.Phases[p].Demand[k] = s.Ideal[k]
				}
			}
		}
	}
	return known
}

// Lasting returns a copy of phases stretched by one factor so that they last for total together; nil if there are none.
func Lasting(phases []cluster.Phase, total time.Duration) []cluster.Phase {
	is := sum(phases)
	out := slices.Clone(phases)
	if is == 0 || is == total {
		return out
	}
	done, end := time.Duration(0), time.Duration(0)
	for i := range out {
		done += phases[i].Duration
		next := time.Duration(float64(total) * (float64(done) / float64(is)))
		if i == len(out)-1 {
			next = total
		}
		out[i].Duration, end = max(0, next-end), max(end, next)
	}
	return out
}
