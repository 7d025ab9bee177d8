package mira

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/timeline"
)

// meter is a policy that looks at what applications have after the decisions of another. The background is the
// first job; one other application at a time is in the foreground. Once the last job has ended, it decides nothing
// more, so that the simulation ends.
type meter struct {
	policy.Policy
	spark *spark        // knows which executors have registered; nil: those that run tasks
	fair  int           // executors to which the foreground is entitled
	from  timeline.Time // sums begin
	last  cluster.JobID // whose end ends the simulation
	keep  bool          // rows are kept

	now  miraRow // as it is so far
	rows []miraRow
	rise *increase
	ends bool // the last job has been submitted
	over bool // and has ended
	efficiency
}

// miraRow is what applications have from a time on: executors, those that run tasks, and how many they could use.
type miraRow struct {
	At                   timeline.Time
	Load, Usable, Busy   int // of the foreground
	Kept                 int // those of Usable that it keeps without a task: no task that waits has use of them
	Asked                int // executors that it has requested
	BackUsable, BackBusy int
	Held                 int  // executors that hold memory, of all applications and of none
	Contends             bool // several stages of the foreground have more tasks together than there are executors
}

// increase is a time in which the foreground has fewer executors than it could use and is entitled to.
type increase struct {
	since       timeline.Time
	has         int // executors
	got, wanted int // the most of them, and the most that it could use
	came        int // executors that came
}

// efficiency are the sums of Table II, in executor-seconds.
type efficiency struct {
	Delay      float64 `json:"delay_es"`      // executors that the foreground is entitled to and does not have
	Unassigned float64 `json:"unassigned_es"` // executors that no application can use
	Idle       float64 `json:"idle_es"`       // that one can use, and does not
	Increases  int     `json:"increases"`
	Missed     int     `json:"missed"`   // no executor came before the load had gone
	Short      int     `json:"short"`    // not all came
	Came       int     `json:"came"`     // executors that came while the foreground had too few
	Front      float64 `json:"front_es"` // executors of the foreground that run tasks
	Held       float64 `json:"held_es"`  // executors that hold memory
	Spare      float64 `json:"spare_es"` // those that hold it and run no task
	Begun      int     `json:"begun"`    // executors that were started
	Contends   float64 `json:"contends"` // seconds in which stages of the foreground contend
	// Lasted are the seconds for which the load of the missed increases was there.
	Lasted []float64 `json:"lasted_s"`
}

// Decide implements policy.Policy.
func (m *meter) Decide(now timeline.Time, p *book.Plan) {
	if m.over {
		return
	}
	m.Policy.Decide(now, p)
	if now > m.now.At { // nothing more happens at that time
		m.settle(now)
	}
	m.now = miraRow{At: now, Held: executors}
	if m.spark != nil {
		m.now.Held = m.spark.held()
		m.Begun = m.spark.grants
	}
	for _, j := range p.Jobs {
		busy := busy(j)
		if m.spark == nil { // its driver has an executor
			busy += j.Progress[0].Running
		}
		usable, asked := busy+kept(j), load(j)
		if m.spark != nil {
			usable, asked = m.spark.executors(now, j)
		}
		if j.ID == background {
			m.now.BackUsable, m.now.BackBusy = usable, busy
		} else {
			m.now.Load, m.now.Asked = m.now.Load+load(j), m.now.Asked+asked
			m.now.Usable, m.now.Busy = m.now.Usable+usable, m.now.Busy+busy
			if m.spark == nil {
				m.now.Kept += kept(j)
			}
			m.now.Contends = m.now.Contends || contends(j)
		}
		m.ends = m.ends || j.ID == m.last
	}
	j, here := p.Job(m.last)
	if m.over = m.ends && (!here || j.Status.Ended()); m.over && m.keep {
		m.rows = append(m.rows, m.now)
	}
}

// background is the first job.
const background = cluster.JobID(1)

// busy is how many tasks of an application run, without its driver.
func busy(j *book.JobState) (n int) {
	for i := 1; i < len(j.Stages); i++ {
		n += j.Progress[i].Running
	}
	return n
}

// kept is how many executors an application keeps without a task, on Mira.
func kept(j *book.JobState) int {
	n := j.Reservations
	for i := range j.Progress {
		n -= j.Progress[i].Running + j.Progress[i].Booked
	}
	return max(0, n)
}

// wants is how many executors the foreground could use and is entitled to.
func (m *meter) wants(r miraRow) int { return min(r.Load, m.fair) }

// has is how many executors the foreground has for its load.
func (r *miraRow) has() int { return r.Usable - r.Kept }

// settle counts what has been since m.now, up to now.
func (m *meter) settle(now timeline.Time) {
	r := m.now
	if m.keep {
		m.rows = append(m.rows, r)
	}
	if r.At < m.from {
		return
	}
	seconds := now.Sub(r.At).Seconds()
	m.Delay += seconds * float64(max(0, m.wants(r)-r.has()))
	m.Unassigned += seconds * float64(executors-r.Usable-r.BackUsable)
	m.Idle += seconds * float64(r.Usable+r.BackUsable-r.Busy-r.BackBusy)
	m.Front += seconds * float64(r.Busy)
	m.Held += seconds * float64(r.Held)
	m.Spare += seconds * float64(r.Held-r.Busy-r.BackBusy)
	if r.Contends {
		m.Contends += seconds
	}
	m.increase(r)
}

// contends reports whether several stages have more tasks together than there are executors.
func contends(j *book.JobState) bool {
	stages := 0
	for i := 1; i < len(j.Stages); i++ {
		if j.Ready(i) || j.Progress[i].Running+j.Progress[i].Booked > 0 {
			stages++
		}
	}
	return stages > 1 && load(j) > executors
}

// gibHours is the memory of executors over time.
func gibHours(executorSeconds float64) float64 { return executorSeconds * heap / 3600 }

// acquisition is how long an executor takes to come to the foreground, in seconds: what it lacks over time, by what
// came.
func (e *efficiency) acquisition() float64 { return e.Delay / float64(e.Came) }

// increase follows what becomes of an increase of the load.
func (m *meter) increase(r miraRow) {
	wanted, has := m.wants(r), r.has()
	if i := m.rise; i != nil {
		came := max(0, has-i.has)
		m.Came += came
		i.came, i.has, i.got = i.came+came, has, max(i.got, has)
		if i.wanted = max(i.wanted, wanted); wanted > has {
			return
		}
		m.rise = nil
		if i.got < i.wanted {
			m.Short++
		}
		if i.came == 0 {
			m.Missed++
			m.Lasted = append(m.Lasted, r.At.Sub(i.since).Seconds())
		}
	} else if wanted > has {
		m.rise = &increase{since: r.At, has: has, got: has, wanted: wanted}
		m.Increases++
	}
}
