package server

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/live"
)

// A caller who is neither root, nor the daemon's user, nor the owner of a job sees that the job exists, but no text of
// its owner or its programs.
func TestOthersSeeNoNames(t *testing.T) {
	d := newFake()
	d.jobs[1] = live.Job{ID: 1, Name: "secret", App: "secret", DeadlineSeconds: 77, Owner: "ada", UID: 1000, Status: cluster.StatusFailed, Ended: true, Detail: "secret failed",
		Stages: []live.Stage{{Stage: cluster.Stage{Name: "secret stage", Tasks: 1, DataOn: []string{"secret node"}, Profile: "secret",
			Phases: []cluster.Phase{{Name: "secret", Duration: 1}}, Told: cluster.Provenance{Model: "secret", Samples: 1}}}}, Tasks: []live.Task{{Task: cluster.TaskID{Job: 1}, Run: 1, Detail: "secret", InPhase: live.InPhase{Phase: 1, Phases: 1, Name: "secret"}}},
		Earlier: []live.Task{{Detail: "secret"}}}
	close(d.ended)
	handler := New(d, fakeProfiles{}, Daemon{UID: 2000}, slog.New(slog.DiscardHandler)).http.Handler
	tests := []struct {
		address string
		status  int // for other users
	}{
		{"/v1/jobs", 200}, {"/v1/jobs?all=true", 200}, {"/v1/jobs/1", 200}, {"/v1/jobs/1?ended=true", 200}, {"/v1/tasks", 200},
		{"/v1/jobs/1/explain", 403}, {"/v1/jobs/1/usage", 403}, {"/v1/jobs/1/logs", 403}, {"/v1/tasks/1.0.0", 403}, {"/v1/tasks/1.0.0/output", 403},
	}
	for _, tt := range tests {
		for uid, other := range map[uint32]bool{0: false, 1000: false, 2000: false, 3000: true} {
			r := asCaller("GET", tt.address, nil)
			r = r.WithContext(context.WithValue(r.Context(), peerKey{}, cluster.Credentials{UID: uid}))
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			if other && (answer.Code != tt.status || (strings.Contains(answer.Body.String(), "secret") || strings.Contains(answer.Body.String(), "deadline_s"))) {
				t.Errorf("%s for another user: %d %s", tt.address, answer.Code, answer.Body)
			}
			if !other && answer.Code == 403 {
				t.Errorf("%s for user %d: %d %s", tt.address, uid, answer.Code, answer.Body)
			}
			if !other && tt.address == "/v1/jobs/1" && !strings.Contains(answer.Body.String(), "secret stage") {
				t.Errorf("%s for user %d: %s", tt.address, uid, answer.Body)
			}
		}
	}
}
