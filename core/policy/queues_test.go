package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

func TestQueueSettings(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"capacity.queues", "", "must name at least one queue"},
		{"capacity.queues", "a", `queue "a": must be NAME=VALUE`},
		{"capacity.queues", "a=60", `queue "a": share "60": must be a percentage from 0% to 100%`},
		{"capacity.queues", "a=NaN%", "must be a percentage"},
		{"capacity.queues", "a=60%..40%", "the guarantee must be at most the maximum"},
		{"capacity.queues", "a=0%..0%", "must be more than 0%"},
		{"capacity.queues", "a=60%,b=50%", "the cluster guarantees 110% to the queues below: must be at most 100%"},
		{"capacity.queues", "a=60%,a.x=60%,a.y=60%", `queue "a" guarantees 120%`},
		{"capacity.queues", "a.x=60%,a=60%", `queue "a.x": its parent queue "a" must be given before it`},
		{"capacity.queues", "a=50%,a=50%", `queue "a": given twice`},
		{"capacity.queues", ".a=50%", "its name must be letters"},
		{"capacity.queues", "a b=50%", "its name must be letters"},
		{"capacity.preemption-per-round", "2", "must be a number from 0 to 1"},
		{"capacity.user-limit-factor", "-1", "must be a number of at least 0"},
		{"drf.queues", "a=0", `queue "a": weight "0": must be a number above 0`},
		{"drf.queues", "a=x", "must be a number above 0"},
	} {
		owner, _, _ := strings.Cut(c.name, ".")
		if _, err := policy.New(owner, map[string]string{c.name: c.value}); err == nil ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s=%s: error is %v, want one with %q", c.name, c.value, err, c.want)
		}
	}
	_, err := policy.New("capacity", map[string]string{"capacity.preemption": "true", "capacity.reservations": "false"})
	if err == nil || !strings.Contains(err.Error(), "must be false without capacity.reservations") {
		t.Errorf("error is %v", err)
	}
}

// Jobs that fit into no queue are rejected on submission.
func TestAdmission(t *testing.T) {
	b := book.NewBook(nil)
	if err := b.Enter(0,
		&cluster.Event{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{Name: "n", Capacity: resource.Of(8*resource.Core, 10*resource.GB)}}); err != nil {
		t.Fatal(err)
	}
	const queues = "prod=60%..80%,prod.etl=50%..50%,adhoc=40%"
	for _, c := range []struct {
		policy, queues, queue string
		memory                resource.Amount
		want                  string // empty if it is admitted
	}{
		{"capacity", "default=100%", "", resource.GB, ""},
		{"capacity", queues, "prod.etl", 4 * resource.GB, ""},
		{"capacity", queues, "", resource.GB, `job "J" queue "": must be one of prod.etl, adhoc`},
		{"capacity", queues, "prod", resource.GB, `job "J" queue "prod": must be one of prod.etl, adhoc`},
		{"capacity", queues, "prod.etl", 5 * resource.GB,
			`job "J" stage 0 memory 5GB: must be at most what queue "prod.etl" may hold, 4GB`},
		{"capacity", queues, "adhoc", 11 * resource.GB, "must be at most what a node has"},
		{"drf", "", "anything", resource.GB, ""},
		{"drf", "a=1,b=2", "b", resource.GB, ""},
		{"drf", "a=1,b=2", "c", resource.GB, `job "J" queue "c": must be one of a, b`},
	} {
		p, err := policy.New(c.policy, map[string]string{c.policy + ".queues": c.queues})
		if err != nil {
			t.Fatal(err)
		}
		j := &cluster.Job{Name: "J", Queue: c.queue,
			Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, c.memory)}}}
		switch err := policy.CheckRuns(p, b.Snapshot(), j); {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s %s %q: error is %v, want %q", c.policy, c.queues, c.queue, err, c.want)
		}
	}
}

// A job that was admitted although its queue does not exist waits, with that reason.
func TestJobWithoutQueueWaits(t *testing.T) {
	for _, c := range [][2]string{{"capacity", "a=100%"}, {"drf", "a=1"}} {
		j := startAll(t, c[0], c[1], resource.Of(8*resource.Core, 8*resource.GB),
			[]ask{{need: resource.Of(resource.Core, resource.GB), tasks: 1, queue: "b"}})[0]
		if len(j.Tasks) > 0 || j.Waiting.Code != cluster.NoSuchQueue {
			t.Errorf("%s: the job waits because %s", c[0], j.Waiting.Words(nil))
		}
	}
}

