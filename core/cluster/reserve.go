package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// ReserveBy says what decides how much memory is reserved for the tasks of a job.
type ReserveBy uint8

const (
	// ReserveStated reserves what the job states.
	ReserveStated ReserveBy = iota
	// ReserveLearned reserves what earlier runs of its application needed: see Stage.Reserved. Such a job is FLEX, so
	// that a task which needs more grows. Ideal[Memory] of its stages is the reservation, with which a container starts,
	// and MaxMemory the limit, which the container may grow to. Its stages have no minimum memory and no elasticity:
	// their tasks are never under-sized.
	ReserveLearned
)

var reserveNames = [...]string{"stated", "learned"}

func (r ReserveBy) String() string { return NameOf(reserveNames[:], r, "reserve") }

// MarshalText implements encoding.TextMarshaler.
func (r ReserveBy) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Empty text is ReserveStated.
func (r *ReserveBy) UnmarshalText(text []byte) error {
	switch string(text) {
	case reserveNames[ReserveStated], "":
		*r = ReserveStated
	case reserveNames[ReserveLearned]:
		*r = ReserveLearned
	default:
		return fmt.Errorf("reserve %q: must be stated or learned", text)
	}
	return nil
}

// FirstReservation is what is reserved for a task of which nothing is known, unless its limit is less.
const FirstReservation = 64 * resource.MiB

// LeastReservation is what is reserved at least for a task of which something is known, unless its limit is less. What
// programs hold does not count the files that they map and read: with no room for these, they read them again and
// again.
const LeastReservation = 16 * resource.MiB

// Reservation is how much memory to reserve for a run, and the evidence. What a container may grow to is not its
// business: it is no limit.
type Reservation struct {
	Bytes resource.Amount `json:"memory_bytes" doc:"memory that is reserved for a task"`
	// Runs ended well, and their peak was measured. Of AtLeast of them it is a lower bound: see profile.Run.AtLeast.
	Runs    int `json:"runs" doc:"runs of the program that ended well, and whose largest use of memory was measured"`
	AtLeast int `json:"at_least,omitempty" doc:"of these, how many would have used more, had they got more"`
	// Most is the largest of their peaks.
	Most resource.Amount `json:"most_bytes,omitempty" doc:"largest use of memory of these runs"`
	// Told has the model, and its mean relative error at runs that it was not fitted to; with one run the error is not
	// known, and 0. It is zero if no run is known.
	Told Provenance `json:"told,omitzero" doc:"how the reservation was made from these runs"`
	// Short is what a task held that ended for want of memory, and whose need no run has told since; 0 without one.
	Short resource.Amount `json:"short_bytes,omitempty" doc:"memory of a task that ended for want of more, if no run has told since what it needs"`
	// Outside says that the input is below or above all inputs that were measured.
	Outside bool `json:"outside,omitempty" doc:"the input is below or above all inputs that were measured"`
	// Limited says that the limit is less than what would be reserved without it.
	Limited bool `json:"limited,omitempty" doc:"the limit is less than what would be reserved without it"`
}

// String returns the evidence in words: "6 runs, 27MiB at most, error 2 %".
func (r Reservation) String() string {
	var words []string
	switch {
	case r.Runs == 1:
		words = append(words, "1 run, "+resource.FormatMemory(r.Most)+", error unknown")
	case r.Runs > 1:
		words = append(words, fmt.Sprintf("%d runs, %s at most, error %.0f %%", r.Runs, resource.FormatMemory(r.Most),
			100*r.Told.Error))
	}
	if r.AtLeast > 0 {
		words = append(words, fmt.Sprintf("of %d of them a lower bound", r.AtLeast))
	}
	if r.Short > 0 {
		words = append(words, "one ended for want of memory with "+resource.FormatMemory(r.Short))
	}
	if r.Outside {
		words = append(words, "the input is outside of what was measured")
	}
	if r.Limited {
		words = append(words, "the limit is less")
	}
	return strings.Join(words, ", ")
}

// Known reports whether the need of a task is known: several runs tell it, of inputs like this one, and none of them
// lacked memory.
func (r *Reservation) Known() bool { return r.Runs > 1 && r.Short == 0 && !r.Outside && r.AtLeast == 0 }

// ReservationGrowth is by how much a reservation grows after an attempt that ended for want of memory. Doubling finds
// any need after as many attempts as the logarithm of what is missing, and ends at most at twice the need.
const ReservationGrowth = 2

// After returns the reservation of the next attempt of a task that ended for want of memory with held bytes in use:
// at least twice as much, up to limit (0: none). It also holds for a task of which nothing else is known.
func (r Reservation) After(held, limit resource.Amount) Reservation {
	r.Short = max(r.Short, held)
	r.Bytes = max(r.Bytes, min(ReservationGrowth*held, resource.MostMemory))
	return r.Within(limit)
}

