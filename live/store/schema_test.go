package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable"
)

// rawly opens a store as SQLite alone does, and calls f.
func rawly(t *testing.T, dir string, f func(*sql.DB)) {
	t.Helper()
	db, err := (&Store{path: filepath.Join(dir, File)}).connect(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	f(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func schemaOf(t *testing.T, dir string) (version int) {
	t.Helper()
	rawly(t, dir, func(db *sql.DB) {
		if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
			t.Fatal(err)
		}
	})
	return version
}

// content is all that is in a store: the schema and every row.
func content(t *testing.T, dir string) (all []string) {
	t.Helper()
	rawly(t, dir, func(db *sql.DB) {
		tables := rows(t, db, "SELECT name, sql FROM sqlite_schema ORDER BY type, name")
		all = append(all, tables...)
		for _, name := range rows(t, db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
			all = append(all, "table "+name)
			in := rows(t, db, "SELECT * FROM "+name)
			slices.Sort(in)
			all = append(all, in...)
		}
	})
	return all
}

// rows returns the rows of a query, each as text.
func rows(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	found, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for found.Next() {
		if err := found.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, v := range values {
			text = append(text, fmt.Sprint(v))
		}
		all = append(all, strings.Join(text, "|"))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// later are migrations of later releases; each writes some pages.
var later = []string{
	"CREATE TABLE one AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n LIMIT 40) SELECT i, " +
		"hex(zeroblob(2000)) AS body FROM n",
	"CREATE TABLE two AS SELECT i, body FROM one; UPDATE jobs SET detail = 'seen'",
	"DROP TABLE one; CREATE TABLE three AS SELECT i, body || body AS body FROM two",
}

// withLater lets this program be one of a later release, until the test ends.
func withLater(t *testing.T) {
	all := migrations
	migrations = slices.Concat(all, later)
	t.Cleanup(func() { migrations = all })
}

// ofBaseline makes a state directory with a store of the baseline, in which there is a job.
func ofBaseline(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddJob(t.Context(), sample("a")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := schemaOf(t, dir); got != baseline {
		t.Fatalf("its schema is %d, want %d", got, baseline)
	}
}

// migrateIn opens and closes a store.
func migrateIn(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A program that is killed when it has made a step of a migration, and has not committed it, leaves the schema
// before; the next program goes on from there, and loses nothing. Making a store is such a step.
func TestKilledMigration(t *testing.T) {
	old, empty := t.TempDir(), t.TempDir()
	ofBaseline(t, old)
	killed := func(dir string, step int) {
		t.Helper()
		out, err := exec.Command(os.Args[0], "migrate-until-killed", dir, fmt.Sprint(step)).CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if status, isWait := exitStatus(exit); !ok || !isWait || status.Signal() != unix.SIGKILL {
			t.Fatalf("step %d: the program was not killed: %v: %s", step, err, out)
		}
	}
	killed(empty, 1)
	if got := schemaOf(t, empty); got != 0 {
		t.Errorf("killed when it made a store it left schema %d", got)
	}
	ofBaseline(t, empty)
	withLater(t)
	whole := copied(t, old)
	migrateIn(t, whole)
	want := content(t, whole)
	for step := 1; step <= len(later); step++ {
		dir := copied(t, old)
		killed(dir, step)
		if got := schemaOf(t, dir); got != baseline+step-1 {
			t.Errorf("killed in step %d it left schema %d", step, got)
		}
		migrateIn(t, dir)
		if got := content(t, dir); !slices.Equal(got, want) {
			t.Errorf("killed in step %d the store became\n%s\nwant\n%s", step, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// copied returns a copy of a state directory.
func copied(t *testing.T, from string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func exitStatus(e *exec.ExitError) (status syscall.WaitStatus, ok bool) {
	if e == nil {
		return 0, false
	}
	status, ok = e.Sys().(syscall.WaitStatus)
	return status, ok
}

// migrateUntilKilled is a program of a later release that opens a store, and dies right before the commit of one of
// the steps of its migration.
func migrateUntilKilled(dir string, step int) {
	migrations = slices.Concat(migrations, later)
	durable.Watch = func(op durable.Op, _ string) {
		if op != durable.OpCommit {
			return
		}
		if step--; step == 0 {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	s, err := Open(dir)
	fmt.Println("opened", s != nil, err)
	os.Exit(1)
}

// A disk that is full when a store is migrated is named in one sentence. Nothing is lost: with room the migration
// goes on.
func TestMigrationOnAFullDisk(t *testing.T) {
	old := t.TempDir()
	ofBaseline(t, old)
	withLater(t)
	whole := copied(t, old)
	migrateIn(t, whole)
	want := content(t, whole)
	stopped := map[int]bool{}
	for kib := 4; kib <= 2048; kib += 32 { // what is free
		dir := t.TempDir()
		mount(t, dir, "size=3m", 0)
		if err := os.CopyFS(dir, os.DirFS(old)); err != nil {
			t.Fatal(err)
		}
		var disk unix.Statfs_t
		if err := unix.Statfs(dir, &disk); err != nil {
			t.Fatal(err)
		}
		ballast := filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, int64(disk.Bavail)*disk.Bsize-int64(kib)<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir)
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			break
		}
		if want := "open the store " + filepath.Join(dir, File) + ": its disk is full: free some space"; err.Error() != want {
			t.Errorf("with %d KiB free: %v, want %s", kib, err, want)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		stopped[schemaOf(t, dir)] = true
		migrateIn(t, dir)
		if got := content(t, dir); !slices.Equal(got, want) {
			t.Errorf("with %d KiB free the store became\n%s", kib, strings.Join(got, "\n"))
		}
	}
	if len(stopped) < len(later) {
		t.Errorf("it stopped only with schemas %v", stopped)
	}
}

// A store of another schema, of a later release or of a program before 0.1.0, is refused in one sentence that says
// what to do, also if it is to be accepted as it is, and nothing in it is changed.
func TestOtherSchemasAreLeftAlone(t *testing.T) {
	for version, want := range map[int]string{
		1: "its schema has version 1, from before bellows 0.1.0: finish its jobs with the program that " +
			"wrote it, and start this one with another state directory",
		baseline - 1: "its schema has version 16, from before bellows 0.1.0: finish its jobs with the program that " +
			"wrote it, and start this one with another state directory",
		baseline + 1: "its schema has version 18, and this bellows knows versions up to 17: start a newer bellows",
	} {
		dir := t.TempDir()
		ofBaseline(t, dir)
		rawly(t, dir, func(db *sql.DB) {
			if _, err := db.ExecContext(context.Background(), fmt.Sprintf("CREATE TABLE other (a); PRAGMA user_version = %d",
				version)); err != nil {
				t.Fatal(err)
			}
		})
		// Neither do its number of changes, nor what stands beside it, suggest another remedy.
		if err := os.MkdirAll(filepath.Join(dir, "logs", "99"), 0o700); err != nil {
			t.Fatal(err)
		}
		before := content(t, dir)
		_, opened := Open(dir)
		_, accepted := Accept(dir)
		for _, err := range []error{opened, accepted} {
			if want := "open the store " + filepath.Join(dir, File) + ": " + want; err == nil || err.Error() != want {
				t.Errorf("opened with %v, want %s", err, want)
			}
		}
		if after := content(t, dir); !slices.Equal(before, after) || schemaOf(t, dir) != version {
			t.Errorf("the store became\n%s", strings.Join(after, "\n"))
		}
	}
}
