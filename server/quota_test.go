package server

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/live"
)

// A submission that a quota refuses has the status for that, and says when to try again, if that is known.
func TestOverQuota(t *testing.T) {
	f := newFake()
	handler := New(f, fakeProfiles{}, Daemon{}, slog.New(slog.DiscardHandler)).http.Handler
	for wait, want := range map[time.Duration]string{0: "", 1500 * time.Millisecond: "2", time.Minute: "60"} {
		f.err = &live.Error{Kind: live.OverQuota, Message: "quota submissions of user ada: must be at most 2 jobs a minute", Retry: wait}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, asCaller("POST", "/v1/jobs", strings.NewReader(`{"dir":"/","stages":[{}]}`)))
		if got := answer.Header().Get("Retry-After"); answer.Code != 429 || got != want || !strings.Contains(answer.Body.String(), `"code":"over-quota"`) {
			t.Errorf("after %v: %d, Retry-After %q, %s", wait, answer.Code, got, answer.Body)
		}
	}
}
