package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
)

// QuotaKind is what a quota limits.
type QuotaKind uint8

const (
	QuotaMemory      QuotaKind = iota // bytes that the tasks which have started request; see also Envelope.Quota
	QuotaCPU                          // millicores that the tasks which have started request
	QuotaRunning                      // jobs that have started and have not ended
	QuotaWaiting                      // jobs that have not started
	QuotaSubmissions                  // jobs submitted within a minute
	QuotaOutput                       // bytes of output that are kept
	NumQuotaKinds
)

// NumCounted is the number of kinds that the engine counts, the first ones; the driver counts the others.
const NumCounted = QuotaWaiting + 1

var quotaKinds = [NumQuotaKinds]struct {
	name   string
	format func(resource.Amount) string // nil for a number of jobs
}{
	QuotaMemory:      {name: "memory", format: resource.Memory.Format},
	QuotaCPU:         {name: "cpus", format: resource.CPU.Format},
	QuotaRunning:     {name: "running"},
	QuotaWaiting:     {name: "waiting"},
	QuotaSubmissions: {name: "submissions"},
	QuotaOutput:      {name: "output", format: resource.Memory.Format},
}

// String returns the name of k, as in settings.
func (k QuotaKind) String() string {
	if k < NumQuotaKinds {
		return quotaKinds[k].name
	}
	return fmt.Sprintf("quota(%d)", uint8(k))
}

// MarshalText implements encoding.TextMarshaler.
func (k QuotaKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *QuotaKind) UnmarshalText(text []byte) error {
	for i := range NumQuotaKinds {
		if quotaKinds[i].name == string(text) {
			*k = i
			return nil
		}
	}
	return fmt.Errorf("quota %q: must be one of %v", text, QuotaNames())
}

// QuotaNames returns the names of all kinds of quotas.
func QuotaNames() []string {
	var all []string
	for k := range NumQuotaKinds {
		all = append(all, k.String())
	}
	return all
}

// Format prints an amount of k for people: "4GiB", "2 cores", "3 jobs".
func (k QuotaKind) Format(v int64) string {
	switch {
	case k >= NumQuotaKinds:
		return fmt.Sprint(v)
	case quotaKinds[k].format != nil:
		return quotaKinds[k].format(resource.Amount(v))
	case v == 1:
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", v)
}

// Quota is the most that a user or a queue may have of something.
type Quota struct {
	Most int64 `json:"most"` // in the unit of its kind
	// Refuses says that a job which would exceed the quota is refused when it is submitted. Otherwise it waits: a
	// submission for its answer if there are too many submissions or waiting jobs, and a job that was submitted for its
	// start.
	Refuses bool `json:"refuses,omitempty"`
}

// Unlimited is the Most of a quota that limits nothing: it excepts a user or a queue from the default.
const Unlimited = math.MaxInt64

// Limits are the quotas of a user or a queue.
type Limits map[QuotaKind]Quota

// Quotas are the quotas of all users and queues. They are never changed once an event has them.
type Quotas struct {
	// Users has the quotas of users by name, and Queues those of queues. The empty name has the defaults, for users and
	// queues that have no quota of a kind themselves. Defaults do not concern root.
	Users  map[string]Limits `json:"users,omitempty"`
	Queues map[string]Limits `json:"queues,omitempty"`
}

// None reports whether there is no quota.
func (q *Quotas) None() bool { return q == nil || len(q.Users)+len(q.Queues) == 0 }

// Limits reports whether some user or queue has a quota of a kind.
func (q *Quotas) Limits(k QuotaKind) bool {
	limits := func(own Limits) bool { limit, ok := own[k]; return ok && limit.Most != Unlimited }
	return q != nil && (slices.ContainsFunc(slices.Collect(maps.Values(q.Users)), limits) ||
		slices.ContainsFunc(slices.Collect(maps.Values(q.Queues)), limits))
}

// Check returns an error if a quota is negative.
func (q *Quotas) Check() error {
	for _, all := range []map[string]Limits{q.Users, q.Queues} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for k := range NumQuotaKinds {
				if own := all[name][k]; own.Most < 0 {
					return fmt.Errorf("quota %s of %q %d: must not be negative", k, name, own.Most)
				}
			}
		}
	}
	return nil
}

// Party is a user or a queue: who has a quota.
type Party struct {
	Queue bool
	Name  string
}

func (p Party) String() string {
	if p.Queue {
		return fmt.Sprintf("queue %q", p.Name)
	}
	return "user " + p.Name
}

