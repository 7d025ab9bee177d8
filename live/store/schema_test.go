package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
)

// recordedSchemas are the schemas that were in use; testdata/schemas has a store of each, as the program of its time wrote it.
var recordedSchemas = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16}

// Every schema was recorded, except the twelfth, which came together with the thirteenth. The newest one is recorded with the next.
func TestEverySchemaIsRecorded(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("testdata", "schemas"))
	if err != nil {
		t.Fatal(err)
	}
	if want := len(recordedSchemas) + 1; len(files) != want { // and README.md
		t.Errorf("%d files in testdata/schemas, want %d", len(files), want)
	}
	for v := 1; v < len(migrations); v++ {
		if v != 12 && !slices.Contains(recordedSchemas, v) {
			t.Errorf("no store with schema %d is recorded: see testdata/schemas/README.md", v)
		}
	}
}

// recordedStore makes a state directory with a recorded store.
func recordedStore(t *testing.T, schema int, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "schemas", fmt.Sprintf("%02d.sql", schema)))
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{path: filepath.Join(dir, File)}
	db, err := s.connect(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(string(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA journal_mode = WAL"); err != nil {
		t.Fatal(err)
	}
	if got := schemaOf(t, dir); got != schema {
		t.Fatalf("its schema is %d, want %d", got, schema)
	}
}

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

// A store of every schema opens with all that its program had stored.
func TestEverySchema(t *testing.T) {
	for _, schema := range recordedSchemas {
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			dir := t.TempDir()
			recordedStore(t, schema, dir)
			checkRecorded(t, open(t, dir), schema)
		})
	}
}

