package live

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/view"
)

// resizedOf returns the last change of the grant of a task; nil if there was none.
func resizedOf(t *book.TaskState, r *run) *api.Resized {
	s := t.Resized
	if s == nil {
		return nil
	}
	out := &api.Resized{Was: view.Grant(s.Was), Since: instant(s.Since), InForce: s.InForce}
	if s.Why != (cluster.Reason{}) {
		out.Why = s.Why.Words(clock)
	}
	if s.Failed && r != nil {
		out.Failed = r.failed[cluster.WantSize]
	}
	return out
}

// sizedOf returns how the grant of a task came about, which may be changing.
func sizedOf(t *book.TaskState, r *run) api.Sized {
	s := api.Sized{ByPhase: t.ByPhase, Resized: resizedOf(t, r)}
	if s.Lends = t.Leaves > 0 && t.Lends(); s.Lends {
		s.LentCPU = int64(t.Lent[resource.CPU])
	}
	if t.Renewed > 0 && (t.Resized == nil || !t.Resized.Failed) {
		s.Renewed = &api.Renewed{Since: instant(t.Renewed), Why: t.RenewedWhy.Words(clock)}
	}
	if t.MostCPU > t.Grant[resource.CPU] {
		s.MostCPU = int64(t.MostCPU)
	}
	return s
}
