package store

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

// A loss of power may leave a transaction that was written before the store had a write-ahead log: of the daemon that
// made it, or of whoever restored a copy. It is undone, and the store opens with what it had before.
func TestOpenUndoesWhatAJournalSays(t *testing.T) {
	for name, accept := range map[string]bool{"opened": false, "accepted": true} {
		for _, jobs := range []int{0, 2} {
			t.Run(name, func(t *testing.T) {
				whole, dir := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "state")
				if err := os.Mkdir(whole, 0o700); err != nil {
					t.Fatal(err)
				}
				for n := range jobs {
					s := open(t, whole)
					if id, err := s.AddJob(t.Context(), sample("kept")); err != nil || int(id) != n+1 {
						t.Fatal(id, err)
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				interrupted(t, filepath.Join(whole, File), filepath.Join(dir, File))
				if accept {
					if changed, err := Accept(dir); err != nil || changed != nil {
						t.Fatalf("accepted with %q, %v", changed, err)
					}
				}
				s := open(t, dir)
				list, err := s.List(t.Context(), 0, 10)
				if err != nil || len(list) != jobs {
					t.Errorf("%d jobs, %v; want %d", len(list), err, jobs)
				}
				if id, err := s.AddJob(t.Context(), sample("new")); err != nil || int(id) != jobs+1 {
					t.Errorf("job %d, %v", id, err)
				}
			})
		}
	}
}

// interrupted copies a file of SQLite amid a transaction, a part of which is in the file, with the journal that
// undoes it.
func interrupted(t *testing.T, from, to string) {
	t.Helper()
	db, err := sql.Open("sqlite", from)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"PRAGMA journal_mode = DELETE", "PRAGMA cache_size = 1", "BEGIN",
		"CREATE TABLE lost (x)",
		"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO lost SELECT " +
			"randomblob(4000) FROM n"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	copyFile(t, from, to)
	copyFile(t, from+"-journal", to+"-journal")
	if info, err := os.Stat(to); err != nil || info.Size() == 0 {
		t.Fatalf("nothing was written yet: %v", err)
	}
}
