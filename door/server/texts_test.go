package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// viewers are callers who see different things of jobs of ada.
func viewers() map[string]*caller {
	of := func(uid uint32, name string, operator bool) *caller {
		return &caller{cluster.Credentials{UID: uid, User: name}, operator}
	}
	return map[string]*caller{"operator": of(0, "root", true), "owner": of(1000, "ada", false),
		"namesake": of(1001, "ada", false), "heir": of(1000, "eve", false), "stranger": of(2000, "bob", false)}
}

// What is kept of jobs is what would be written anew, for each caller what that caller may see, whoever asked before,
// and for each version of a job what that version is.
func TestTextsAreThoseOfTheCaller(t *testing.T) {
	kept := newTexts()
	for round := range 3 {
		for version := range int64(3) {
			job := jobOf(1, fmt.Sprintf("secret %d <&>", version), 1)
			job.Version, job.Queue = version, "secret"
			other := job
			other.ID, other.UID, other.Owner = 2, 2000, "bob"
			for name, c := range viewers() {
				for _, answer := range []any{job, []api.Job{job, other}, []api.Job{}, []api.Job(nil)} {
					if version == 0 { // It may change without another version.
						job.Detail = fmt.Sprint(round)
					}
					var want bytes.Buffer
					e := json.NewEncoder(&want)
					e.SetEscapeHTML(false)
					if err := e.Encode(c.cut(answer)); err != nil {
						t.Fatal(err)
					}
					got := ""
					if ok, err := kept.answer(c, answer, func(text []byte) { got = string(text) }); !ok || err != nil ||
						got != want.String() {
						t.Errorf("%s gets %s, %v, want %s", name, got, err, want.String())
					}
				}
			}
		}
	}
	if ok, _ := kept.answer(viewers()["owner"], []api.Task{}, nil); ok {
		t.Error("tasks are not jobs")
	}
}

// All watchers of the same rights get the same bytes of an update, and others what they may see.
func TestUpdatesAreWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpdates()
		up := api.Update{Revision: 9, Jobs: []api.Job{jobOf(1, "secret", 1)}}
		first := map[string][][]byte{}
		for round := range 2 {
			for name, c := range viewers() {
				events, err := u.texts(c, 5, up)
				if err != nil || len(events) != 1 {
					t.Fatalf("%d events, %v", len(events), err)
				}
				if sees := bytes.Contains(events[0], []byte("secret")); sees != (name == "operator" || name == "owner") {
					t.Errorf("%s gets %s", name, events[0])
				}
				if round == 0 {
					first[name] = events
				} else if &events[0][0] != &first[name][0][0] {
					t.Errorf("%s gets another text", name)
				}
			}
		}
		events, err := u.texts(viewers()["owner"], 4, up)
		if err != nil || &events[0][0] == &first["owner"][0][0] {
			t.Errorf("who knows revision 4 gets what has changed since revision 5, %v", err)
		}
		time.Sleep(watchPace)
		if events, err = u.texts(viewers()["owner"], 5, up); err != nil || &events[0][0] == &first["owner"][0][0] {
			t.Errorf("what follows from the time is too old, %v", err)
		}
	})
}
