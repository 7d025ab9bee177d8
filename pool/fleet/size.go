package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// How many executors a pool has is decided here, by functions of what is known: Size for one pool, and Divide in
// shares.go among owners.

// NoLimit is a number of executors that no pool reaches.
const NoLimit = math.MaxInt32

// registersWithin is how long an executor may take from the start of its program until it registers, before it is
// replaced. Importing a large library from a slow disk takes a minute.
const registersWithin = 2 * time.Minute

// stage is how far an executor has come.
type stage uint8

const (
	queued   stage = iota // its job has not started
	starting              // its program has begun, and has not registered
	idle                  // it has registered, and runs nothing
	busy                  // it runs a task
	leaving               // it was ordered to end
)

// member is what the size of a pool depends on, of one executor.
type member struct {
	number int
	stage  stage
	since  time.Duration   // for how long it has been starting or idle
	tasks  int64           // that it has ended
	memory resource.Amount // after its last task; 0 is unknown
	old    bool            // its pool has been changed since it was launched
	still  bool            // its programs are stopped: it cannot register now
}

// limits are what other owners leave to a pool.
type limits struct {
	most   int  // executors, while all of them run tasks
	warm   int  // executors, those that run nothing included
	waited bool // others wait now for what the pool's owner has
}

var unlimited = limits{most: NoLimit, warm: NoLimit}

// state is all that the size of a pool depends on.
type state struct {
	min, max int
	idle     time.Duration
	recycle  resource.Amount // 0 is never
	demand   int             // executors that could run a task
	members  []member        // whose jobs have not ended
	limits   limits
	// surplus is for how long there have been more executors than there should be.
	surplus time.Duration
	// holds is for how long none is launched, because executors ended young or could not be submitted; why is the reason.
	holds time.Duration
	why   string
}

// ending is an executor that is to end.
type ending struct {
	number int
	// now says that its job is cancelled. Otherwise the executor ends when its task has ended, and at once if it has none.
	now bool
	why string
}

// sizing is what is to be done about the size of a pool.
type sizing struct {
	target int
	launch int
	end    []ending
	again  time.Duration // after which time alone changes the answer; 0 is never
	over   bool          // there are more executors than there should be
	why    string        // why there should be target executors, or why there are fewer
}

// size decides how many executors a pool should have: one for each task that could run, at least min and at most max,
// and not more than other owners leave to it. It grows at once. It shrinks by executors that have run nothing for
// idle, or at once while others wait.
func size(s *state) (out sizing) {
	alive := out.replace(s)
	wanted := max(s.demand, min(s.min, s.limits.warm))
	out.target = min(wanted, s.max, s.limits.most)
	out.why = s.reason()
	switch n := len(alive); {
	case n < out.target:
		out.grow(s, out.target-n)
	case n > out.target:
		out.over = true
		out.shrink(s, alive)
	}
	return out
}

// replace ends executors that are to be replaced, and returns the others that were not ordered to end.
func (out *sizing) replace(s *state) (alive []member) {
	for _, m := range s.members {
		switch {
		case m.stage == leaving:
		case m.old:
			out.end = append(out.end, ending{m.number, m.stage < idle, "its pool was changed"})
		case m.stage == starting && !m.still && m.since >= registersWithin:
			out.end = append(out.end, ending{m.number, true, fmt.Sprintf("it has not registered within %v", registersWithin)})
		case s.recycle > 0 && m.tasks > 0 && m.memory > s.recycle:
			out.end = append(out.end,
				ending{m.number, false, fmt.Sprintf("it has %s after a task, more than %s", resource.FormatMemory(m.memory),
					resource.FormatMemory(s.recycle))})
		default:
			if m.stage == starting && !m.still {
				out.lookAgain(registersWithin - m.since)
			}
			alive = append(alive, m)
		}
	}
	return alive
}

// reason says why the pool should have its target number of executors.
func (s *state) reason() string {
	tasks := fmt.Sprintf("%d tasks run or could run", s.demand)
	if s.demand == 1 {
		tasks = "1 task runs or could run"
	}
	wanted := max(s.demand, s.min)
	switch {
	case s.limits.most < min(wanted, s.max) || s.limits.warm < s.min && s.demand < s.min:
		return fmt.Sprintf("%s; other owners wait, and this is the fair share of its owner", tasks)
	case s.demand >= s.max:
		return fmt.Sprintf("%s; the pool may have %d", tasks, s.max)
	case s.demand <= s.min && s.min == 1:
		return tasks + "; 1 executor is kept"
	case s.demand <= s.min && s.min > 0:
		return fmt.Sprintf("%s; %d executors are kept", tasks, s.min)
	}
	return tasks
}

// grow launches executors. Those that are about to end count until they have, so that there are never more than max.
func (out *sizing) grow(s *state, missing int) {
	if s.holds > 0 {
		out.why = fmt.Sprintf("%s; %s", out.why, s.why)
		out.lookAgain(s.holds)
		return
	}
	out.launch = max(0, min(missing, s.max-len(s.members)))
}

// shrink ends executors beyond the target: first those whose programs have not begun, then those that are starting,
// then idle ones, longest idle first, and if others wait also busy ones, after their current task. Among equals the
// newest ends first, because older ones are warmer.
func (out *sizing) shrink(s *state, alive []member) {
	slices.SortFunc(alive, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(b.since, a.since), cmp.Compare(b.number, a.number))
	})
	over, beyond := len(alive)-out.target, len(alive)-s.limits.most
	for i, m := range alive[:over] {
		why := "no task needs it"
		switch {
		case i < beyond || s.limits.waited && m.stage < busy:
			why = "other owners wait, and its owner has more than a fair share"
		case m.stage == busy:
			continue
		case m.stage == idle && m.since < s.idle:
			out.lookAgain(s.idle - m.since)
			continue
		case m.stage < idle && s.surplus < s.idle:
			out.lookAgain(s.idle - s.surplus)
			continue
		}
		out.end = append(out.end, ending{m.number, m.stage < idle, why})
	}
}

// lookAgain says that time alone changes the answer.
func (out *sizing) lookAgain(after time.Duration) {
	if after > 0 && (out.again == 0 || after < out.again) {
		out.again = after
	}
}

// backoff spaces launches after executors that ended young, and after launches that failed.
type backoff struct {
	failures int
	newest   int // the number of the newest executor when the last one failed
	until    time.Time
	why      string
}

// youngest is how long an executor that ended by itself must have lived not to count as a broken program.
const youngest = 30 * time.Second

// failed counts a failure: the next launch is 1 s later, then 2 s, 4 s and so on, up to a minute.
func (b *backoff) failed(now time.Time, newest int, why string) {
	if now.Before(b.until) { // of executors that were launched together
		return
	}
	pause := min(time.Second<<min(b.failures, 6), time.Minute)
	b.failures++
	b.newest = newest
	b.until = now.Add(pause)
	b.why = fmt.Sprintf("%s; next attempt at %s", why, b.until.Format(time.TimeOnly))
}

// worked forgets the failures, if an executor that has run a task was launched since. Executors launched before say
// nothing about new launches.
func (b *backoff) worked(number int) {
	if number > b.newest {
		b.forget()
	}
}

// forget forgets the failures.
func (b *backoff) forget() { *b = backoff{} }

// holds returns for how long nothing is to be launched.
func (b *backoff) holds(now time.Time) time.Duration { return max(0, b.until.Sub(now)) }