// Within returns r, or limit if that is less and not 0.
func (r Reservation) Within(limit resource.Amount) Reservation {
	if limit > 0 && r.Bytes > limit {
		r.Bytes, r.Limited = limit, true
	}
	return r
}

// ReservedWords says how much is reserved for a task of s, why, and how far it may grow: "reserves 31MiB: 6 runs,
// 27MiB at most, error 2 %; may grow to 600MiB". It is empty if what is reserved is as stated.
func (s *Stage) ReservedWords() string {
	if s.Reserved == nil {
		return ""
	}
	known, most := *s.Reserved, "the memory of its node"
	if s.MaxMemory > 0 {
		most = resource.FormatMemory(s.MaxMemory)
	}
	short := known.Limited && s.Ideal[resource.Memory] != s.MaxMemory
	known.Limited = known.Limited && !short
	evidence := known.String()
	if evidence == "" {
		evidence = "no run is known"
	}
	if short {
		evidence += ", more than a node has or a quota allows would be reserved"
	}
	return fmt.Sprintf("reserves %s: %s; may grow to %s", resource.FormatMemory(s.Ideal[resource.Memory]), evidence, most)
}

// Learn makes the reservations of j learned, with what is reserved while nothing is known: FirstReservation, or what a
// stage states that has a maximum, too. The maximum of a stage, or else the memory that it states, becomes its limit.
// The elements of j.Stages are changed; the class of j, which must be Flex, is not.
func (j *Job) Learn() {
	j.Reserve = ReserveLearned
	for i := range j.Stages {
		s := &j.Stages[i]
		if s.Coordinator {
			continue
		}
		r := Reservation{Bytes: s.Ideal[resource.Memory]}
		if s.MaxMemory == 0 || r.Bytes == 0 {
			s.MaxMemory = cmp.Or(s.MaxMemory, s.Ideal[resource.Memory])
			r = Reservation{Bytes: FirstReservation}.Within(s.MaxMemory)
		}
		s.Ideal[resource.Memory], s.Reserved = r.Bytes, &r
	}
}

// MayLearn reports whether the reservations of j could be learned: no stage states sizes that belong together, as one
// does whose tasks may be under-sized.
func (j *Job) MayLearn() bool {
	return !slices.ContainsFunc(j.Stages, func(s Stage) bool {
		return s.MinMemory > 0 || s.Elasticity.Kind != NotElastic
	})
}

// UnderSized reports whether a task of a stage with a grant of memory, bytes, has less than it needs to be fast. No
// task is whose reservation is learned: it may run with an earlier one.
func (j *Job) UnderSized(stage int, memory resource.Amount) bool {
	return j.Reserve == ReserveStated && memory < j.Stages[stage].Ideal[resource.Memory]
}

// Told returns the memory, bytes, by which a program of a stage sizes itself that is granted the given bytes on a node
// with the given memory: {memory} in its command, and the heap of its runtime. It is the grant, unless the reservation
// is learned: then it is the limit, or without one the larger of the grant and half of the node. If it were the grant,
// a program would use most of it, be granted what it used, and so get less from run to run.
func (j *Job) Told(stage int, granted, node resource.Amount) resource.Amount {
	s := &j.Stages[stage]
	switch {
	case j.Reserve != ReserveLearned || !j.Resizable(stage):
		return granted
	case s.MaxMemory > 0:
		return max(granted, min(s.MaxMemory, node))
	}
	return max(granted, node/2)
}

// ToldWords says what Told is of, where Told is in bytes, on a node with the given memory.
func (j *Job) ToldWords(stage int, told, node resource.Amount) string {
	switch {
	case j.Reserve != ReserveLearned || j.Stages[stage].MaxMemory > 0:
		return "that its container may have"
	case told > node/2:
		return "that are reserved for it"
	}
	return "that are half of its node"
}

// SizesItself reports whether c names {memory}: its program sizes itself by that.
func (c *Command) SizesItself() bool {
	return slices.ContainsFunc(c.filled(), func(text string) bool {
		return strings.Contains(strings.ReplaceAll(text, "{{", ""), "{memory")
	})
}

// checkReserve returns an error if a stage of j has what a learned reservation excludes, or evidence without one.
func (j *Job) checkReserve(s *Stage) *WrongField {
	switch {
	case j.Reserve == ReserveStated && s.Reserved == nil:
		return nil
	case j.Reserve == ReserveStated:
		return wrong("reserved", "", "must be left out of a job whose reservations are stated")
	case s.MinMemory > 0:
		return wrong("min_memory", resource.FormatMemoryExact(s.MinMemory),
			"must be left out where what is reserved is learned: a task with less than its ideal memory needs a stated one")
	case s.Elasticity.Kind != NotElastic:
		return wrong("elasticity", s.Elasticity, "must be left out where what is reserved is learned")
	}
	return nil
}
