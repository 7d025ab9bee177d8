package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// Both formats have the same messages and attributes.
func TestLogFormats(t *testing.T) {
	write := func(format string, level slog.Level) string {
		var b bytes.Buffer
		log := newLogger(&b, format, level)
		log.Debug("too small")
		log.Warn("node paused: it can start nothing", "node", "n1", "for", 1500*time.Millisecond,
			"container", cluster.ContainerID{Task: cluster.TaskID{Job: 3, Stage: 1, Index: 2}, Run: 4}, "by",
			cluster.HeldByOwner, "job", cluster.JobID(3),
			"error", api.Errorf(api.Internal, "no room: %w", errors.New("disk full")), "preempt", true)
		return b.String()
	}
	text := write(logText, slog.LevelInfo)
	for _, part := range []string{"level=WARN", `msg="node paused: it can start nothing"`, "for=1.5s",
		"container=3-1-2-4", "by=owner", "job=3", `error="no room: disk full"`} {
		if !strings.Contains(text, part) {
			t.Errorf("the text has no %s: %s", part, text)
		}
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(write(logJSON, slog.LevelInfo)), &got); err != nil {
		t.Fatal(err)
	}
	at, _ := got["time"].(string)
	if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
		t.Error(err)
	}
	delete(got, "time")
	want := map[string]any{"level": "WARN", "msg": "node paused: it can start nothing", "node": "n1", "for": 1.5,
		"container": "3-1-2-4", "by": "owner", "job": 3.0, "error": "no room: disk full", "preempt": true}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the line is %v, want %v", got, want)
	}
	if lines := strings.Count(write(logJSON, slog.LevelDebug), "\n"); lines != 2 {
		t.Errorf("at the level DEBUG there are %d lines, want 2", lines)
	}
}
