package sim

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// ownedBy gives a job an owner, and a time at which it is submitted.
func ownedBy(owner string, at time.Duration, j workload.Job) workload.Job {
	j.Owner, j.Submitted = owner, timeline.Time(at)
	return j
}

// What the containers of a user hold counts for the quota of that user, whatever they have reserved: with swap and
// without, the jobs of another user end as if they were alone, up to a second, and none is stopped or ended, however
// many programs the first starts that grow for ever.
func TestHostileUser(t *testing.T) {
	const quota = 8 * testGB
	for name, machine := range map[string]Machine{"swap": swapping(), "no swap": {Paging: SSDPaging}} {
		limits, most := map[cluster.ContainerID]resource.Amount{}, resource.Amount(0)
		c := Config{Nodes: Uniform(1, resource.Of(16*resource.Core, 20*testGB)), Machine: machine,
			Quotas: &cluster.Quotas{Users: map[string]cluster.Limits{"ann": {cluster.QuotaMemory: {Most: int64(quota)}}}},
			Until:  timeline.Time(time.Hour)}
		var alone, jobs []workload.Job
		for id := range 3 {
			alone = append(alone, ownedBy("bob", time.Duration(id)*time.Minute, flexJob(id+1, 1, 1, 2, 3, 3)))
		}
		want := runFlex(t, c, alone...)
		for id := range 6 {
			grows := ownedBy("ann", 0, flexJob(id+1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12))
			grows.Requeue = id%2 == 0
			jobs = append(jobs, grows)
		}
		for id := range alone {
			j := alone[id]
			j.ID += 6
			jobs = append(jobs, j)
		}
		c.ObserveContainers = func(m ContainerMemory) {
			if m.Container.Task.Job > 6 {
				return
			}
			limits[m.Container] = m.Limit
			sum := resource.Amount(0)
			for _, limit := range limits {
				sum += limit
			}
			most = max(most, sum)
		}
		got := runFlex(t, c, jobs...)
		for id := range alone {
			j, w := &got.Jobs[6+id], &want.Jobs[id]
			if !j.Done || j.Ended.Sub(w.Ended) > time.Second || j.Suspended > w.Suspended || j.ManagerKills > 0 {
				t.Errorf("%s: job %d of bob: %+v, alone %+v", name, j.ID, j, w)
			}
		}
		if most > quota || most < quota*9/10 {
			t.Errorf("%s: the containers of ann held %d of %d", name, most, quota)
		}
	}
}
