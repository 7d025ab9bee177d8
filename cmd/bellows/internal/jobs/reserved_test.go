package jobs

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

func TestReservedWords(t *testing.T) {
	for _, c := range []struct {
		by           cluster.Reservation
		starts, most resource.Amount
		want         string
	}{
		{cluster.Reservation{}, 64 * resource.MiB, 2 * resource.GiB,
			"memory: auto, starts with 64MiB, may grow to 2GiB"},
		{cluster.Reservation{}, 64 * resource.MiB, 0, "memory: auto, starts with 64MiB"},
		{cluster.Reservation{Runs: 6, Most: 27 * resource.MiB, Told: cluster.Provenance{Error: 0.02}}, 31 * resource.MiB,
			600 * resource.MiB,
			"memory: auto, starts with 31MiB (6 runs, 27MiB at most, error 2 %), may grow to 600MiB"},
	} {
		if got := reservedWords(&c.by, c.starts, c.most); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// What the flags leave open, the daemon decides.
func TestFlagsLeaveOpen(t *testing.T) {
	const gib = resource.GiB
	for _, c := range []struct {
		class, reserve     string
		memory, least, may resource.Amount
		undecided          bool
		is                 cluster.Class
		by                 cluster.ReserveBy
		wrong              string
	}{
		{undecided: true},
		{memory: gib, undecided: true},
		{may: gib, undecided: true},
		{memory: gib, least: 1 << 20},
		{memory: gib, class: "regular"},
		{memory: gib, class: "flex", is: cluster.Flex},
		{memory: gib, reserve: "stated"},
		{reserve: "learned", is: cluster.Flex, by: cluster.ReserveLearned},
		{memory: gib, reserve: "learned", is: cluster.Flex, by: cluster.ReserveLearned},
		{memory: 2 * gib, may: gib, reserve: "learned", wrong: "max-memory 1GiB: must be at least memory, which is 2GiB"},
		{reserve: "learned", class: "regular", wrong: "reserve learned: needs class flex: "},
		{reserve: "stated", wrong: "memory: must be given, by --memory or --profile"},
		{least: 1 << 20, wrong: "memory: must be given, by --memory or --profile"},
		{class: "flex", may: gib, wrong: "memory: must be given, by --memory or --profile"},
	} {
		o := runOptions{class: c.class, reserve: c.reserve, penalty: "none", stage: cluster.Stage{Tasks: 1,
			Ideal: resource.Of(resource.Core, c.memory), MinMemory: c.least, MaxMemory: c.may}}
		got, err := o.job([]string{"true"}, "/")
		switch {
		case c.wrong != "":
			if err == nil || !strings.HasPrefix(err.Error(), c.wrong) {
				t.Errorf("%+v: %v", c, err)
			}
		case err != nil || got.Undecided != c.undecided || got.Class != c.is || got.Reserve != c.by:
			t.Errorf("%+v: %v, %+v", c, err, got)
		}
	}
}
