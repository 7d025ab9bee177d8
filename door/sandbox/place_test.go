package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/node/agent"
)

// TestMain lets the test program be the supervisor of containers that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == agent.SuperviseCommand {
		os.Exit(agent.Supervise(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// TestNoRoom: without disk space the part is left out.
func TestNoRoom(t *testing.T) {
	_, err := Make(t.TempDir(), 1<<62)
	if _, ok := errors.AsType[NoRoomError](err); !ok {
		t.Errorf("%v", err)
	}
}

// TestSweep removes what a killed demonstration has left, its containers included, and nothing of a live one.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	dead, err := Make(parent, 0)
	if err != nil {
		t.Fatal(err)
	}
	alive, err := Make(parent, 0)
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(parent, prefix+"foreign")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	running := false
	if why := NoContainers(t.Context(), alive.Dir); why == "" {
		running = true
		m, err := Open(dead.Dir, "fair", nil, resource.Of(2*resource.Core, 384*resource.MiB))
		if err != nil {
			t.Fatal(err)
		}
		stage := cluster.Stage{Tasks: 1, Ideal: resource.Of(100, 32*resource.MiB),
			Command: cluster.Command{Args: []string{"sleep", "100"}}}
		id, err := m.Driver.Submit(t.Context(),
			live.Submission{Job: cluster.Job{Name: "left", Stages: []cluster.Stage{stage}}, Caller: Caller(),
				Env: Environment(), Dir: parent})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Driver.WaitTask(t.Context(), cluster.TaskID{Job: id}, false); err != nil {
			t.Fatal(err)
		}
		// As if the process had been killed.
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dead.lock.Close()
	swept, err := Sweep(t.Context(), parent)
	if err != nil || swept != 1 {
		t.Errorf("swept %d, %v; want 1", swept, err)
	}
	left, _ := filepath.Glob(filepath.Join(parent, "*"))
	if want := strings.Join([]string{alive.Dir, foreign}, " "); len(left) != 2 || !strings.Contains(want, left[0]) ||
		!strings.Contains(want, left[1]) {
		t.Errorf("left are %v, want %s", left, want)
	}
	if err := alive.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("with a container that ran: %t", running)
}
