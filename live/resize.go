package live

import (
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Resized is the last change of the grant of a running task.
type Resized struct {
	Was     Grant     `json:"was" doc:"what the task was granted before"`
	Since   time.Time `json:"since,omitzero" doc:"when the change was decided"`
	Why     string    `json:"why,omitempty" doc:"one clause on why it was decided"`
	InForce bool      `json:"in_force" doc:"whether it has been carried out"`
	Failed  string    `json:"failed,omitempty" doc:"why it could not be carried out: the grant is as before"`
}

// resizedOf returns the last change of the grant of a task; nil if there was none.
func resizedOf(t *book.TaskState, r *run) *Resized {
	s := t.Resized
	if s == nil {
		return nil
	}
	out := &Resized{Was: grantOf(s.Was), Since: instant(s.Since), InForce: s.InForce}
	if s.Why != (cluster.Reason{}) {
		out.Why = s.Why.Words(clock)
	}
	if s.Failed && r != nil {
		out.Failed = r.failed[cluster.WantSize]
	}
	return out
}

// Sized says how the grant of a running task came about.
type Sized struct {
	ByPhase bool     `json:"by_phase,omitempty" doc:"the task is granted what each phase of its forecast demands; omitted if its grant stays the same"`
	MostCPU int64    `json:"most_cpu_millicores,omitempty" doc:"the most CPU that the task may use while others leave it: its grant of CPU is its share of the cores; omitted if its grant is the most"`
	Lends   bool     `json:"lends,omitempty" doc:"its program has nothing to do, and it lends its cores to other tasks until it has"`
	Resized *Resized `json:"resized,omitempty" doc:"the last change of its grant while it ran; omitted if there was none"`
}

// sizedOf returns how the grant of a task came about, which may be changing.
func sizedOf(t *book.TaskState, r *run) Sized {
	s := Sized{ByPhase: t.ByPhase, Lends: t.Idle && t.Lends, Resized: resizedOf(t, r)}
	if t.MostCPU > t.Grant[resource.CPU] {
		s.MostCPU = int64(t.MostCPU)
	}
	return s
}
