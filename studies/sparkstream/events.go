package sparkstream

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// starts returns, from the logs of events of all applications, how long each job waited for its first task while its
// application ran no other, seconds: the time until it has an executor.
func starts(dir string) (all []float64, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), "events_") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		var j jobs
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			if err := j.take(lines.Bytes()); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		all = append(all, j.starts...)
		return lines.Err()
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: no job is in the logs of events", dir)
	}
	return all, err
}

// jobs follows the jobs and tasks of one application.
type jobs struct {
	running int   // tasks
	since   int64 // when a job began that waits for its first task, ms; 0: none
	starts  []float64
}

// take takes in an event.
func (j *jobs) take(line []byte) error {
	var e struct {
		Event     string
		Submitted int64 `json:"Submission Time"` // ms
		Task      struct {
			Launched int64 `json:"Launch Time"`
		} `json:"Task Info"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	switch e.Event {
	case "SparkListenerJobStart":
		if j.running == 0 && j.since == 0 {
			j.since = e.Submitted
		}
	case "SparkListenerTaskStart":
		if j.running++; j.since != 0 {
			j.starts, j.since = append(j.starts, float64(e.Task.Launched-j.since)/1e3), 0
		}
	case "SparkListenerTaskEnd":
		j.running--
	}
	return nil
}
