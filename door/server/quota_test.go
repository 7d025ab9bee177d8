package server

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/live/api"
)

// A submission that a quota refuses has the status for that, and says when to try again, if that is known.
func TestOverQuota(t *testing.T) {
	f := newFake()
	handler := New(f, &fakePools{}, fakeProfiles{}, api.Daemon{}, slog.New(slog.DiscardHandler)).http.Handler
	for wait, want := range map[time.Duration]string{0: "", 1500 * time.Millisecond: "2", time.Minute: "60"} {
		f.err = &api.Error{Kind: api.OverQuota, Message: "quota submissions of user ada: must be at most 2 jobs a minute",
			Retry: wait}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, asCaller("POST", "/v1/jobs", strings.NewReader(`{"dir":"/","stages":[{}]}`)))
		if got := answer.Header().Get("Retry-After"); answer.Code != 429 || got != want ||
			!strings.Contains(answer.Body.String(), `"code":"over-quota"`) {
			t.Errorf("after %v: %d, Retry-After %q, %s", wait, answer.Code, got, answer.Body)
		}
	}
}

// Users see their own quotas and those of queues that the settings name or that they use; operators see all, or those
// of one user.
func TestWhoSeesQuotas(t *testing.T) {
	h, _ := guarded(t, api.Job{})
	for _, tt := range []struct {
		uid        uint32
		name, user string
		want       string
	}{
		{1000, "ada", "", "ada memory, named running, of-ada running"},
		{1000, "ada", "ada", "ada memory"},
		{1000, "ada", "bob", `user "bob": only this user and operators may see these quotas`},
		{1001, "ada", "", "ada memory, named running"},
		{3000, "bob", "", "bob output, named running"},
		{3000, "bob", "bob", "bob output"},
		{4000, "eve", "", "named running"},
		{4000, "", "ada", `user "ada": only this user and operators may see these quotas`},
		{0, "root", "", "ada memory, bob output, named running, of-ada running"},
		{0, "root", "bob", "bob output"},
		{0, "root", "nobody", ""},
	} {
		answer := askAs(h, operation{method: "GET", path: "/v1/quotas?user=" + tt.user}, "", tt.uid, tt.name, nil)
		var all []api.QuotaUse
		var got []string
		if answer.Code == 403 {
			var e api.Error
			if err := json.Unmarshal(answer.Body.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Message)
		} else if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil || answer.Code != 200 {
			t.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
		}
		for _, q := range all {
			got = append(got, q.User+q.Queue+" "+q.Kind.String())
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s (%d) asks for %q: %s, want %s", tt.name, tt.uid, tt.user, strings.Join(got, ", "), tt.want)
		}
	}
}

// Users see and forget what is known of their own applications, operators that of any user.
func TestWhoForgetsApplications(t *testing.T) {
	h, _ := guarded(t, api.Job{})
	for _, tt := range []struct {
		uid        uint32
		name, user string
		want       int
	}{
		{1000, "ada", "", 200}, {1000, "ada", "ada", 200}, {1000, "ada", "bob", 403}, {4000, "", "ada", 403},
		{0, "root", "ada", 200},
	} {
		if answer := askAs(h, operation{method: "GET", path: "/v1/apps?user=" + tt.user}, "", tt.uid, tt.name,
			nil); answer.Code != tt.want {
			t.Errorf("%s asks for the applications of %q: %d %s", tt.name, tt.user, answer.Code, answer.Body)
		}
		gone := tt.want
		if gone == 200 {
			gone = 404 // There is none of this name.
		}
		answer := askAs(h, operation{method: "DELETE", path: "/v1/apps/none?user=" + tt.user}, "", tt.uid, tt.name, nil)
		if answer.Code != gone {
			t.Errorf("%s forgets one of %q: %d %s", tt.name, tt.user, answer.Code, answer.Body)
		}
	}
}
