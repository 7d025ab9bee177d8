package agent

import (
	"bytes"
	"github.com/bellows-rm/bellows/node/keeper"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
)

// A supervisor tries to record the end for as long as there is a daemon, and a minute beyond.
func TestSupervisorGivesUpWhereNothingCanBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		record(func() error { return unix.EROFS }, func() bool { return time.Since(begun) < time.Hour })
		if took := time.Since(begun); took < time.Hour || took > time.Hour+recordWait {
			t.Errorf("it gave up after %v", took)
		}
		begun = time.Now()
		record(func() error {
			if time.Since(begun) < 30*time.Second {
				return unix.ENOSPC
			}
			return nil
		}, func() bool { return false })
		if took := time.Since(begun); took != 30*time.Second {
			t.Errorf("it recorded after %v", took)
		}
	})
}

// A lease that ran out, of another start of the machine, or from the future is none. The time of the file, which a
// clock that is set changes, does not count.
func TestLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	if leased(path) {
		t.Error("there is none")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if leased(path) {
		t.Error("it is empty")
	}
	for _, c := range []struct {
		age  time.Duration
		want bool
	}{{0, true}, {-time.Hour, false}, {time.Hour, false}} {
		if got := leased(agedLease(t, filepath.Join(t.TempDir(), "lease"), c.age)); got != c.want {
			t.Errorf("a lease of %v since the start ago: %v", c.age, got)
		}
	}
	l := &lease{path: path}
	for _, before := range []string{"none", "", "of an earlier start " + string(leaseAt(keeper.SinceBoot())),
		string(leaseAt(keeper.SinceBoot() - time.Hour))} {
		if before != "none" {
			if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			past := time.Now().Add(-time.Hour)
			if err := os.Chtimes(path, past, past); err != nil {
				t.Fatal(err)
			}
			if leased(path) {
				t.Errorf("%q counts", before)
			}
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		l.renew()
		set := time.Now().Add(-time.Hour) // as if the clock had been set
		if err := os.Chtimes(path, set, set); err != nil {
			t.Fatal(err)
		}
		if !leased(path) {
			t.Errorf("%q was renewed, and is %q", before, read(t, path))
		}
	}
}

// That the lease cannot be renewed is logged when it begins: the agent tries every two seconds, for as long as its
// state directory is away.
func TestLeaseWithoutDirectory(t *testing.T) {
	var said bytes.Buffer
	l := &lease{path: filepath.Join(t.TempDir(), "state", "lease")}
	l.log = slog.New(slog.NewTextHandler(&said, nil))
	defer l.close()
	for round := 1; round <= 2; round++ {
		for range 5 {
			l.renew()
		}
		if got := strings.Count(said.String(), "cannot renew the lease"); got != round {
			t.Errorf("of %d times that it began to fail, %d were logged", round, got)
		}
		if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
			t.Fatal(err)
		}
		if l.renew(); !leased(l.path) {
			t.Error("it is not renewed once its directory is there")
		}
		if err := os.RemoveAll(filepath.Dir(l.path)); err != nil {
			t.Fatal(err)
		}
	}
}

// An agent without a descriptor to spare renews its lease, and a supervisor that cannot read the lease goes by the
// one that it has read last, for as long as that lasts.
func TestLeaseWithoutDescriptors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lease")
	held := &lease{path: path, log: slog.New(slog.DiscardHandler)}
	for range 2 { // The first makes the file, and the second opens it.
		held.renew()
	}
	defer held.close()
	before := read(t, path)
	restore := withoutFiles(t)
	held.renew()
	restore()
	if after := read(t, path); after <= before {
		t.Errorf("the lease is %q, and was %q", after, before)
	}
	l := lookout{f: folder(dir), s: &spec{Lease: path}}
	l.look()
	unreadable(t, path)
	for range 3 {
		if l.look(); l.expired {
			t.Error("a lease that cannot be read has expired")
		}
	}
	l.read -= leaseTerm
	if l.look(); !l.expired {
		t.Error("a lease that cannot be read lasts for ever")
	}
}

// agedLease makes a lease at path that was renewed so long ago, and returns the path.
func agedLease(t *testing.T, path string, age time.Duration) string {
	t.Helper()
	if err := os.WriteFile(path, leaseAt(keeper.SinceBoot()-age), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// An agent leaves the groups of another alone that lives, even if the state directory was made anew: its programs go
// on.
func TestSecondAgentOfTheSameGroups(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", "echo begun; exec sleep 1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.awaitOutput(o, "begun\n")
	second, err := Open(Config{Dir: b.dir})
	if err == nil {
		second.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "another bellows has the control groups") {
		t.Fatalf("opened with %v", err)
	}
	if names, err := b.groups.root.List(); err != nil || len(names) != 2 {
		t.Errorf("groups %v %v", names, err)
	}
	b.reopen() // After it is closed, any process may take it.
}
