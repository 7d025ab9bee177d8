package server

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/counts"
)

// Metrics has something of everything.
func (f *fake) Metrics() counts.Values {
	h := counts.Histogram{Counts: make([]int64, len(counts.HistogramBounds)+1), Sum: 21 * time.Second}
	h.Counts[0], h.Counts[len(h.Counts)-1] = 2, 1
	m := counts.Values{Steps: h, Writes: h, WriteFailures: 1, Hangs: 2, Swapped: 7,
		Events: make([]int64, cluster.NumEventKinds), Decisions: make([]int64, cluster.NumDecisionKinds),
		Open: make([]int64, cluster.NumJobStatuses), Jobs: make([]int64, cluster.NumJobStatuses),
		Runs:  make([]int64, cluster.NumOutcomes),
		Holds: []counts.Holds{{By: cluster.HeldByMemory, Begun: 3, Tasks: 1, Time: 1500 * time.Millisecond}}}
	m.RefusedOfUsers, m.RefusedOfQueues = make([]int64, cluster.NumQuotaKinds), make([]int64, cluster.NumQuotaKinds)
	m.RefusedOfUsers[cluster.QuotaWaiting] = 8
	m.Open[cluster.StatusRunning], m.Open[cluster.StatusFailed], m.Open[cluster.StatusCancelled] = 9, 1, 2
	m.Events[cluster.TaskEnded], m.Decisions[cluster.Start], m.Jobs[cluster.StatusFailed],
		m.Runs[cluster.OutOfMemory] = 4, 5, 6, 7
	return m
}

// tabled returns the rows of the table of metrics in the documentation: type and labels by name.
func tabled(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(cells[1], " `bellows_") {
			continue
		}
		name := strings.Trim(cells[1], " `")
		rows[name] = strings.TrimSpace(cells[2]) + " " + strings.ReplaceAll(strings.TrimSpace(cells[3]), "`", "")
	}
	return rows
}

// The documentation has every metric, with its type and its labels, and no others.
func TestMetricsAreDocumented(t *testing.T) {
	s := New(newFake(), &fakePools{}, fakeProfiles{}, api.Daemon{Version: "test"}, slog.New(slog.DiscardHandler))
	s.http.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/openapi.json", nil))
	families, err := s.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	exposed := map[string]string{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		exposed[f.GetName()] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ", ")
	}
	documented := tabled(t)
	for _, name := range slices.Sorted(maps.Keys(exposed)) {
		if got, want := documented[name], exposed[name]; got != want {
			t.Errorf("docs/reference/metrics.md says %q of %s, which is %q", got, name, want)
		}
	}
	for name := range documented {
		if exposed[name] == "" {
			t.Errorf("docs/reference/metrics.md has %s, which is not exposed", name)
		}
	}
	if len(exposed) < 25 {
		t.Errorf("only %d metrics are exposed", len(exposed))
	}
}

func TestMetrics(t *testing.T) {
	f := newFake()
	c, _ := start(t, f, fakeProfiles{})
	if _, err := client.Call[Health](t.Context(), c, "GET", "/v1/health", nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call[api.Job](t.Context(), c, "GET", "/v1/jobs/7", nil, nil); err == nil {
		t.Fatal("there is a job")
	}
	if _, err := client.Call[Health](t.Context(), c, "GET", "/a/name/that/somebody/made/up", nil, nil); err == nil {
		t.Fatal("any address is answered")
	}
	r, err := httpOf(c).Get("http://bellows/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("status %s (%v)", r.Status, err)
	}
	for _, line := range []string{
		`bellows_engine_step_duration_seconds_bucket{le="1e-05"} 2`,
		`bellows_engine_step_duration_seconds_bucket{le="10"} 2`,
		`bellows_engine_step_duration_seconds_bucket{le="+Inf"} 3`,
		`bellows_engine_step_duration_seconds_sum 21`,
		`bellows_engine_events_total{kind="task-ended"} 4`,
		`bellows_engine_events_total{kind="task-paged-out"} 0`,
		`bellows_engine_decisions_total{kind="start"} 5`,
		`bellows_engine_hangs_total 2`,
		`bellows_ready 1`,
		`bellows_jobs{status="running"} 9`,
		`bellows_jobs{status="ending"} 3`,
		`bellows_jobs_ended_total{status="failed"} 6`,
		`bellows_task_runs_ended_total{outcome="out-of-memory"} 7`,
		`bellows_tasks_held{holder="memory"} 1`,
		`bellows_task_holds_total{holder="memory"} 3`,
		`bellows_task_held_seconds_total{holder="memory"} 1.5`,
		`bellows_memory_swapped_bytes 7`,
		`bellows_store_write_failures_total 1`,
		`bellows_quota_refusals_total{of="user",quota="waiting"} 8`,
		`bellows_quota_refusals_total{of="queue",quota="waiting"} 0`,
		`bellows_api_errors_total{reason="not-found"} 2`,
		`bellows_api_errors_total{reason="denied"} 0`,
		`bellows_api_connections_refused_total{door="socket"} 0`,
		`bellows_api_requests_total{code="200",operation="health"} 1`,
		`bellows_api_requests_total{code="404",operation="job"} 1`,
		`bellows_api_requests_total{code="404",operation="none"} 1`,
	} {
		if !bytes.Contains(text, []byte("\n"+line+"\n")) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if bytes.Contains(text, []byte("somebody")) {
		t.Error("a label has the text of a request")
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}

// BenchmarkMetrics is what one answer costs.
func BenchmarkMetrics(b *testing.B) {
	s := New(newFake(), &fakePools{}, fakeProfiles{}, api.Daemon{Version: "test"}, slog.New(slog.DiscardHandler))
	for b.Loop() {
		s.http.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
	}
}
