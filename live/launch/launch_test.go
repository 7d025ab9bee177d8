package launch

import (
	"fmt"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/store"
)

// A program sizes itself by the CPU that is stated, also for its largest phase, or else by its node: not by what was
// learned of other runs.
func TestCPU(t *testing.T) {
	for name, c := range map[string]struct {
		cpus, max, most resource.Amount // of the stage, and of the envelope
		learned         bool
		byPhase, stated bool // whether its phases are stated
		want            resource.Amount
	}{
		"recorded without a maximum":  {cpus: 250, want: 250},
		"recorded, granted as weight": {cpus: 250, most: 2000, want: 2000},
		"cpus are stated":             {cpus: 250, max: resource.MostCPU, most: 2000, want: 250},
		"cpus are stated, by phase":   {cpus: 250, max: resource.MostCPU, most: 2000, byPhase: true, want: 250},
		"phases are stated": {cpus: 250, max: resource.MostCPU, most: 2000, byPhase: true, stated: true,
			want: 1250},
		"phases beyond a maximum":     {cpus: 250, max: 500, most: 500, byPhase: true, stated: true, want: 500},
		"a maximum is stated":         {cpus: 250, max: 500, most: 500, want: 500},
		"a maximum is stated, phases": {cpus: 250, max: 500, most: 500, byPhase: true, want: 500},
		"a quota":                     {cpus: 250, max: 250, byPhase: true, want: 250},
		"nothing is stated":           {cpus: 50, max: resource.MostCPU, most: 2000, learned: true, want: 2000},
		"nothing is stated, by phase": {cpus: 50, max: resource.MostCPU, most: 2000, learned: true, byPhase: true,
			want: 2000},
		"nothing is stated, one core":  {cpus: 1000, max: resource.MostCPU, learned: true, want: 1000},
		"the node has less than a max": {cpus: 250, max: 4000, most: 2000, want: 2000},
	} {
		s := cluster.Stage{Tasks: 1, Ideal: resource.Of(c.cpus, resource.GiB), MaxCPU: c.max,
			Command: cluster.Command{Args: []string{"true", "{cpus:milli}"}},
			Phases:  []cluster.Phase{{Duration: 1, Demand: resource.Of(1250, resource.MiB)}}}
		if !c.stated {
			s.Told.Model = "median"
		}
		if c.learned {
			s.ReservedCPU = &cluster.ReservedCPU{}
		}
		r := &store.Request{Job: cluster.Job{Stages: []cluster.Stage{s}}, Dir: "/"}
		b, err := Of(r, cluster.ContainerID{}, &cluster.Decision{Grant: s.Ideal, ByPhase: c.byPhase,
			Envelope: cluster.Envelope{MostCPU: c.most}})
		if err != nil {
			t.Fatal(err)
		}
		if b.cpu != c.want || b.Args[1] != fmt.Sprint(int64(c.want)) {
			t.Errorf("%s: %d millicores, arguments %q; want %d", name, b.cpu, b.Args, c.want)
		}
	}
}

// What a program is told of its memory where that is learned: the limit, half of the node, or more if more is reserved.
// A coordinator keeps what it states, and nothing is said.
func TestToldMemory(t *testing.T) {
	const node = 1000 * resource.MiB
	for name, c := range map[string]struct {
		granted, limit resource.Amount
		coordinator    bool
		most           resource.Amount
		what           string
	}{
		"a limit":           {granted: 64, limit: 600, most: 600, what: "that its container may have"},
		"half of the node":  {granted: 64, most: 500, what: "that are half of its node"},
		"more is reserved":  {granted: 700, most: 700, what: "that are reserved for it"},
		"a coordinator":     {granted: 64, coordinator: true},
		"beyond its node":   {granted: 64, limit: 2000, most: 1000, what: "that its container may have"},
		"reserved up to it": {granted: 600, limit: 600, most: 600, what: "that its container may have"},
	} {
		s := cluster.Stage{Tasks: 1, Ideal: resource.Of(1000, c.granted*resource.MiB), MaxMemory: c.limit * resource.MiB,
			Coordinator: c.coordinator, Command: cluster.Command{Args: []string{"true", "{memory:MiB}"}}}
		if !c.coordinator {
			s.Reserved = &cluster.Reservation{Bytes: c.granted * resource.MiB}
		}
		j := cluster.Job{Class: cluster.Flex, Reserve: cluster.ReserveLearned, Stages: []cluster.Stage{s}}
		b, err := Of(&store.Request{Job: j, Dir: "/"}, cluster.ContainerID{}, &cluster.Decision{Grant: s.Ideal,
			Envelope: j.Envelope(0, s.Ideal[resource.Memory], node)})
		if err != nil {
			t.Fatal(err)
		}
		if b.Most != c.most*resource.MiB || b.what != c.what || c.coordinator != (b.Reserved == "") {
			t.Errorf("%s: %d bytes %q, %q; want %d MiB %q", name, b.Most, b.what, b.Reserved, c.most, c.what)
		}
	}
}
