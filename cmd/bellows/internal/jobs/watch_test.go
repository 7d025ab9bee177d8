package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// The table follows the jobs: what has changed is shown, what has ended is not any more.
func TestWatchedTable(t *testing.T) {
	now, jobs, tasks := canned()
	running := jobs[2]
	running.Tasks = tasks
	w := watched{jobs: map[cluster.JobID]api.Job{}}
	w.see(&client.Seen{Lost: errors.New("its disk is full")})
	shown := func(u api.Update) string {
		var b bytes.Buffer
		w.see(&client.Seen{Update: &u})
		if err := w.show(terminal.NewScreen(&b), now); err != nil {
			t.Error(err)
		}
		return b.String()
	}
	text := shown(api.Update{Snapshot: true, Jobs: []api.Job{running, jobs[3]}})
	for _, part := range []string{"join", "17/300", "train", "no node has 8GiB and 4 cores free",
		"trouble: its disk is full"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
	measured := tasks[0]
	measured.Usage = &cluster.Reading{Anonymous: pointer[int64](1234 << 20)}
	w.see(&client.Seen{Machine: &api.Machine{Tasks: []api.Task{measured}}})
	ended := jobs[3]
	ended.Ended = true
	if text := shown(api.Update{Jobs: []api.Job{ended}}); strings.Contains(text, "train") ||
		!strings.Contains(text, "join") || !strings.Contains(text, "1234MiB") || strings.Contains(text, "trouble") {
		t.Errorf("shown %q", text)
	}
}

// What has changed is printed as one JSON value per line, until that fails.
func TestUpdatesAsJSON(t *testing.T) {
	_, jobs, _ := canned()
	broken := errors.New("broken")
	var b bytes.Buffer
	if err := writeUpdates(&b, func(yield func(api.Update, error) bool) {
		yield(api.Update{Revision: 7, Snapshot: true, Jobs: jobs[:2]}, nil)
		yield(api.Update{Revision: 8, Jobs: jobs[2:]}, nil)
		yield(api.Update{}, broken)
	}); !errors.Is(err, broken) {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("printed %s", b.String())
	}
	for i, line := range lines {
		var u api.Update
		if err := json.Unmarshal([]byte(line), &u); err != nil || u.Revision != int64(7+i) || len(u.Jobs) != 2 ||
			u.Snapshot != (i == 0) {
			t.Errorf("printed %s: %v", line, err)
		}
	}
}
