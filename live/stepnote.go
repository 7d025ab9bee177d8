package live

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/durable"
)

// stepNote says what the engine is doing. It is in a file in the state directory while a step lasts, so that the next
// Start knows which job the engine hung on.
type stepNote struct {
	Job    cluster.JobID `json:"job,omitempty"`    // job of the step; 0 means none
	Admits bool          `json:"admits,omitempty"` // the step submits the job to the engine
	// Careful says that the Driver submits jobs to the engine one by one, and has not begun with them.
	Careful bool `json:"careful,omitempty"`
	// Hangs is set by the watchdog.
	Hangs bool `json:"hangs,omitempty"`
	// Deaths is the number of times in a row, before this one, that the process ended within this step without a hang:
	// it may have been killed during the step, or the step may need more memory than the machine has.
	Deaths int `json:"deaths,omitempty"`
}

// String puts the note into words.
func (n stepNote) String() string {
	switch {
	case n.Admits:
		return fmt.Sprintf("taking in job %d", n.Job)
	case n.Job != 0:
		return fmt.Sprintf("deciding after an event of job %d", n.Job)
	}
	return "deciding"
}

// mostDeaths is how many times in a row the process may end within the same step before the step counts as hanging.
const mostDeaths = 3

// notebook is the file of the note. Its text always has the same length, so that it can be overwritten. It is not
// synced, because it records the end of a process, not of a machine.
type notebook struct {
	mu      sync.Mutex
	file    *durable.File
	now     stepNote
	suspect stepNote // step in which the last process ended; Deaths includes that end
}

const noteSize = 128 // bytes

func notePath(dir string) string { return filepath.Join(dir, "step") }

// openNotebook opens the file and returns the note that the last process left in it; ok is false if there is none.
func openNotebook(dir string) (b *notebook, left stepNote, ok bool, err error) {
	text, _ := os.ReadFile(notePath(dir)) // A note that cannot be read counts as none.
	ok = json.Unmarshal(text, &left) == nil
	file, err := durable.Open(notePath(dir))
	if err != nil {
		return nil, left, false, fmt.Errorf("open the note of the engine's step: %w", err)
	}
	b = &notebook{file: file}
	if ok && !left.Hangs {
		left.Deaths++
		b.suspect = left
		left.Hangs = left.Deaths >= mostDeaths
	}
	return b, left, ok, nil
}

// begin writes the note of a step. It ignores a failed write: the step matters more.
func (b *notebook) begin(n stepNote) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.Job == b.suspect.Job && n.Admits == b.suspect.Admits && n.Careful == b.suspect.Careful {
		n.Deaths = b.suspect.Deaths
	}
	b.now = n
	b.write()
}

// mark adds that the engine hangs.
func (b *notebook) mark() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now.Hangs = true
	b.write()
}

// end removes the note, because the step has ended.
func (b *notebook) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = stepNote{}
	_, _ = b.file.WriteAt(make([]byte, noteSize), 0)
}

func (b *notebook) write() {
	text := make([]byte, noteSize)
	for i := range text {
		text[i] = ' '
	}
	line, err := json.Marshal(b.now)
	if err != nil || len(line) > noteSize {
		panic(fmt.Sprintf("live: the note %+v cannot be written: %v", b.now, err))
	}
	copy(text, line)
	_, _ = b.file.WriteAt(text, 0)
}

// String returns the current note in words.
func (b *notebook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now.String()
}

func (b *notebook) close() error { return b.file.Close() }

// noteOf returns the note of a step that handles an event.
func (d *Driver) noteOf(e *cluster.Event) stepNote {
	n := stepNote{Job: e.Task.Job, Careful: d.careful}
	if e.Kind == cluster.JobSubmitted || e.Job != 0 {
		n.Job = e.Job
	}
	n.Admits = e.Kind == cluster.JobSubmitted
	return n
}

// A job that is set aside is kept, but not submitted to the engine.
const setAsideWords = "the engine hung when it took the job in, so the job is set aside: kill it"

func (j *job) isAside() bool { return j.State.Status == cluster.StatusSetAside }

// answer reacts to the note that the last process left.
//
// If the engine hung when it admitted a job, that job is set aside. If it hung later, the job is unknown, because an
// event of one job can make the engine decide about all jobs. Then jobs that never started are submitted to it one by
// one, with a note for each; if it hangs again, the note names the job. If it hangs before that, with only the jobs
// that have started, the engine decides nothing: containers continue, jobs can be listed and killed, and the next Start
// tries again.
func (d *Driver) answer(left stepNote) {
	if !left.Hangs {
		d.careful = true // It costs nothing, and if the process ends again, the note names the step.
		return
	}
	d.log.Warn("the engine hung in the last run", "at", left.String())
	d.note.end() // This start has dealt with the note.
	j, here := d.jobs[left.Job]
	switch {
	case left.Admits && here && len(j.runs) == 0:
		j.State.Status = cluster.StatusSetAside
		d.out.putJob(j)
		d.log.Warn("a job is set aside: it stays, and does not start", "job", left.Job)
	case left.Careful:
		d.broken = Errorf(Internal,
			"policy %s hangs whenever it decides about the jobs that run, so nothing is decided until bellows is started "+
				"again; the containers continue: kill the job that causes it, and start bellows again", d.config.Policy.Name())
		d.log.Error("the engine decides nothing; the containers continue", "policy", d.config.Policy.Name(), "error",
			d.broken)
	default:
		d.careful = true
	}
}
