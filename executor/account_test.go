package executor_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/share"
	"github.com/bellows-rm/bellows/core/timeline"
)

// meter is a policy that notes how many executors are assigned to each application, and to how many it is entitled:
// what max-min fairness grants it of those that there are, given how many it could use, which is one for each of its
// tasks that runs or may start.
type meter struct {
	policy.Policy
	fair    share.Fair
	claims  []share.Claim
	granted []int
	now     map[string]change

	mu      sync.Mutex
	changes []change
}

// change says to how many executors an application is entitled from a time on, in ns, and how many are assigned to it.
type change struct {
	at                 int64
	application        string
	entitled, assigned int
}

// Decide implements policy.Policy.
func (m *meter) Decide(now timeline.Time, p *book.Plan) {
	m.Policy.Decide(now, p)
	m.claims = m.claims[:0]
	for _, j := range p.Jobs {
		m.claims = append(m.claims, share.Claim{Weight: 1, Demand: load(j), Held: j.Reservations})
	}
	m.granted = slices.Grow(m.granted[:0], len(m.claims))[:len(m.claims)]
	m.fair.Divide(p.Present, m.claims, m.granted)
	here := map[string]bool{}
	for i, j := range p.Jobs {
		here[j.Name] = true
		m.note(change{int64(now), j.Name, m.granted[i], j.Reservations})
	}
	for name, c := range m.now {
		if !here[name] && c.entitled+c.assigned > 0 {
			m.note(change{int64(now), name, 0, 0})
		}
	}
}

// note notes how it is, if that is new.
func (m *meter) note(c change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.now[c.application]; before.entitled == c.entitled && before.assigned == c.assigned {
		return
	}
	if m.now == nil {
		m.now = map[string]change{}
	}
	m.now[c.application] = c
	m.changes = append(m.changes, c)
}

func (m *meter) taken() []change {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// load is how many executors a job could use.
func load(j *book.JobState) (n int) {
	if j.Status.Ended() {
		return 0
	}
	for i := j.FirstLeft(); i < len(j.Stages); i++ {
		n += j.Progress[i].Running + j.Progress[i].Booked
		if j.Ready(i) {
			n += j.Progress[i].Pending
		}
	}
	return n
}

// span is when a task ran, from its first line to its last, in ns.
type span struct {
	application string
	executor    int
	began, end  int64
}

// account is what became of the executors of a pool from a time to another: Mira's Table II. An executor is busy from
// the first line of a task to its last, in between assignments from the last line of a task to the first line of
// another application's, and idle at any other time, also while it waits for the next task of its application.
//
// An increase begins when an application has fewer executors assigned than it is entitled to, and ends when it has
// not. It is missed if none was assigned meanwhile, so the load was there for less than the time to react, and short
// if not all were. The delay of an executor is the time from when an application was entitled to one more to when one
// was assigned. It has it a little later: that is the switch.
type account struct {
	executors  int
	background string // an application that is no part of the delays and increases
	from, to   int64

	busy, between  float64         // executor-seconds
	switches, next []time.Duration // between two tasks of an executor, of different applications, and of the same
	backgroundRan  int

	delays                   []time.Duration
	delay                    float64 // executor-seconds
	increases, missed, short int
	lasted                   []time.Duration // for how long the load of the missed increases was there
}

// count fills in the account.
func (a *account) count(changes []change, spans []span) {
	slices.SortFunc(spans, func(x, y span) int {
		return cmp.Or(cmp.Compare(x.executor, y.executor), cmp.Compare(x.began, y.began))
	})
	for i, s := range spans {
		a.busy += a.within(s.began, s.end)
		if s.application == a.background && a.from <= s.end && s.end < a.to {
			a.backgroundRan++
		}
		if i > 0 && spans[i-1].executor == s.executor && s.began >= a.from && s.began < a.to {
			a.follows(&spans[i-1], &s)
		}
	}
	applications := map[string]*holding{}
	for _, c := range changes {
		if c.application == a.background || c.at >= a.to {
			continue
		}
		h := applications[c.application]
		if h == nil {
			h = &holding{}
			applications[c.application] = h
		}
		a.changes(h, c)
	}
}

// within is for how many seconds a time is within the account's.
func (a *account) within(from, to int64) float64 {
	return time.Duration(max(0, min(to, a.to)-max(from, a.from))).Seconds()
}

// follows counts the time between two tasks of an executor.
func (a *account) follows(before, s *span) {
	gap := time.Duration(s.began - before.end)
	if before.application == s.application {
		a.next = append(a.next, gap)
		return
	}
	a.switches = append(a.switches, gap)
	a.between += a.within(before.end, s.began)
}

// holding is what an application has.
type holding struct {
	change
	lacks []int64 // since when each executor is lacking
	rise  *increase
}

// increase is a time in which an application has fewer executors than it is entitled to.
type increase struct {
	since             int64
	most, came, wants int // executors: the most that it had, that came, and the most that it was entitled to
}

// changes follows what an application has.
func (a *account) changes(h *holding, c change) {
	a.delay += float64(len(h.lacks)) * a.within(h.at, c.at)
	came := max(0, c.assigned-h.assigned)
	h.change = c
	lacks := max(0, c.entitled-c.assigned)
	for range came {
		since := c.at // it came at once
		if len(h.lacks) > 0 {
			since, h.lacks = h.lacks[0], h.lacks[1:]
		}
		a.delays = append(a.delays, time.Duration(c.at-since))
	}
	h.lacks = h.lacks[:min(len(h.lacks), lacks)]
	for len(h.lacks) < lacks {
		h.lacks = append(h.lacks, c.at)
	}
	a.rises(h, lacks, came)
}

// rises follows an increase.
func (a *account) rises(h *holding, lacks, came int) {
	if h.rise == nil {
		if lacks > 0 {
			h.rise = &increase{since: h.at, most: h.assigned, wants: h.entitled}
			a.increases++
		}
		return
	}
	r := h.rise
	r.most, r.wants, r.came = max(r.most, h.assigned), max(r.wants, h.entitled), r.came+came
	if lacks > 0 {
		return
	}
	h.rise = nil
	if r.most < r.wants {
		a.short++
	}
	if r.came == 0 {
		a.missed++
		a.lasted = append(a.lasted, time.Duration(h.at-r.since))
	}
}

// whole are the executor-seconds that there were.
func (a *account) whole() float64 { return float64(a.executors) * time.Duration(a.to-a.from).Seconds() }

// wasted is the share of them in which executors were idle or in between assignments.
func (a *account) wasted() float64 { return 1 - a.busy/a.whole() }

// percent is a part of a whole in percent.
func percent(part, of float64) float64 { return 100 * part / max(of, 1e-9) }

// quantile is a quantile of some times; 0 if there is none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))]
}

