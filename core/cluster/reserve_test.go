package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

func TestReserveBy(t *testing.T) {
	for _, r := range []ReserveBy{ReserveStated, ReserveLearned} {
		text, err := r.MarshalText()
		var read ReserveBy = 9
		if err != nil || read.UnmarshalText(text) != nil || read != r {
			t.Errorf("%v is written as %q and read as %v (%v)", r, text, read, err)
		}
	}
	var r ReserveBy
	if err := r.UnmarshalText([]byte("guessed")); err == nil ||
		err.Error() != `reserve "guessed": must be stated or learned` {
		t.Error(err)
	}
	// Recordings from before it was known reserve what is stated, and are written as they were.
	if text, err := json.Marshal(&Job{Stages: []Stage{{}}}); err != nil || strings.Contains(string(text), "reserve") ||
		strings.Contains(string(text), "max_cpu") {
		t.Errorf("%s (%v)", text, err)
	}
}

func TestReservedWords(t *testing.T) {
	for _, c := range []struct {
		by   *Reservation
		most resource.Amount
		want string
	}{
		{nil, 0, ""},
		{&Reservation{}, 0, "reserves 31MiB: no run is known; may grow to the memory of its node"},
		{&Reservation{Runs: 6, Most: 27 * resource.MiB, Told: Provenance{Error: 0.02}}, 600 * resource.MiB,
			"reserves 31MiB: 6 runs, 27MiB at most, error 2 %; may grow to 600MiB"},
		{&Reservation{Runs: 1, Most: 27 * resource.MiB, Short: 30 * resource.MiB, Limited: true}, 31 * resource.MiB,
			"reserves 31MiB: 1 run, 27MiB, error unknown, one ended for want of memory with 30MiB, the limit is " +
				"less; may grow to 31MiB"},
		{&Reservation{Bytes: 31 * resource.MiB, Runs: 1, Most: 64 * resource.MiB, Limited: true}, 0,
			"reserves 31MiB: 1 run, 64MiB, error unknown, more than a node has or a quota allows would be reserved; " +
				"may grow to the memory of its node"},
	} {
		s := Stage{Ideal: resource.Of(0, 31*resource.MiB), MaxMemory: c.most, Reserved: c.by}
		if got := s.ReservedWords(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestLearnedReservationsAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(j *Job, s *Stage)
		want   string
	}{
		{func(*Job, *Stage) {}, ""},
		{func(_ *Job, s *Stage) { s.MaxMemory, s.Reserved = resource.GiB, &Reservation{} }, ""},
		{func(j *Job, _ *Stage) { j.Class = Regular },
			`job "j" reserve learned: needs class flex: a regular container keeps its memory`},
		{func(j *Job, _ *Stage) { j.Reserve = 7 }, `job "j" reserve reserve(7): must be stated or learned`},
		{func(_ *Job, s *Stage) { s.MinMemory = resource.MiB },
			`job "j" stage "s" min_memory 1MiB: must be left out where what is reserved is learned: `},
		{func(_ *Job, s *Stage) { s.Elasticity = Elasticity{Kind: Step, Factor: 2} },
			`job "j" stage "s" elasticity step 2x: must be left out where what is reserved is learned`},
		{func(j *Job, s *Stage) { j.Reserve, s.Reserved = ReserveStated, &Reservation{} },
			`job "j" stage "s" reserved: must be left out of a job whose reservations are stated`},
		{func(_ *Job, s *Stage) { s.MaxCPU = 500 }, `job "j" stage "s" max_cpus 500m: must be at least cpus, which is 1`},
		{func(_ *Job, s *Stage) { s.MaxCPU = resource.MostCPU + 1 }, `job "j" stage "s" max_cpus 1000000.001: must be at most 1000000`},
	} {
		j := Job{Name: "j", Class: Flex, Reserve: ReserveLearned, Stages: []Stage{{Name: "s", Tasks: 1,
			Ideal: resource.Of(resource.Core, 64*resource.MiB)}}}
		c.change(&j, &j.Stages[0])
		err := j.CheckRuns()
		if got := ""; err != nil {
			got = err.Error()
			if c.want == "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		} else if c.want != "" {
			t.Errorf("accepted, want %s", c.want)
		}
		j.BringIntoBounds()
		if err := j.CheckRuns(); err != nil {
			t.Errorf("after it was brought into bounds: %v", err)
		}
	}
}

// Reservations of a job can change while its tasks run, and nothing else of it can.
func TestWithReservations(t *testing.T) {
	j := Job{Reserve: ReserveLearned, Stages: []Stage{{Tasks: 2, Ideal: resource.Of(1, 2)}, {Tasks: 1, Coordinator: true}}}
	by := Job{Name: "other", Stages: []Stage{{Tasks: 9, Ideal: resource.Of(7, 8), Duration: 5,
		Reserved: &Reservation{Bytes: 8}}, {Ideal: resource.Of(0, 4)}}}
	got := j.WithReservations(&by)
	if s := &got.Stages[0]; s.Ideal != resource.Of(1, 8) || s.Reserved.Bytes != 8 || s.Tasks != 2 || s.Duration != 0 ||
		got.Name != "" || got.Stages[1].Ideal != resource.Of(0, 0) || j.Stages[0].Ideal != resource.Of(1, 2) {
		t.Errorf("%+v", got)
	}
	if got = j.Revised(&by); got.Stages[0].Ideal != resource.Of(1, 8) || got.Stages[0].Duration != 5 {
		t.Errorf("%+v", got)
	}
	j.Reserve = ReserveStated
	if got = j.Revised(&by); got.Stages[0].Ideal != resource.Of(1, 2) || got.Stages[0].Reserved != nil {
		t.Errorf("%+v", got)
	}
}
