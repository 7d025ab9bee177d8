package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/durable"
)

// A store that was lost, emptied, or replaced by an earlier one does not know that itself. What is known outside of
// it are the mark, and what stands in the state directory under numbers of jobs.

// commits is the name of the sequence, beside those of the tables, that counts commits. So the count needs no table.
const commits = "commits"

// countCommit counts a transaction that is about to be committed.
func countCommit(ctx context.Context, tx *change) error {
	counted, err := tx.ExecContext(ctx, "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = ?", commits)
	if err != nil {
		return err
	}
	if n, err := counted.RowsAffected(); err != nil || n > 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, 1)", commits)
	return err
}

// witness is something outside of the store that names a job.
type witness struct {
	job cluster.JobID
	is  string // what it is, as a clause
}

// witness returns the one of the highest number; its number is 0 if there is none.
func (s *Store) witness() (last witness) {
	dir := filepath.Dir(s.path)
	for _, name := range namesIn(filepath.Join(dir, "logs")) {
		if id, err := strconv.ParseInt(name, 10, 64); err == nil && cluster.JobID(id) > last.job {
			last = witness{cluster.JobID(id), fmt.Sprintf("output of job %d is in %s", id, filepath.Join(dir, "logs", name))}
		}
	}
	for _, name := range namesIn(filepath.Join(dir, "containers")) {
		if id, err := cluster.ParseContainerID(name); err == nil && id.Task.Job > last.job {
			last = witness{id.Task.Job, fmt.Sprintf("a container of job %d is in %s", id.Task.Job,
				filepath.Join(dir, "containers", name))}
		}
	}
	return last
}

// namesIn returns the names in a folder, in any order; none if it cannot be read.
func namesIn(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return names
}

// isMissing returns an error if the file is missing or empty, and something says that there was a store.
func (s *Store) isMissing() error {
	is := "missing"
	switch info, err := os.Stat(s.path); {
	case err == nil && info.Size() > 0:
		return nil
	case err == nil:
		is = "empty"
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	why := s.witness().is
	if had := s.mark.says.commits; why == "" && had > 0 {
		why = fmt.Sprintf("%s says that it has had %d changes", s.mark.paths[0], had)
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("it is %s, and %s: %w", is, why, ErrBehind)
}

// isBehind returns an error if something says that the store had come further.
func (s *Store) isBehind() error {
	newest, err := s.sequences()
	if err != nil {
		return err
	}
	if has, had := s.commits.Load(), s.mark.says.commits; has < had {
		return fmt.Errorf("its last %d changes are missing, which %s counts: %w", had-has, s.mark.paths[0], ErrBehind)
	}
	if last := s.witness(); last.job > newest {
		return fmt.Errorf("its last job is %d, and %s: %w", newest, last.is, ErrBehind)
	}
	return nil
}

// sequences finds out how many commits the store has had, and the highest number of a job.
func (s *Store) sequences() (newest cluster.JobID, err error) {
	var made, had int64
	if err := s.reader.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'").Scan(
		&made); err != nil || made == 0 {
		return 0, err
	}
	for name, into := range map[string]any{commits: &had, "jobs": &newest} {
		err := s.reader.QueryRow("SELECT seq FROM sqlite_sequence WHERE name = ?", name).Scan(into)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, err
		}
	}
	s.commits.Store(had)
	return newest, nil
}

// isWhole returns an error if the pages of the file contradict each other.
func (s *Store) isWhole() error {
	if _, err := s.sequences(); err != nil {
		return err
	}
	var found string
	if err := s.reader.QueryRow("PRAGMA quick_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return &unreadable{errors.New(found)}
	}
	return nil
}

// isReadable returns an error if what a daemon reads when it starts cannot be read.
func (s *Store) isReadable() error {
	ctx := context.Background()
	_, jobs := s.OpenJobs(ctx)
	_, tasks := s.OpenTasks(ctx)
	_, runs := s.Runs(ctx)
	_, last := s.SubmittedBetween(ctx, 0, timeline.Never)
	return errors.Join(jobs, tasks, runs, last)
}