// checkRecorded checks what is in a store that was recorded with a schema.
func checkRecorded(t *testing.T, s *Store, schema int) {
	t.Helper()
	ctx := t.Context()
	listed, err := s.List(ctx, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range listed {
		code := "-"
		if l.State.ExitCode != nil {
			code = fmt.Sprint(*l.State.ExitCode)
		}
		got = append(got, fmt.Sprint(l.ID, " ", l.User, " ", l.Name, " ", l.State.Status, " ", code, " ", l.State.Succeeded, "/", l.Tasks, " ", l.State.Ended, " ", l.State.Cancelled))
	}
	want := []string{
		"1 root hello succeeded 0 1/1 true false",
		"2 root fails failed 3 0/1 true false",
		"3 root cancelled cancelled 143 0/1 true true",
		"4 root two succeeded 0 3/3 true false",
		"5 root ends running - 0/1 false false",
		"6 root ends-alone running - 0/1 false false",
		"7 root flex running - 0/1 false false",
		"8 root waits pending - 0/1 false false",
		"9 root pair-1 pending - 0/1 false false",
		"10 root pair-2 pending - 0/1 false false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the jobs are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	checkRequests(t, s, schema)
	checkRuns(t, s)
	p, err := s.Profile(ctx, 0, "root", "naps")
	if err != nil || p.Made == 0 || !slices.Equal(p.Args, []string{"sleep", "0.3"}) || p.Elasticity.Check() != nil || len(p.Evidence) == 0 {
		t.Errorf("profile %+v, %v", p, err)
	}
	if apps, err := s.Apps(ctx, 0, "root"); err != nil || (len(apps) > 1) != (schema >= 8) {
		t.Errorf("applications %+v, %v", apps, err)
	}
	if tokens, err := s.Tokens(ctx); err != nil || (len(tokens) == 1) != (schema >= 14) || len(tokens) == 1 && (tokens[0].Scope != "submit" || tokens[0].User != "root" || tokens[0].Revoked != 0) {
		t.Errorf("tokens %+v, %v", tokens, err)
	}
	if runs, err := s.Runs(ctx); err != nil || len(runs) != 1 || runs[0].Policy != "fifo" || runs[0].Ended != 0 {
		t.Errorf("runs of the daemon %+v, %v", runs, err)
	}
	spans := 0
	if err := s.Usage(ctx, 4, func(u Usage) error { spans += len(u.Usage.Spans); return nil }); err != nil || (spans > 0) != (schema >= 7) {
		t.Errorf("%d spans of usage, %v", spans, err)
	}
	if ids, err := s.Unlearned(ctx); err != nil || schema < 10 && len(ids) > 0 {
		t.Errorf("to be learned from: %v, %v", ids, err)
	}
	// It can be written, and ids go on.
	if id, err := s.AddJob(ctx, sample("new")); err != nil || id != 11 {
		t.Errorf("the next job has the id %d, %v", id, err)
	}
}

// checkRequests checks what the jobs of a recorded store are.
func checkRequests(t *testing.T, s *Store, schema int) {
	t.Helper()
	for id := cluster.JobID(1); id <= 10; id++ {
		j, err := s.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if env, err := s.Environment(t.Context(), id); err != nil || (len(env) > 0) == j.State.Ended {
			t.Errorf("job %d has the environment %v, %v", id, env, err)
		}
		if j.Request.As.User != "root" || j.Submitted == 0 || (len(j.Pauses) > 0) != (id == 8 && schema >= 13) {
			t.Errorf("job %d is %+v", id, j)
		}
		for i := range j.Request.Job.Stages {
			if stage := &j.Request.Job.Stages[i]; len(stage.Args) == 0 || stage.Ideal[resource.Memory] < 16*resource.MiB || stage.Ideal[resource.CPU] < 250 {
				t.Errorf("stage %d of job %d is %+v", i, id, stage)
			}
		}
	}
	flex, err := s.Job(t.Context(), 7)
	if err != nil || flex.Request.Job.Class != cluster.Flex || flex.Request.Job.Stages[0].MaxMemory != 64*resource.MiB {
		t.Errorf("the FLEX job is %+v, %v", flex, err)
	}
	two, err := s.Job(t.Context(), 4)
	if err != nil || len(two.Request.Job.Stages) != 2 || !reflect.DeepEqual(two.Request.Job.Stages[1].Parents, []int{0}) ||
		!slices.Equal(two.Request.Job.Stages[0].Args, []string{"sh", "-c", "echo {task}"}) || !slices.Equal(two.Request.Job.Stages[1].Args, []string{"true"}) {
		t.Errorf("the job of two stages is %+v, %v", two, err)
	}
}

// checkRuns checks the runs of the tasks of a recorded store.
func checkRuns(t *testing.T, s *Store) {
	t.Helper()
	want := map[cluster.JobID]string{1: "succeeded", 2: "failed", 3: "killed", 4: "succeeded succeeded succeeded", 5: "runs", 6: "runs", 7: "runs", 8: "", 9: "", 10: ""}
	for id, want := range want {
		tasks, err := s.Tasks(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, task := range tasks {
			outcome := "runs"
			if task.Outcome != 0 {
				outcome = task.Outcome.String()
			}
			got = append(got, outcome)
			ended := task.Outcome != 0
			if task.Booked == 0 || task.Started < task.Booked || (task.Ended >= task.Started) != ended || (task.Exit != nil) != ended || task.Grant[resource.Memory] < 16*resource.MiB {
				t.Errorf("a run of job %d is %+v", id, task)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the runs of job %d: %v, want %s", id, got, want)
		}
	}
}

// withSchemas lets a program know the schemas up to a version, and calls f.
func withSchemas(t *testing.T, version int, f func()) {
	t.Helper()
	all := migrations
	migrations = all[:version]
	defer func() { migrations = all }()
	f()
}

// Whether programs of all later schemas open a store one after the other, or the present one alone, the result is the same.
func TestSchemasStepByStep(t *testing.T) {
	for _, schema := range recordedSchemas {
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			steps, atOnce := t.TempDir(), t.TempDir()
			recordedStore(t, schema, steps)
			recordedStore(t, schema, atOnce)
			for v := schema; v <= len(migrations); v++ {
				withSchemas(t, v, func() { migrateIn(t, steps) })
			}
			migrateIn(t, atOnce)
			if a, b := content(t, steps), content(t, atOnce); !slices.Equal(a, b) {
				t.Errorf("step by step it is\n%s\nand at once\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
			}
		})
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

// A program that is killed when it has made a step of a migration, and has not committed it, leaves the schema before; the next program
// goes on from there, and loses nothing.
func TestKilledMigration(t *testing.T) {
	whole := t.TempDir()
	recordedStore(t, 1, whole)
	migrateIn(t, whole)
	want := content(t, whole)
	for step := 1; step < len(migrations); step++ {
		dir := t.TempDir()
		recordedStore(t, 1, dir)
		out, err := exec.Command(os.Args[0], "migrate-until-killed", dir, fmt.Sprint(step)).CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if status, isWait := exitStatus(exit); !ok || !isWait || status.Signal() != unix.SIGKILL {
			t.Fatalf("step %d: the program was not killed: %v: %s", step, err, out)
		}
		if got := schemaOf(t, dir); got != step {
			t.Errorf("killed in step %d it left schema %d", step, got)
		}
		migrateIn(t, dir)
		if got := content(t, dir); !slices.Equal(got, want) {
			t.Errorf("killed in step %d the store became\n%s\nwant\n%s", step, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		checkRecorded(t, open(t, dir), 1)
	}
}

func exitStatus(e *exec.ExitError) (status syscall.WaitStatus, ok bool) {
	if e == nil {
		return 0, false
	}
	status, ok = e.Sys().(syscall.WaitStatus)
	return status, ok
}

// migrateUntilKilled opens a store, and dies right before the commit of one of the steps of its migration.
func migrateUntilKilled(dir string, step int) {
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

// A disk that is full when a store is migrated is named in one sentence. Nothing is lost: with room the migration goes on.
func TestMigrationOnAFullDisk(t *testing.T) {
	whole := t.TempDir()
	recordedStore(t, 1, whole)
	migrateIn(t, whole)
	want := content(t, whole)
	stopped := map[int]bool{}
	for kib := 4; kib <= 512; kib += 12 { // what is free
		dir := t.TempDir()
		mount(t, dir, "size=1m", 0)
		recordedStore(t, 1, dir)
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
	if len(stopped) < 3 {
		t.Errorf("it stopped only with schemas %v", stopped)
	}
}

// A store of a later schema is refused, in one sentence with both versions, and nothing in it is changed.
func TestLaterSchemaIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	recordedStore(t, 1, dir)
	migrateIn(t, dir)
	later := len(migrations) + 1
	rawly(t, dir, func(db *sql.DB) {
		if _, err := db.ExecContext(context.Background(), fmt.Sprintf("CREATE TABLE later (a); PRAGMA user_version = %d", later)); err != nil {
			t.Fatal(err)
		}
	})
	before := content(t, dir)
	want := fmt.Sprintf("open the store %s: its schema has version %d, and this bellows knows versions up to %d: start a newer bellows", filepath.Join(dir, File), later, len(migrations))
	if _, err := Open(dir); err == nil || err.Error() != want {
		t.Errorf("opened with %v, want %s", err, want)
	}
	if after := content(t, dir); !slices.Equal(before, after) || schemaOf(t, dir) != later {
		t.Errorf("the store became\n%s", strings.Join(after, "\n"))
	}
}
