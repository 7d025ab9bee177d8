package daemon_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/daemon"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/node/agent"
)

// TestMain lets this test program be a supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == agent.SuperviseCommand {
		syscall.Exit(agent.Supervise(os.Args[2:])) // os.Exit would sleep for a second with the race detector.
	}
	os.Exit(m.Run())
}

func config(t *testing.T, state string) daemon.Config {
	t.Helper()
	p, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	return daemon.Config{State: state, Socket: filepath.Join(state, "socket"), Version: "test",
		Log:   slog.New(slog.NewTextHandler(t.Output(), nil)),
		Agent: agent.Config{Node: "n1", Capacity: resource.Of(2000, 512*resource.MiB)}, Driver: live.Config{Policy: p}}
}

// open opens a daemon, or skips the test where containers are not possible.
func open(t *testing.T, c daemon.Config) *daemon.Daemon {
	t.Helper()
	d, err := daemon.Open(c)
	if _, ok := errors.AsType[*agent.NoCgroupError](err); ok {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// remove ends what runs, and removes the daemon's control groups.
func remove(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	if err := d.Driver.Shutdown(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func submit(t *testing.T, d *daemon.Daemon, script string) cluster.JobID {
	t.Helper()
	id, err := d.Driver.Submit(t.Context(), live.Submission{
		Job: cluster.Job{Name: "job", Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(100, 16*resource.MiB),
			Command: cluster.Command{Args: []string{"sh", "-c", script}}}}},
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/",
		Caller: cluster.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Containers outlive a daemon that is closed, and the next daemon finds them. A daemon that is removed leaves nothing.
func TestOpenCloseRemove(t *testing.T) {
	c := config(t, t.TempDir())
	d := open(t, c)
	if _, err := daemon.Open(c); err == nil || !strings.Contains(err.Error(), "state") {
		t.Errorf("a second daemon of a state directory: %v", err)
	}
	id := submit(t, d, "exec sleep 1000")
	if _, err := d.Driver.WaitTask(t.Context(), cluster.TaskID{Job: id}, false); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, c)
	client := client.New(c.Socket)
	if s, err := client.Status(t.Context()); err != nil || s.Version != "test" || s.Running != 1 {
		t.Errorf("status is %+v, %v", s, err)
	}
	served := make(chan error, 1)
	go func() { served <- d.Serve(t.Context()) }()
	if err := client.Shutdown(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// A daemon that cannot be opened leaves nothing open.
func TestOpenFails(t *testing.T) {
	c := config(t, t.TempDir())
	if err := os.Mkdir(c.Socket, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Open(c); err == nil || !strings.Contains(err.Error(), "the path exists and is no socket") {
		t.Fatalf("error is %v", err)
	}
	if err := os.Remove(c.Socket); err != nil {
		t.Fatal(err)
	}
	d := open(t, c)
	if err := d.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// Executors that are kept are no jobs that keep the daemon from ending for good; the next daemon has the pool again.
func TestDownWithPool(t *testing.T) {
	c := config(t, t.TempDir())
	d := open(t, c)
	by := cluster.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	kept := api.PoolSpec{Name: "p", Command: []string{"sleep", "1000"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/",
		Min: 1, Max: 1, CPU: 100, Memory: 16 * resource.MiB}
	if created, err := d.Pools.Put(t.Context(), by, api.OwnerOf(by), kept); err != nil || !created {
		t.Fatal(created, err)
	}
	awaitExecutor(t, d)
	served := make(chan error, 1)
	go func() { served <- d.Serve(t.Context()) }()
	job := submit(t, d, "exec sleep 1000")
	client := client.New(c.Socket)
	if err := client.Shutdown(t.Context(), false); api.KindOf(err) != api.Conflict {
		t.Errorf("with a job: %v", err)
	}
	if err := d.Driver.Cancel(t.Context(), by, job); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Driver.Wait(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if err := client.Shutdown(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	d = open(t, c)
	awaitExecutor(t, d)
	remove(t, d)
}

// awaitExecutor waits until a daemon has a pool with an executor whose program runs.
func awaitExecutor(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	for revision := int64(0); ; {
		u, err := d.Driver.Changes(t.Context(), revision)
		if err != nil {
			t.Fatal(err)
		}
		revision = u.Revision
		for _, j := range u.Jobs {
			if j.App == "pool/p" && !j.Started.IsZero() && !j.Ended {
				return
			}
		}
	}
}

// A daemon that cannot write the mark of its store beside the state directory says so in its log.
func TestMarkThatIsNotBeside(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(state+store.Mark, 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	c := config(t, state)
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	d := open(t, c)
	remove(t, d)
	if !strings.Contains(log.String(), "the mark of the store is in the state directory") {
		t.Errorf("the log says\n%s", log.String())
	}
}
