package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Jobs and the key of their request are stored together, and not again with a key that counts.
func TestJobsWithKey(t *testing.T) {
	ctx, s := t.Context(), open(t, t.TempDir())
	const begun = timeline.Time(1e18)
	key := func(user, text string, at time.Duration) *Key {
		return &Key{UID: 7, User: user, Text: text, Digest: []byte(user + text), At: begun.Add(at)}
	}
	add := func(k *Key, jobs int) (cluster.JobID, *Key) {
		t.Helper()
		first, earlier, err := s.AddJobs(ctx, slices.Repeat([]Job{sample("a")}, jobs), k)
		if err != nil {
			t.Fatal(err)
		}
		return first, earlier
	}
	if first, earlier := add(key("ada", "a", 0), 3); first != 1 || earlier != nil {
		t.Errorf("first job %d, %+v", first, earlier)
	}
	if _, earlier := add(key("ada", "a", KeyLife-1), 5); earlier == nil || earlier.First != 1 || earlier.Jobs != 3 ||
		string(earlier.Digest) != "adaa" || earlier.At != begun {
		t.Errorf("%+v", earlier)
	}
	if first, earlier := add(key("bob", "a", 1), 1); first != 4 || earlier != nil {
		t.Errorf("another user: first job %d, %+v", first, earlier)
	}
	if first, earlier := add(key("ada", "b", 2), 1); first != 5 || earlier != nil {
		t.Errorf("another key: first job %d, %+v", first, earlier)
	}
	if first, earlier := add(key("ada", "a", KeyLife), 1); first != 6 || earlier != nil {
		t.Errorf("a key that counts no more: first job %d, %+v", first, earlier)
	}
	if k, err := s.Key(ctx, key("ada", "a", KeyLife+1)); err != nil || k == nil || k.First != 6 {
		t.Errorf("%+v, %v", k, err)
	}
	if k, err := s.Key(ctx, key("ada", "c", 0)); err != nil || k != nil {
		t.Errorf("%+v, %v", k, err)
	}
	// Where the key cannot be stored, no job is.
	if _, err := s.db.Exec(
		"CREATE TRIGGER refuse BEFORE INSERT ON keys BEGIN SELECT RAISE(ABORT, 'no'); END"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.AddJobs(ctx, slices.Repeat([]Job{sample("a")}, 2), key("ada", "d", 0)); err == nil {
		t.Error("a key was stored that is refused")
	}
	if _, err := s.Job(ctx, 7); !errors.Is(err, ErrNotFound) {
		t.Errorf("job 7: %v", err)
	}
}

// Of each user the newest keys stay, and none that is too old.
func TestPruneKeys(t *testing.T) {
	ctx, s := t.Context(), open(t, t.TempDir())
	const begun = timeline.Time(1e18)
	key := func(user string, i int) *Key {
		return &Key{UID: 7, User: user, Text: fmt.Sprint(i), Digest: []byte{1}, At: begun.Add(time.Duration(i))}
	}
	for i := range 5 {
		for _, user := range []string{"ada", "bob", ""}[:3-i/2] {
			if _, _, err := s.AddJobs(ctx, []Job{sample("a")}, key(user, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func() (text string) {
		for _, user := range []string{"ada", "bob", ""} {
			for i := range 5 {
				if k, err := s.Key(ctx, key(user, i)); err != nil {
					t.Fatal(err)
				} else if k != nil {
					text += user + fmt.Sprint(i) + " "
				}
			}
		}
		return text
	}
	for _, tt := range []struct {
		after time.Duration
		most  int
		want  string
	}{
		{0, 5, "ada0 ada1 ada2 ada3 ada4 bob0 bob1 bob2 bob3 0 1 "},
		{0, 3, "ada2 ada3 ada4 bob1 bob2 bob3 0 1 "},
		{KeyLife + 1, 3, "ada2 ada3 ada4 bob2 bob3 "},
		{KeyLife + 3, 3, "ada4 "},
		{KeyLife + 4, 3, ""},
	} {
		if err := s.PruneKeys(ctx, begun.Add(tt.after), tt.most); err != nil {
			t.Fatal(err)
		}
		if got := left(); got != tt.want {
			t.Errorf("after %v, at most %d: %q, want %q", tt.after, tt.most, got, tt.want)
		}
	}
}