// row is the row of the table in studies/measured.md.
func (a *account) row(name string, queries int) string {
	at := func(q float64) string { return fmt.Sprintf("%.2f s", quantile(a.delays, q).Seconds()) }
	return fmt.Sprintf("| %s | %.2f %% | %.1f %%, %d | %d | %s | %s | %s | %.0f ES |", name, 100*a.wasted(),
		percent(float64(a.missed), float64(a.increases)), a.missed, a.increases, at(0.5), at(0.75), at(0.99),
		a.delay/float64(queries))
}

// report reports the account.
func (a *account) report(queries int, metric func(value float64, unit string)) {
	ms := func(all []time.Duration, q float64) float64 { return float64(quantile(all, q).Microseconds()) / 1000 }
	metric(ms(a.delays, 0.5), "delay-p50-ms")
	metric(ms(a.delays, 0.75), "delay-p75-ms")
	metric(ms(a.delays, 0.99), "delay-p99-ms")
	metric(a.delay/float64(queries), "delay-es/query")
	metric(float64(a.increases), "increases")
	metric(float64(a.missed), "missed")
	metric(percent(float64(a.missed), float64(a.increases)), "missed-%")
	metric(percent(float64(a.short), float64(a.increases)), "short-%")
	metric(ms(a.lasted, 0.5), "missed-lasted-p50-ms")
	metric(100*a.wasted(), "unassigned+idle-%")
	metric(percent(a.between, a.whole()), "between-%")
	metric(ms(a.switches, 0.5), "switch-p50-ms")
	metric(ms(a.switches, 0.99), "switch-p99-ms")
	metric(ms(a.next, 0.5), "next-p50-ms")
	metric(ms(a.next, 0.99), "next-p99-ms")
	metric(float64(a.backgroundRan)/time.Duration(a.to-a.from).Seconds(), "background/s")
}

// Two executors of a background, of which an application is entitled to one from 1 s on: it is assigned at 3 s. A
// second increase has gone before one is.
func TestAccount(t *testing.T) {
	const s = int64(time.Second)
	a := account{executors: 2, background: "b", from: 0, to: 10 * s}
	a.count([]change{{1 * s, "a", 1, 0}, {3 * s, "a", 1, 1}, {4 * s, "a", 2, 1}, {5 * s, "a", 1, 1}, {6 * s, "a", 0, 0}},
		[]span{{"b", 0, 0, 2 * s}, {"a", 0, 3 * s, 6 * s}, {"b", 0, 7 * s, 10 * s}, {"b", 1, 0, 5 * s},
			{"b", 1, 6 * s, 12 * s}})
	if a.busy != 17 || a.between != 2 || len(a.switches) != 2 || len(a.next) != 1 || a.backgroundRan != 2 {
		t.Errorf("busy %v, between %v, switches %v, next %v, background %d", a.busy, a.between, a.switches, a.next,
			a.backgroundRan)
	}
	if a.delay != 3 || !slices.Equal(a.delays, []time.Duration{2 * time.Second}) {
		t.Errorf("delay %v of %v", a.delay, a.delays)
	}
	if a.increases != 2 || a.missed != 1 || a.short != 1 || !slices.Equal(a.lasted, []time.Duration{time.Second}) {
		t.Errorf("%d increases, %d missed, %d short, lasted %v", a.increases, a.missed, a.short, a.lasted)
	}
}
