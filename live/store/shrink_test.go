package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// What jobs have left is returned to the disk, but for a part that the next jobs take.
func TestShrink(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := open(t, dir)
	ended := map[cluster.JobID]JobState{}
	for range 12 {
		j := sample("large")
		j.Request.Env = []string{"V=" + strings.Repeat("x", 1<<20)}
		id, err := s.AddJob(ctx, j)
		if err != nil {
			t.Fatal(err)
		}
		ended[id] = JobState{Status: cluster.StatusSucceeded, Ended: true}
	}
	size := func() int64 {
		t.Helper()
		if _, err := s.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, File))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if err := s.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	if n := size(); n < 12<<20 {
		t.Fatalf("12 jobs of 1 MiB take %d bytes", n)
	}
	if err := s.Write(ctx, Batch{Jobs: ended}); err != nil {
		t.Fatal(err)
	}
	if n := size(); n < 12<<20 {
		t.Fatalf("%d bytes after the jobs have ended: there is nothing to return", n)
	}
	if err := s.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	if n := size(); n > 5<<20 {
		t.Errorf("%d bytes are left, of which jobs that have ended need a few thousand", n)
	}
	var result string
	if err := s.db.QueryRow("PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Errorf("%s %v", result, err)
	}
}

// A user has a bounded number of profiles, and of bytes of them; one can be replaced. Other users are not concerned.
func TestProfilesAreBounded(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	fill := func(uid, n, bytes int) {
		t.Helper()
		_, err := s.db.Exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM i WHERE n < ?2)
			INSERT INTO apps (owner_uid, owner_name, name, measured) SELECT ?1, 'ada', 'p' || n, printf('%.*c', ?3, 'x') FROM i`, uid, n, bytes)
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(uid uint32, name string) error {
		return s.PutProfile(ctx,
			Profile{UID: uid, User: "ada", Name: name, Measured: api.Measured{Elasticity: cluster.Elasticity{Kind: cluster.Step,
				Factor: 2}}})
	}
	fill(1, mostProfiles, 10)
	fill(2, 4, mostProfileBytes/4)
	for uid := range uint32(3) {
		if err := put(uid, "new"); (uid != 0) != errors.Is(err, ErrProfiles) {
			t.Errorf("user %d: %v", uid, err)
		}
		if err := put(uid, "p1"); err != nil {
			t.Errorf("user %d replaces a profile: %v", uid, err)
		}
	}
	if err := s.Forget(ctx, 1, "ada", "p2"); err != nil {
		t.Fatal(err)
	}
	if err := put(1, "new"); err != nil {
		t.Errorf("after one was forgotten: %v", err)
	}
	if apps, err := s.AppsOfUser(ctx, "ada"); err != nil || len(apps) != mostProfiles+2+4 || apps[0].Name != "new" ||
		apps[1].UID != 1 {
		t.Errorf("%d applications of ada, %v", len(apps), err)
	}
	if err := s.ForgetOfUser(ctx, "ada", "new"); err != nil {
		t.Error(err)
	}
	if apps, err := s.AppsOfUser(ctx, "ada"); err != nil || len(apps) != mostProfiles+4 || apps[0].Name == "new" {
		t.Errorf("%d applications of ada are left, %v", len(apps), err)
	}
	if err := s.ForgetOfUser(ctx, "bob", "p1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("one of bob: %v", err)
	}
}