// ask is a job of one stage.
type ask struct {
	need   resource.Vector
	tasks  int
	weight float64
	queue  string
}

// startAll returns the jobs after all of them were submitted to one empty node and one decision was taken.
func startAll(t interface {
	Helper()
	Fatal(...any)
}, name, queues string, node resource.Vector, asks []ask) []*book.JobState {
	t.Helper()
	p, err := policy.New(name, map[string]string{name + ".queues": queues})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(p, nil)
	var events []cluster.Event
	for i, a := range asks {
		events = append(events,
			cluster.Event{Kind: cluster.JobSubmitted, NewJob: &cluster.Job{ID: cluster.JobID(i), Name: fmt.Sprint("J", i),
				Queue: a.queue, Weight: a.weight, Stages: []cluster.Stage{{Tasks: a.tasks, Ideal: a.need}}}})
	}
	events = append(events, cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{Name: "n", Capacity: node}},
		cluster.Event{Kind: cluster.Synced})
	if _, err := e.Step(0, events...); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(e.Snapshot().Jobs)
}

// TestDRFAgainstProgressiveFilling compares the tasks that each job gets with progressive filling (DRF, section 4): all
// dominant shares, over the weights, grow at the same rate; a job stops when a resource that it needs is used up. Tasks
// are small, so that whole tasks come close. It also checks that no job envies another, and that each job has at least
// the share that its weight would give it in a cluster of its own.
func TestDRFAgainstProgressiveFilling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := resource.Of(40_000, 40_000_000)
		asks := make([]ask, rapid.IntRange(1, 5).Draw(t, "jobs"))
		for i := range asks {
			asks[i] = ask{resource.Of(resource.Amount(rapid.IntRange(20, 200).Draw(t, "cpu")),
				resource.Amount(rapid.IntRange(20, 200).Draw(t, "memory"))*1000), 1 << 12,
				float64(rapid.IntRange(1, 3).Draw(t, "weight")), ""}
		}
		jobs := startAll(t, "drf", "", node, asks)
		want := fill(node, asks)
		total := 0.0
		for i := range asks {
			total += asks[i].weight
		}
		for i, j := range jobs {
			got := dominant(j.Used, node)
			// The rest that is left when the next whole task of the job in turn does not fit, up to 0.5 % of a
			// resource, may fit ten small tasks of another job, each of which may need 0.5 % of the other resource.
			if got < want[i]-0.02 || got > want[i]+0.06 {
				t.Fatalf("job %d of %+v has a dominant share of %g, want %g", i, asks, got, want[i])
			}
			if got < asks[i].weight/total-0.02 {
				t.Fatalf("job %d of %+v has %g, less than its part of a divided cluster", i, asks, got)
			}
			for k, other := range jobs {
				if would := dominant(asks[i].need, node) * wouldRun(other.Used,
					asks[i].need) * asks[i].weight / asks[k].weight; would > got+0.04 {
					t.Fatalf("job %d of %+v has %g, and would rather have what job %d has, which is worth %g", i, asks, got, k, would)
				}
			}
		}
	})
}

func dominant(v, whole resource.Vector) float64 {
	return max(float64(v[resource.CPU])/float64(whole[resource.CPU]),
		float64(v[resource.Memory])/float64(whole[resource.Memory]))
}

// wouldRun is how many tasks with the given need run on the resources that another job has.
func wouldRun(have, need resource.Vector) float64 {
	n := float64(have[resource.Memory]) / float64(need[resource.Memory])
	if need[resource.CPU] > 0 {
		n = min(n, float64(have[resource.CPU])/float64(need[resource.CPU]))
	}
	return n
}

// fill does progressive filling in small steps.
func fill(node resource.Vector, asks []ask) []float64 {
	const step = 1e-4
	shares, left := make([]float64, len(asks)), [2]float64{1, 1}
	for left[0] > 0 && left[1] > 0 { // every job needs both
		for i, a := range asks {
			size := dominant(a.need, node)
			cpu := float64(a.need[resource.CPU]) / float64(node[resource.CPU]) / size * step * a.weight
			memory := float64(a.need[resource.Memory]) / float64(node[resource.Memory]) / size * step * a.weight
			left[0], left[1] = left[0]-cpu, left[1]-memory
			shares[i] += step * a.weight
		}
	}
	return shares
}
