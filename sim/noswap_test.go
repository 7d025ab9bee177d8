package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
)

// unswapped is a node of 10 GB and 8 cores without swap.
func unswapped() Config {
	return Config{Nodes: Uniform(1, resource.Of(8*resource.Core, 10*testGB)), Machine: Machine{Paging: SSDPaging}}
}

// Without swap jobs that may run again grow side by side. What the first lacks is had by requeueing the last, which
// comes back with what it held, and all end.
func TestWithoutSwap(t *testing.T) {
	var jobs []workload.Job
	for id := range 3 {
		j := flexJob(id+1, 1, 1, 2, 3, 4, 5)
		j.Requeue = true
		jobs = append(jobs, j)
	}
	r := runFlex(t, unswapped(), jobs...)
	for i := range r.Jobs {
		if j := &r.Jobs[i]; !j.Done || j.OutOfMemory > 0 || i == 0 && j.ManagerKills > 0 {
			t.Errorf("job %d: %+v", i+1, j)
		}
	}
	if r.ManagerKills == 0 || r.ManagerKills > 6 || r.SwappedBytes != 0 {
		t.Errorf("%d requeues, and %d bytes went to swap", r.ManagerKills, r.SwappedBytes)
	}
}

// Without swap a program that doubles for ever ends with the reason, and takes nobody along, whether it may run again
// or not.
func TestWithoutSwapOneDoubles(t *testing.T) {
	for _, requeue := range []bool{false, true} {
		doubles := flexJob(1, 1, 1, 2, 4, 8, 16, 32)
		doubles.Requeue = requeue
		small, other := flexJob(2, 1, 1, 2, 3, 3), flexJob(3, 1, 1, 2, 2)
		small.Requeue, other.Requeue = true, true
		r := runFlex(t, unswapped(), doubles, small, other)
		if r.Jobs[0].Done || r.Jobs[0].OutOfMemory != 1 {
			t.Errorf("it ends as %+v", r.Jobs[0])
		}
		for _, j := range r.Jobs[1:] {
			if !j.Done || j.OutOfMemory > 0 {
				t.Errorf("beside it: %+v", j)
			}
		}
	}
}

// Without swap, whatever jobs run together that need no more than the node has: all end right, none is requeued that
// must not be, or more often than its reservation can double.
func TestWithoutSwapAllEnd(t *testing.T) {
	kills := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 13))
		var jobs []workload.Job
		for id := range 2 + r.IntN(8) {
			var sets []resource.Amount
			for range 1 + r.IntN(5) {
				sets = append(sets, resource.Amount(1+r.IntN(9)))
			}
			j := flexJob(id+1, 1, sets...)
			j.Requeue = r.IntN(3) > 0
			if r.IntN(4) == 0 {
				j.Class, j.Stages[0].Ideal[resource.Memory] = cluster.Regular, 9*testGB
			}
			jobs = append(jobs, j)
		}
		res := runFlex(t, unswapped(), jobs...)
		for i := range res.Jobs {
			j := &res.Jobs[i]
			if !j.Done || j.OutOfMemory > 0 || j.ManagerKills > 0 && !jobs[i].Requeue || j.ManagerKills > 5 {
				t.Errorf("seed %d, job %d, may be requeued %v: %+v", seed, i+1, jobs[i].Requeue, j)
			}
			kills += j.ManagerKills
		}
		if limit := time.Duration(len(jobs)) * time.Hour; res.Makespan > limit {
			t.Errorf("seed %d: it took %v", seed, res.Makespan)
		}
	}
	if kills == 0 {
		t.Error("nothing was requeued")
	}
}