// DefaultQueue is the queue of jobs that name none.
const DefaultQueue = "default"

// Parties returns the user and the queue of a job.
func (j *Job) Parties() [2]Party {
	return [2]Party{{Name: j.Owner}, {Queue: true, Name: cmp.Or(j.Queue, DefaultQueue)}}
}

// Of returns the quota of a party.
func (q *Quotas) Of(p Party, k QuotaKind) Quota {
	if q == nil {
		return Quota{Most: Unlimited}
	}
	all := q.Users
	if p.Queue {
		all = q.Queues
	}
	if own, ok := all[p.Name][k]; ok && p.Name != "" {
		return own
	}
	if byDefault, ok := all[""][k]; ok && (p.Queue || !isRoot(p.Name)) {
		return byDefault
	}
	return Quota{Most: Unlimited}
}

// isRoot reports whether a user is root: by name, or by number where root has no name.
func isRoot(user string) bool { return user == "root" || user == "0" }

// Excess is a quota that a job would exceed.
type Excess struct {
	Party Party
	Kind  QuotaKind
	Quota
	Taken int64 // of the quota, now
	Needs int64 // by the job, in addition; 0 if that is unknown
}

// Limit says what must be, in a clause.
func (e *Excess) Limit() string {
	most := "must be at most " + e.Kind.Format(e.Most)
	if e.Kind == QuotaSubmissions {
		most += " a minute"
	}
	return most
}

func (e *Excess) Error() string {
	words := fmt.Sprintf("quota %s of %s: %s, with %s taken", e.Kind, e.Party, e.Limit(), e.Kind.Format(e.Taken))
	if e.Needs > 0 {
		words += fmt.Sprintf(" and %s added", e.Kind.Format(e.Needs))
	}
	return words
}

// NeverFits is a field of a job that exceeds a quota even if nothing else runs.
type NeverFits struct {
	WrongField
	Party Party
	Kind  QuotaKind
}

// Unwrap lets errors.As find the WrongField.
func (n *NeverFits) Unwrap() error { return &n.WrongField }

// Never returns the field in which a task of j, or the tasks of a stage that start together, exceed a quota even if
// nothing else runs; nil if there is none.
func (q *Quotas) Never(j *Job) *NeverFits {
	for _, party := range j.Parties() {
		for k := range QuotaRunning {
			limit := q.Of(party, k).Most
			if limit == Unlimited {
				continue
			}
			for i := range j.Stages {
				s := &j.Stages[i]
				if s.Counts(k, s.atOnce()) <= limit {
					continue
				}
				w := &NeverFits{Party: party, Kind: k, WrongField: WrongField{Job: j.Name, Stage: i, StageName: j.StageName(i),
					Field: k.resource().Field(), Value: k.Format(s.Counts(k, 1)),
					Must: fmt.Sprintf("must be at most %s, the quota of %s", k.Format(limit), party)}}
				if s.Together {
					w.Must = fmt.Sprintf("must be at most %s, the quota of %s, for its %d tasks, which start together",
						k.Format(limit), party, s.Tasks)
				}
				return w
			}
		}
	}
	return nil
}

// resource is the kind of resource that a quota of tasks is about.
func (k QuotaKind) resource() resource.Kind {
	if k == QuotaCPU {
		return resource.CPU
	}
	return resource.Memory
}

// MostAtOnce is the most that a task of j, or all tasks of a stage that start together, request of what a quota limits.
func (j *Job) MostAtOnce(k QuotaKind) (most int64) {
	for i := range j.Stages {
		s := &j.Stages[i]
		most = max(most, s.Counts(k, s.atOnce()))
	}
	return most
}

// atOnce is the least number of tasks of s that start in one step.
func (s *Stage) atOnce() int {
	if s.Together {
		return s.Tasks
	}
	return 1
}

// Counts is how much n started tasks of s count for a quota of tasks, at most Unlimited. n is at least 0.
func (s *Stage) Counts(k QuotaKind, n int) int64 {
	each := int64(s.Ideal[k.resource()])
	if n > 0 && each > Unlimited/int64(n) {
		return Unlimited
	}
	return each * int64(n)
}

// Taken is what the jobs of a user or a queue take, of what the engine counts for quotas.
type Taken [NumCounted]int64

// Counts reports whether the engine counts what a quota of a kind limits. The driver counts the rest.
func (k QuotaKind) Counts() bool { return k < NumCounted }
