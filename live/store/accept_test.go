package store

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
)

// used is a store with jobs 1 to 3, whose last changes are in its write-ahead log alone, as a daemon that was killed
// leaves it.
func used(t *testing.T) (dir string) {
	t.Helper()
	whole := filepath.Join(t.TempDir(), "state")
	s := open(t, whole)
	for range 3 {
		if _, err := s.AddJob(t.Context(), sample("old")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Write(t.Context(),
		Batch{Jobs: map[cluster.JobID]JobState{1: {Status: cluster.StatusSucceeded, Ended: true}}}); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{whole + Mark: dir + Mark,
		filepath.Join(whole, File): filepath.Join(dir, File), filepath.Join(whole, File+"-wal"): filepath.Join(dir,
			File+"-wal")} {
		copyFile(t, from, to)
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// overwrite writes into a file at an offset in bytes.
func overwrite(t *testing.T, path string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte(text), at)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A store that is not what it was is refused in one sentence that says what to do, as often as it is opened, and
// nothing is changed. Once it is accepted, it goes on with numbers that were never used, and what was damaged is
// kept.
func TestStoreThatIsNotWhatItWas(t *testing.T) {
	db := func(dir string) string { return filepath.Join(dir, File) }
	for _, c := range []struct {
		name string
		do   func(t *testing.T, dir string)
		says string // between "open the store ...: " and what to do
		kept bool   // under another name
		jobs int
	}{
		{"lost", func(t *testing.T, dir string) {
			remove(t, db(dir))
		}, `it is missing, and .*\.mark says that it has had 4 changes`, true, 0},
		{"lost with its log", func(t *testing.T, dir string) { remove(t, db(dir), db(dir)+"-wal") },
			`it is missing, and .* 4 changes`, false, 0},
		{"lost with its log and the mark", func(t *testing.T, dir string) {
			remove(t, db(dir), db(dir)+"-wal", dir+Mark)
			mkdir(t, filepath.Join(dir, "logs", "3"))
		}, `it is missing, and output of job 3 is in .*/logs/3`, false, 0},
		{"lost with the state directory", func(t *testing.T, dir string) { remove(t, dir) },
			`it is missing, and .* 4 changes`, false, 0},
		{"emptied", func(t *testing.T, dir string) {
			if err := os.Truncate(db(dir), 0); err != nil {
				t.Fatal(err)
			}
		}, `it is empty, and .* 4 changes`, true, 0},
		{"log lost", func(t *testing.T, dir string) {
			remove(t, db(dir)+"-wal")
		}, `its last 4 changes are missing, which .*\.mark counts`, false, 0},
		{"log overwritten", func(t *testing.T, dir string) { overwrite(t, db(dir)+"-wal", 32, strings.Repeat("x", 8192)) },
			`its last 4 changes are missing, .*`, false, 0},
		{"end of the log overwritten", func(t *testing.T, dir string) {
			info, err := os.Stat(db(dir) + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, db(dir)+"-wal", info.Size()-100, strings.Repeat("x", 100))
		}, `its last 1 changes are missing, .*`, false, 3},
		{"behind a container", func(t *testing.T, dir string) { mkdir(t, filepath.Join(dir, "containers", "9-0-4-1")) },
			`its last job is 3, and a container of job 9 is in .*/containers/9-0-4-1`, false, 3},
		{"begins otherwise", func(t *testing.T, dir string) {
			if err := open(t, dir).Close(); err != nil {
				t.Fatal(err)
			}
			overwrite(t, db(dir), 0, "\x13sta\xee")
		}, `it is damaged \(it is not a database\)`, true, 0},
		{"a request overwritten", func(t *testing.T, dir string) {
			s := open(t, dir)
			if _, err := s.db.Exec("UPDATE jobs SET request = '{' || char(19) WHERE id = 2"); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}, "", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := used(t)
			c.do(t, dir)
			for range 2 {
				s, err := Open(dir)
				if err == nil && c.says == "" { // found out when it is read
					_, err = s.OpenJobs(t.Context())
					if !errors.Is(err, ErrDamaged) || !strings.HasPrefix(err.Error(), "read the store "+db(dir)+": it is damaged (") {
						t.Errorf("read with %v", err)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					continue
				}
				want := "^open the store " + regexp.QuoteMeta(db(dir)) + ": " + c.says +
					": restore .*`bellows up --accept-store`[^`]*$"
				if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
					t.Fatalf("opened with %v\nwant %s", err, want)
				}
			}
			changed, err := Accept(dir)
			if err != nil || len(changed) == 0 {
				t.Fatalf("accepted with %q, %v", changed, err)
			}
			s := open(t, dir)
			jobs, err := s.List(t.Context(), 0, 10)
			if err != nil || len(jobs) != c.jobs {
				t.Errorf("%d jobs, %v", len(jobs), err)
			}
			id, err := s.AddJob(t.Context(), sample("new"))
			if least := cluster.JobID(map[bool]int{false: 4, true: 10}[c.name == "behind a container"]); err != nil ||
				id < least || id > 3+2*markBlock {
				t.Errorf("the next job is %d, %v", id, err)
			}
			kept, err := filepath.Glob(db(dir) + ".damaged-*")
			if err != nil || (len(kept) > 0) != c.kept {
				t.Errorf("kept %q, %v", kept, err)
			}
			if again, err := Accept(dir + "-of-nobody"); err != nil || len(again) != 0 {
				t.Errorf("accepted a new store with %q, %v", again, err)
			}
		})
	}
}

// A state directory that was removed on purpose begins anew by what the refusal says, once.
func TestStateRemovedOnPurpose(t *testing.T) {
	dir := used(t)
	remove(t, dir)
	_, err := Open(dir)
	if err == nil || !strings.Contains(err.Error(), "it is missing, and ") || !strings.HasSuffix(err.Error(),
		"if it was removed or replaced on purpose, go on without what it lacks by `bellows up --accept-store`") {
		t.Errorf("opened with %v", err)
	}
	if _, err := Accept(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := open(t, dir).Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// Where the mark cannot be beside the state directory it is in there, and a file of another user says nothing.
func TestMarkElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir+Mark, []byte("commits                    7\njobs                       9\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir+Mark, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if id, err := s.AddJob(t.Context(), sample("a")); err != nil || id != 1 {
		t.Fatalf("job %d, %v", id, err)
	}
	if err := s.Unmarked(); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("why the mark is elsewhere: %v", err)
	}
	if found := readMark(filepath.Join(dir, "mark")); found != (said{1, 1 + markBlock}) {
		t.Errorf("the mark says %+v", found)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	remove(t, filepath.Join(dir, File))
	if _, err := Open(dir); !errors.Is(err, ErrBehind) {
		t.Errorf("opened with %v", err)
	}
}

// Numbers are reserved in blocks, before they are in use, and a store that is opened again goes on without a gap.
func TestNumbersAreReserved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for want := cluster.JobID(1); want < 3; want++ {
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if id, err := s.AddJob(t.Context(), sample("a")); err != nil || id != want {
			t.Errorf("job %d, %v", id, err)
		}
		if found := readMark(dir + Mark); found != (said{int64(want), 1 + markBlock}) {
			t.Errorf("after job %d the mark says %+v", want, found)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir)
	many := make([]Job, 2*markBlock)
	for i := range many {
		many[i] = sample("b")
	}
	if first, _, err := s.AddJobs(t.Context(), many, nil); err != nil || first != 3 {
		t.Fatalf("job %d, %v", first, err)
	}
	if found := readMark(dir + Mark); found.jobs < 2+2*markBlock {
		t.Errorf("the mark says %+v", found)
	}
}

// A store that a killed process has left is opened on a disk without any space, where it can be read by several at
// once. Once there is space, it can be written, too.
func TestOpenOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, "size=1m", 0)
	from, state := used(t), filepath.Join(dir, "state")
	mkdir(t, state)
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, ending := range []string{"", "-wal"} {
		copyFile(t, filepath.Join(from, File+ending), filepath.Join(state, File+ending))
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	s, err := Open(state)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() // before the file system goes
	if _, err := s.AddJob(t.Context(), sample("new")); !errors.Is(err, ErrFull) {
		t.Errorf("added with %v", err)
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			if jobs, err := s.OpenJobs(t.Context()); err != nil || len(jobs) != 2 {
				t.Errorf("%d jobs, %v", len(jobs), err)
			}
		})
	}
	readers.Wait()
	remove(t, ballast)
	if id, err := s.AddJob(t.Context(), sample("new")); err != nil || id != 4 {
		t.Errorf("job %d, %v", id, err)
	}
	if jobs, err := s.OpenJobs(t.Context()); err != nil || len(jobs) != 3 {
		t.Errorf("%d jobs, %v", len(jobs), err)
	}
}
