package watchdog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/durable"
)

// Note says what the engine is doing. It is in a file in the state directory while a step lasts, so that the next
// process knows which job the engine hung on.
type Note struct {
	Job    cluster.JobID `json:"job,omitempty"`    // job of the step; 0 means none
	Admits bool          `json:"admits,omitempty"` // the step submits the job to the engine
	// Careful says that the driver submits jobs to the engine one by one, and has not begun with them.
	Careful bool `json:"careful,omitempty"`
	// Hangs is set by the watchdog.
	Hangs bool `json:"hangs,omitempty"`
	// Deaths is the number of times in a row, before this one, that the process ended within this step without a hang:
	// it may have been killed during the step, or the step may need more memory than the machine has.
	Deaths int `json:"deaths,omitempty"`
}

// String puts the note into words.
func (n Note) String() string {
	switch {
	case n.Admits:
		return fmt.Sprintf("taking in job %d", n.Job)
	case n.Job != 0:
		return fmt.Sprintf("deciding after an event of job %d", n.Job)
	}
	return "deciding"
}

// MostDeaths is how many times in a row the process may end within the same step before the step counts as hanging.
const MostDeaths = 3

// notebook is the file of the note. Its text always has the same length, so that it can be overwritten. It is not
// synced, because it records the end of a process, not of a machine.
type notebook struct {
	mu      sync.Mutex
	file    *durable.File
	now     Note
	suspect Note // step in which the last process ended; Deaths includes that end
}

const noteSize = 128 // bytes

func notePath(dir string) string { return filepath.Join(dir, "step") }

// open opens the file and returns the note that the last process left in it; ok is false if there is none.
func (b *notebook) open(dir string) (left Note, ok bool, err error) {
	text, _ := os.ReadFile(notePath(dir)) // A note that cannot be read counts as none.
	ok = json.Unmarshal(text, &left) == nil
	if b.file, err = durable.Open(notePath(dir)); err != nil {
		return left, false, fmt.Errorf("open the note of the engine's step: %w", err)
	}
	if ok && !left.Hangs {
		left.Deaths++
		b.suspect = left
		left.Hangs = left.Deaths >= MostDeaths
	}
	return left, ok, nil
}

// StepBegins writes the note of a step. It ignores a failed write: the step matters more.
func (b *notebook) StepBegins(n Note) {
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

// StepEnds removes the note, because the step has ended.
func (b *notebook) StepEnds() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = Note{}
	_, _ = b.file.WriteAt(make([]byte, noteSize), 0)
}

func (b *notebook) write() {
	text := make([]byte, noteSize)
	for i := range text {
		text[i] = ' '
	}
	line, err := json.Marshal(b.now)
	if err != nil || len(line) > noteSize {
		panic(fmt.Sprintf("watchdog: the note %+v cannot be written: %v", b.now, err))
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

// Close closes the file of the note.
func (b *notebook) Close() error { return b.file.Close() }
