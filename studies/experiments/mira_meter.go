package experiments

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/timeline"
)

// miraMeter is a policy that looks at what applications have after the decisions of another. The background is the
// first job; one other application at a time is in the foreground. Once the last job has ended, it decides nothing
// more, so that the simulation ends.
type miraMeter struct {
	policy.Policy
	spark *spark        // knows which executors have registered; nil: those that run tasks
	fair  int           // executors to which the foreground is entitled
	from  timeline.Time // sums begin
	last  cluster.JobID // whose end ends the simulation
	keep  bool          // rows are kept

	now  miraRow // as it is so far
	rows []miraRow
	rise *miraIncrease
	ends bool // the last job has been submitted
	over bool // and has ended
	miraEfficiency
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

// miraIncrease is a time in which the foreground has fewer executors than it could use and is entitled to.
type miraIncrease struct {
	since       timeline.Time
	has         int // executors
	got, wanted int // the most of them, and the most that it could use
	came        int // executors that came
}

// miraEfficiency are the sums of Table II, in executor-seconds.
type miraEfficiency struct {
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
func (m *miraMeter) Decide(now timeline.Time, p *book.Plan) {
	if m.over {
		return
	}
	m.Policy.Decide(now, p)
	if now > m.now.At { // nothing more happens at that time
		m.settle(now)
	}
	m.now = miraRow{At: now, Held: miraExecutors}
	if m.spark != nil {
		m.now.Held = m.spark.held()
		m.Begun = m.spark.grants
	}
	for _, j := range p.Jobs {
		busy := miraBusy(j)
		if m.spark == nil { // its driver has an executor
			busy += j.Progress[0].Running
		}
		usable, asked := busy+miraKept(j), miraLoad(j)
		if m.spark != nil {
			usable, asked = m.spark.executors(now, j)
		}
		if j.ID == miraBackground {
			m.now.BackUsable, m.now.BackBusy = usable, busy
		} else {
			m.now.Load, m.now.Asked = m.now.Load+miraLoad(j), m.now.Asked+asked
			m.now.Usable, m.now.Busy = m.now.Usable+usable, m.now.Busy+busy
			if m.spark == nil {
				m.now.Kept += miraKept(j)
			}
			m.now.Contends = m.now.Contends || miraContends(j)
		}
		m.ends = m.ends || j.ID == m.last
	}
	j, here := p.Job(m.last)
	if m.over = m.ends && (!here || j.Status.Ended()); m.over && m.keep {
		m.rows = append(m.rows, m.now)
	}
}

// miraBackground is the first job.
const miraBackground = cluster.JobID(1)

// miraBusy is how many tasks of an application run, without its driver.
func miraBusy(j *book.JobState) (n int) {
	for i := 1; i < len(j.Stages); i++ {
		n += j.Progress[i].Running
	}
	return n
}

// miraKept is how many executors an application keeps without a task, on Mira.
func miraKept(j *book.JobState) int {
	n := j.Reservations
	for i := range j.Progress {
		n -= j.Progress[i].Running + j.Progress[i].Booked
	}
	return max(0, n)
}

// wants is how many executors the foreground could use and is entitled to.
func (m *miraMeter) wants(r miraRow) int { return min(r.Load, m.fair) }

// has is how many executors the foreground has for its load.
func (r *miraRow) has() int { return r.Usable - r.Kept }

// settle counts what has been since m.now, up to now.
func (m *miraMeter) settle(now timeline.Time) {
	r := m.now
	if m.keep {
		m.rows = append(m.rows, r)
	}
	if r.At < m.from {
		return
	}
	seconds := now.Sub(r.At).Seconds()
	m.Delay += seconds * float64(max(0, m.wants(r)-r.has()))
	m.Unassigned += seconds * float64(miraExecutors-r.Usable-r.BackUsable)
	m.Idle += seconds * float64(r.Usable+r.BackUsable-r.Busy-r.BackBusy)
	m.Front += seconds * float64(r.Busy)
	m.Held += seconds * float64(r.Held)
	m.Spare += seconds * float64(r.Held-r.Busy-r.BackBusy)
	if r.Contends {
		m.Contends += seconds
	}
	m.increase(r)
}

// miraContends reports whether several stages have more tasks together than there are executors.
func miraContends(j *book.JobState) bool {
	stages := 0
	for i := 1; i < len(j.Stages); i++ {
		if j.Ready(i) || j.Progress[i].Running+j.Progress[i].Booked > 0 {
			stages++
		}
	}
	return stages > 1 && miraLoad(j) > miraExecutors
}

// gibHours is the memory of executors over time.
func gibHours(executorSeconds float64) float64 { return executorSeconds * miraHeap / 3600 }

// acquisition is how long an executor takes to come to the foreground, in seconds: what it lacks over time, by what
// came.
func (e *miraEfficiency) acquisition() float64 { return e.Delay / float64(e.Came) }

// increase follows what becomes of an increase of the load.
func (m *miraMeter) increase(r miraRow) {
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
		m.rise = &miraIncrease{since: r.At, has: has, got: has, wanted: wanted}
		m.Increases++
	}
}
