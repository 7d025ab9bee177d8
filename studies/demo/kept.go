package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// keptRuns are runs in a directory, one file each, so that an interrupted demonstration continues where it stopped. nil
// keeps nothing.
type keptRuns struct{ dir string }

// keptRun is one file.
type keptRun struct {
	Programs string   `json:"programs"` // runs of other programs are not used
	Run      *FlexRun `json:"run"`
	// Samples are rows, one per container and time: milliseconds, job, then bytes of anonymous memory, swap and limit,
	// and 1 if it was suspended. A row without a job says in its last number how many containers waited for memory
	// before they began.
	Samples [][6]int64 `json:"samples"`
}

func (k *keptRuns) path(jobs int, allocation string, round int) string {
	return filepath.Join(k.dir,
		fmt.Sprintf("%d-jobs-%s-%d.json", jobs, strings.ReplaceAll(strings.ToLower(allocation), " ", "-"), round))
}

// identity returns what runs must have in common to be compared.
func (r *FlexResult) identity() string {
	return fmt.Sprintf("%s, %s cores: %s", resource.FormatMemory(r.Node[resource.Memory]),
		resource.FormatCPU(r.Node[resource.CPU]), strings.Join(r.Programs, "; "))
}

// load returns a kept run, or nil.
func (k *keptRuns) load(r *FlexResult, a *contender, round int) (*FlexRun, error) {
	if k == nil {
		return nil, nil
	}
	path := k.path(r.Jobs, a.Label, round)
	var kept keptRun
	found, err := readKept(path, r.identity(), &kept)
	if err != nil || !found {
		return nil, err
	}
	if kept.Run == nil {
		return nil, fmt.Errorf("file %s: holds no run", path)
	}
	kept.Run.samples = unpack(kept.Samples)
	return kept.Run, nil
}

func (k *keptRuns) save(r *FlexResult, run *FlexRun) error {
	if k == nil {
		return nil
	}
	return writeKept(k.path(r.Jobs, run.Allocation, run.Round), &keptRun{r.identity(), run, pack(run.samples)})
}

func (k *keptRun) of() string { return k.Programs }

// kept is the content of a file in which results are kept.
type kept interface {
	of() string // what was run: results of anything else are not used
}

// readKept reads a file of results that were had with the given programs. found is false if there is no file.
func readKept(path, programs string, into kept) (found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read what was run: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("file %s: holds no run: %w", path, err)
	}
	if into.of() != programs {
		return false, fmt.Errorf("file %s: was run with %q: must be %q; name another directory, or remove it", path,
			into.of(), programs)
	}
	return true, nil
}

func writeKept(path string, content kept) error {
	text, err := json.Marshal(content)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o777)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o666)
	}
	if err != nil {
		return fmt.Errorf("keep what was run: %w", err)
	}
	return nil
}

func pack(samples []sample) (rows [][6]int64) {
	for _, s := range samples {
		if s.waiting > 0 || len(s.containers) == 0 {
			rows = append(rows, [6]int64{s.at.Milliseconds(), 0, 0, 0, 0, int64(s.waiting)})
		}
		for _, c := range s.containers {
			row := [6]int64{s.at.Milliseconds(), int64(c.id.Task.Job), int64(c.anonymous), int64(c.swap), int64(c.limit)}
			if c.suspended {
				row[5] = 1
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func unpack(rows [][6]int64) (samples []sample) {
	for _, row := range rows {
		at := time.Duration(row[0]) * time.Millisecond
		if n := len(samples); n == 0 || samples[n-1].at != at {
			samples = append(samples, sample{at: at})
		}
		s := &samples[len(samples)-1]
		if row[1] == 0 {
			s.waiting = int(row[5])
			continue
		}
		s.containers = append(s.containers, held{id: cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(row[1])}},
			anonymous: resource.Amount(row[2]), swap: resource.Amount(row[3]), limit: resource.Amount(row[4]),
			suspended: row[5] == 1})
	}
	return samples
}
