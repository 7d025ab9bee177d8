package resource

import (
	"encoding/json"
	"math"
	"testing"
)

func TestKindSets(t *testing.T) {
	type holder struct {
		Unknown Kinds `json:"unknown,omitempty"`
	}
	for want, s := range map[string]Kinds{
		`{}`:                             0,
		`{"unknown":["network"]}`:        KindsOf(Network),
		`{"unknown":["disk","network"]}`: KindsOf(Network, Disk),
		`{"unknown":["cpus","memory"]}`:  KindsOf(CPU, Memory),
	} {
		text, err := json.Marshal(holder{s})
		if err != nil || string(text) != want {
			t.Errorf("%v is written as %s (%v), want %s", s, text, err, want)
		}
		var back holder
		if err := json.Unmarshal(text, &back); err != nil || back.Unknown != s {
			t.Errorf("%s is read as %v (%v), want %v", text, back.Unknown, err, s)
		}
	}
	for _, text := range []string{`["tape"]`, `"disk"`, `[3]`} {
		if err := json.Unmarshal([]byte(text), new(Kinds)); err == nil {
			t.Errorf("%s is read without an error", text)
		}
	}
	s := KindsOf(Disk, Network)
	if !s.Has(Disk) || s.Has(CPU) || s.String() != "disk, network" || Kinds(0).String() != "none" {
		t.Errorf("the set of disk and network is %v", s)
	}
	if got := s.In(Vector{1, 2, 3, 4}, 9); got != (Vector{1, 2, 9, 9}) {
		t.Errorf("got %v", got)
	}
}

// The amount that stands for an unknown one is never shown as a number, and every need fits in it.
func TestUnbounded(t *testing.T) {
	if got := Of(1000, 0).With(Network, Unbounded).String(); got != "cpu=1 network=unknown" {
		t.Errorf("got %q", got)
	}
	for k := range NumKinds {
		if k.Format(Unbounded) != "unknown" || k.Most() > Unbounded || Unbounded > math.MaxInt64-k.Most() {
			t.Errorf("%v: %s, and the most is %d", k, k.Format(Unbounded), k.Most())
		}
	}
}
