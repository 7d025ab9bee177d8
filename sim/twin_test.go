package sim

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// twin computes a task's run in the slow and obvious way: after every event, all paces of a node anew, in exact
// fractions.
type twin struct {
	run    *task
	phases []need
	speed  []*big.Rat // of each phase, 0 to 1: the pace that its grant allows
	oom    bool       // killed at the beginning of the phase after the last one
	at     int
	left   *big.Rat // nanoseconds at full pace
	ended  bool
	end    *big.Rat
}

func rat(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }

// course lists the needs of a task's phases, up to a phase that kills it.
func (w *twin) course(m *Machine, caps resource.Kinds) {
	j, s := w.run.job, int(w.run.id.Stage)
	stage, truth := &j.Stages[s], &j.Truth[s]
	grant := w.run.grant[resource.Memory]
	task := int(w.run.id.Index)
	ideal, length := stage.Ideal[resource.Memory], stage.Duration
	list, _ := truth.Phases.Of(task)
	total, largest := time.Duration(0), resource.Amount(0)
	for _, p := range list {
		total, largest = total+p.Duration, max(largest, p.Demand[resource.Memory])
	}
	if list != nil {
		ideal = largest
		if total > 0 {
			length = total
		}
	}
	if d, given := truth.Duration.Of(task); given {
		length = d
	}
	if m, given := truth.IdealMemory.Of(task); given {
		ideal = m
	}
	if total == 0 {
		demand := stage.Ideal.With(resource.Memory, ideal)
		if list != nil {
			demand = list[0].Demand
		}
		list, total, largest = []cluster.Phase{{Duration: length, Demand: demand}}, length, demand[resource.Memory]
	}
	elastic := stage.Elasticity.Kind != cluster.NotElastic
	spilling, slow := resource.Amount(0), 1.0
	if elastic && grant < ideal {
		spilling, slow = stage.Elasticity.DiskRate, float64(stage.Elasticity.Duration(length, ideal, grant))/float64(length)
	}
	for _, p := range list {
		slower, resident := slow, p.Demand[resource.Memory]
		if h := truth.Heap; h != nil {
			size := h.Size
			if size == 0 {
				size = grant
			}
			live := float64(h.Live)
			if largest > 0 {
				live *= float64(resident) / float64(largest)
			}
			cost, ok := m.Collection.Slowdown(float64(size), live)
			if w.oom = !ok; w.oom {
				return
			}
			slower, resident = slower*cost, min(resident, size)
		}
		if resident > grant && !elastic {
			if w.oom = m.Swap == 0; w.oom {
				return
			}
			slower *= m.Paging.Slowdown(grant, resident)
		}
		stretch := float64(length) / float64(total)
		w.phases = append(w.phases, need{length: math.Round(float64(p.Duration) * stretch * slower), demand: resource.Vector{
			p.Demand[resource.CPU], 0, resource.Amount(float64(p.Demand[resource.Disk])/slower) + spilling,
			resource.Amount(float64(p.Demand[resource.Network]) / slower)}})
		w.keepToGrant(caps)
	}
}

// keepToGrant slows the newest phase down until it demands no more than was granted.
func (w *twin) keepToGrant(caps resource.Kinds) {
	speed, demand := big.NewRat(1, 1), &w.phases[len(w.phases)-1].demand
	for k, grant := range w.run.grant {
		if caps.Has(resource.Kind(k)) && grant > 0 && demand[k] > grant &&
			speed.Cmp(big.NewRat(int64(grant), int64(demand[k]))) > 0 {
			speed = big.NewRat(int64(grant), int64(demand[k]))
		}
	}
	pace, _ := speed.Float64()
	for _, k := range contended {
		if pace < 1 {
			demand[k] = resource.Amount(float64(demand[k]) * pace)
		}
	}
	w.speed = append(w.speed, speed)
}

// shareOut gives each demand the same share, or less if it needs less, until nothing is left.
func shareOut(demands []*big.Rat, capacity *big.Rat) []*big.Rat {
	got := make([]*big.Rat, len(demands))
	left, open := new(big.Rat).Set(capacity), len(demands)
	for open > 0 {
		even, met := new(big.Rat).Quo(left, big.NewRat(int64(open), 1)), false
		for i, d := range demands {
			if got[i] == nil && d.Cmp(even) <= 0 {
				got[i], met = d, true
				left.Sub(left, d)
				open--
			}
		}
		if met {
			continue
		}
		for i := range got {
			if got[i] == nil {
				got[i] = even
			}
		}
		break
	}
	return got
}

