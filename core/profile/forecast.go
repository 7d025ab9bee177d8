package profile

import (
	"cmp"
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

// CoresOf returns the cores of a run of a stage, as a feature: those that it requests, by which a program sizes itself.
// They are unknown where they are learned: they would predict themselves.
func CoresOf(s *cluster.Stage) resource.Amount {
	if s.ReservedCPU != nil {
		return 0
	}
	return s.Ideal[resource.CPU]
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

// ReserveFor sets what is reserved for the tasks of a job whose reservations are learned, from the runs of its
// application: of CPU where that was not stated, and of memory. most is what the largest node has, bytes, and 0 if that
// is unknown: more is never reserved, because it would be free nowhere. A stage of which nothing is known keeps its
// reservation. The elements of j.Stages are changed.
func (h *History) ReserveFor(j *cluster.Job, most resource.Amount) {
	for i := 0; i < len(j.Stages) && j.App != ""; i++ {
		s := &j.Stages[i]
		if s.ReservedCPU != nil {
			cpu, r := h.ReserveCPU(AppOf(j, i))
			s.Ideal[resource.CPU], s.ReservedCPU = min(cpu, cmp.Or(s.MaxCPU, resource.MostCPU)), &r
		}
		if j.Reserve != cluster.ReserveLearned || s.Coordinator {
			continue
		}
		limit := s.MaxMemory
		if limit == 0 || most > 0 && most < limit {
			limit = most
		}
		r, ok := h.Reserve(AppOf(j, i), Features{Cores: CoresOf(s), Input: s.Input}, limit)
		if !ok {
			continue
		}
		r.Bytes = max(r.Bytes, min(cluster.LeastReservation, cmp.Or(limit, cluster.LeastReservation)))
		s.Ideal[resource.Memory], s.Reserved = r.Bytes, &r
	}
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
		e, ok := h.Estimate(AppOf(j, i), Features{Cores: CoresOf(s), Input: s.Input,
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