// Accept makes Open take the store of a state directory as it is, although it is behind. One that is damaged is moved
// aside, and an empty one takes its place. Numbers go on above every one that may have been in use. Accept returns a
// clause for each thing that it has changed. No other process may have the store open.
func Accept(dir string) (changed []string, err error) {
	s, err := newStore(dir)
	if err != nil {
		return nil, err
	}
	why := s.explain("open", s.isMissing())
	if why == nil {
		why = s.explain("open", s.onAnyDisk(func() error { return s.open(s.isWhole) }))
		if why == nil {
			if why = s.isReadable(); why != nil {
				why = errors.Join(why, s.Close())
			}
		}
	}
	if errors.Is(why, ErrDamaged) || errors.Is(why, ErrBehind) {
		kept, err := s.putAside()
		if err != nil {
			return nil, s.explain("move aside", err)
		}
		if kept != "" {
			changed = append(changed, "what was there is now "+kept)
		}
		changed = append(changed, "the store is empty")
		if s, why = newStore(dir); why == nil {
			why = s.explain("open", s.onAnyDisk(func() error { return s.open(func() error { return nil }) }))
		}
	}
	if why != nil {
		return nil, why
	}
	goesOn, err := s.goOn()
	if goesOn != "" {
		changed = append(changed, goesOn)
	}
	return changed, errors.Join(err, s.Close())
}

// putAside renames the files of the store, and returns the new name of the first of them; "" if there is none with
// content.
func (s *Store) putAside() (kept string, err error) {
	to := s.path + ".damaged-" + time.Now().UTC().Format("20060102-150405.000")
	for _, ending := range []string{"", "-wal"} { // as SQLite names them
		info, err := os.Stat(s.path + ending)
		if err != nil || info.Size() == 0 {
			continue
		}
		if err := durable.Rename(s.path+ending, to+ending); err != nil {
			return "", err
		}
		kept = cmp.Or(kept, to+ending)
	}
	return kept, nil
}

// goOn lets the numbers of jobs and runs of the daemon go on above every one that may have been in use, and the mark
// say what is true of the store. It returns what has changed, as a clause.
func (s *Store) goOn() (changed string, err error) {
	had := s.mark.says
	missing := max(0, had.commits-s.commits.Load())
	newest, err := s.Newest(context.Background())
	known := s.witness().job
	if err != nil || missing == 0 && known <= newest {
		return "", err
	}
	had.jobs = max(had.jobs, known, newest)
	last := map[string]int64{"jobs": int64(had.jobs), "runs": s.lastRun()}
	err = s.write(context.Background(), "write to", func(tx *change) error {
		for name, seq := range last {
			raised, err := tx.ExecContext(context.Background(), "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?",
				seq, name)
			if err != nil {
				return err
			}
			if n, err := raised.RowsAffected(); err != nil || n > 0 {
				continue
			}
			if _, err := tx.ExecContext(context.Background(), "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", name,
				seq); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if err := s.mark.reset(said{s.commits.Load(), had.jobs}); err != nil {
		return "", s.explain("accept", err)
	}
	return fmt.Sprintf("the next job is %d", had.jobs+1), nil
}

// lastRun returns the highest number of a run of the daemon of which there is an event log.
func (s *Store) lastRun() (last int64) {
	for _, name := range namesIn(filepath.Join(filepath.Dir(s.path), "events")) {
		number, _, _ := strings.Cut(name, ".")
		if run, err := strconv.ParseInt(number, 10, 64); err == nil {
			last = max(last, run)
		}
	}
	return last
}

// unreadable is the error of a row that does not contain what was written.
type unreadable struct{ error }

// Unwrap returns the reason.
func (e *unreadable) Unwrap() error { return e.error }

// damage reports whether an error says that the content of the store is damaged, and how, in printable words: SQLite
// quotes what it finds.
func damage(err error) (text string, damaged bool) {
	if row, ok := errors.AsType[*unreadable](err); ok {
		return printable(row.Error()), true
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return "", false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT:
		return "its pages contradict each other", true
	case sqlite3.SQLITE_NOTADB:
		return "it is not a database", true
	case sqlite3.SQLITE_ERROR: // of a query that reads every sound store
		return printable(e.Error()), true
	}
	return "", false
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