// paces returns the pace of each task.
func paces(list []*twin, capacity resource.Vector, m *Machine) []*big.Rat {
	all := make([]*big.Rat, len(list))
	for i := range all {
		all[i] = big.NewRat(1, 1)
	}
	for _, k := range contended {
		var demands []*big.Rat
		sum := new(big.Rat)
		for _, w := range list {
			d := big.NewRat(int64(w.phases[w.at].demand[k]), 1)
			demands = append(demands, d)
			sum.Add(sum, d)
		}
		has := big.NewRat(int64(capacity[k]), 1)
		if capacity[k] == 0 || sum.Cmp(has) <= 0 {
			continue
		}
		if loss := m.loss(k); loss.Slope > 0 {
			over := new(big.Rat).Quo(sum, has)
			over.Sub(over, big.NewRat(1, 1)).Mul(over, rat(loss.Slope)).Add(over, big.NewRat(1, 1))
			efficiency := over.Inv(over)
			if floor := rat(loss.Floor); efficiency.Cmp(floor) < 0 {
				efficiency = floor
			}
			has.Mul(has, efficiency)
		}
		for i, got := range shareOut(demands, has) {
			if demands[i].Sign() > 0 {
				if share := new(big.Rat).Quo(got, demands[i]); share.Cmp(all[i]) < 0 {
					all[i] = share
				}
			}
		}
	}
	for i, w := range list {
		all[i].Mul(all[i], w.speed[w.at])
	}
	return all
}

// replay runs one node. Launches, and ends with external causes, have their recorded times.
func replay(list []*twin, capacity resource.Vector, m *Machine) {
	slices.SortStableFunc(list, func(a, b *twin) int { return int(a.run.result.Launched - b.run.result.Launched) })
	now, begun := new(big.Rat), 0
	enter := func(w *twin) {
		for ; w.at < len(w.phases); w.at++ {
			if w.left = rat(w.phases[w.at].length); w.left.Sign() > 0 {
				return
			}
		}
		w.ended, w.end = true, new(big.Rat).Set(now)
	}
	forced := func(w *twin) bool {
		return w.run.result.Outcome != cluster.Succeeded && w.run.result.Outcome != cluster.OutOfMemory
	}
	for {
		var running []*twin
		for _, w := range list[:begun] {
			if !w.ended {
				running = append(running, w)
			}
		}
		pace := paces(running, capacity, m)
		var next *big.Rat
		sooner := func(t *big.Rat) {
			if next == nil || t.Cmp(next) < 0 {
				next = t
			}
		}
		if begun < len(list) {
			sooner(big.NewRat(int64(list[begun].run.result.Launched), 1))
		}
		for i, w := range running {
			sooner(new(big.Rat).Add(now, new(big.Rat).Quo(w.left, pace[i])))
			if forced(w) {
				sooner(big.NewRat(int64(w.run.result.Finished), 1))
			}
		}
		if next == nil {
			return
		}
		past := new(big.Rat).Sub(next, now)
		now = next
		for i, w := range running {
			w.left.Sub(w.left, new(big.Rat).Mul(past, pace[i]))
			if forced(w) && now.Cmp(big.NewRat(int64(w.run.result.Finished), 1)) >= 0 {
				w.ended, w.end = true, new(big.Rat).Set(now)
			} else if w.left.Sign() <= 0 {
				w.at++
				enter(w)
			}
		}
		for begun < len(list) && now.Cmp(big.NewRat(int64(list[begun].run.result.Launched), 1)) >= 0 {
			enter(list[begun])
			begun++
		}
	}
}

// Every run of a task ends at the time and for the reason that its twin computes: all work is done, and no more.
func TestRunsEndWhenTheirTwinSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := randomCluster(t)
		w := randomWorkload(t, c.Nodes[0].Capacity)
		randomProtocol(t, &c, len(w.Jobs))
		c.CoordinatorHeartbeat = 0 // coordinators demand nothing, but would renumber the stages
		r, err := newRun(c, w, randomPolicy(t)())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.play(); err != nil {
			t.Fatal(err)
		}
		nodes := map[cluster.NodeID][]*twin{}
		for _, run := range r.tasks.list {
			if run.launched {
				tw := &twin{run: run}
				tw.course(&c.Machine, c.Caps)
				nodes[run.node] = append(nodes[run.node], tw)
			}
		}
		for id := range r.engine.Snapshot().Nodes {
			list := nodes[cluster.NodeID(id)]
			replay(list, c.Nodes[0].Capacity, &c.Machine)
			for _, tw := range list {
				t.Logf("twin of %+v ends at %v", tw.run.result, tw.end)
			}
			for _, tw := range list {
				compareWithTwin(t, tw)
			}
		}
	})
}

func compareWithTwin(t *rapid.T, w *twin) {
	const tolerance = timeline.Time(time.Microsecond) // each phase ends at a whole nanosecond
	end, _ := w.end.Float64()
	res := w.run.result
	if off := res.Finished - timeline.Time(end); off > tolerance || off < -tolerance {
		t.Fatalf("task %v launched at %v with %d ends at %v (%v), its twin at %v", w.run.id, res.Launched, w.run.grant,
			res.Finished, res.Outcome, timeline.Time(end))
	}
	if natural := res.Outcome == cluster.Succeeded || res.Outcome == cluster.OutOfMemory; natural &&
		(res.Outcome == cluster.OutOfMemory) != w.oom {
		t.Fatalf("task %v ends as %v; its twin runs out of memory: %v", w.run.id, res.Outcome, w.oom)
	}
}
