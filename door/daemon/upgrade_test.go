package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/live"
)

// recorded returns a copy of the state directory that an earlier release left behind.
func recorded(t *testing.T, release string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", release))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A daemon opens the state directory of an earlier release, after the machine was restarted: jobs that had ended are
// known as before, running tasks are lost, and waiting tasks run.
func TestUpgrade(t *testing.T) {
	c := config(t, recorded(t, "release1"))
	c.Driver.HasSwap = func() (bool, error) { return true, nil }
	p, err := policy.New("yarn-me", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Driver.Policy, c.Agent.Capacity = p, resource.Of(2000, 256*resource.MiB)
	d := open(t, c)
	ended := func(id cluster.JobID) live.Job {
		t.Helper()
		j, err := d.Driver.Wait(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	for id, want := range map[cluster.JobID]string{1: "hello succeeded 0", 2: "fails failed 3", 3: "cancelled cancelled 143"} {
		if j := ended(id); j.ExitCode == nil || fmt.Sprint(j.Name, " ", j.Status, " ", *j.ExitCode) != want {
			t.Errorf("job %d is %s, %s, %v; want %s", id, j.Name, j.Status, j.ExitCode, want)
		}
	}
	for _, id := range []cluster.JobID{4, 5} {
		j := ended(id)
		if j.Status != cluster.StatusFailed || len(j.Tasks) != 1 || j.Tasks[0].Run != 1 || j.Tasks[0].Outcome != cluster.Lost {
			t.Errorf("job %d, which ran, is %s with tasks %+v", id, j.Status, j.Tasks)
		}
	}
	for _, id := range []cluster.JobID{6, 7} {
		if j := ended(id); j.Status != cluster.StatusSucceeded {
			t.Errorf("job %d, which was queued, is %s: %s", id, j.Status, j.Detail)
		}
	}
	if err := d.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// A new engine that handles the event log of an earlier release takes the decisions in the log. Release 1 recorded no
// envelopes.
func TestReplayOfAnEarlierRelease(t *testing.T) {
	for _, release := range []string{"release1", "release2"} {
		t.Run(release, func(t *testing.T) { replayRelease(t, release) })
	}
}

func replayRelease(t *testing.T, release string) {
	name := filepath.Join("testdata", release, "events", "000001.jsonl")
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := eventlog.NewReader(f, name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(r.Header.Policy, r.Header.Settings)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(throttling{p}, r.Header.Configure)
	var decided []cluster.Decision
	all := 0
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if record.Decisions == nil {
			if len(decided) > 0 {
				t.Fatalf("at %v it decides %+v, and had decided nothing", record.Now, decided)
			}
			if decided, err = e.Step(record.Now, record.Events...); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for i := range decided {
			if release == "release1" {
				decided[i].Envelope = cluster.Envelope{}
			}
		}
		if !reflect.DeepEqual(decided, record.Decisions) {
			t.Fatalf("at %v it decides\n%+v, and had decided\n%+v", record.Now, decided, record.Decisions)
		}
		decided, all = nil, all+len(record.Decisions)
	}
	if all < 5 {
		t.Errorf("only %d decisions were replayed", all)
	}
}

// A daemon takes over a running container whose record was written by an earlier release. The supervisor is of this
// release, because a test cannot get the program of the earlier one. What a supervisor and a daemon share, which is the
// lock, the record and the control group, is as in the earlier release.
func TestUpgradeUnderRunningJobs(t *testing.T) {
	c := config(t, t.TempDir())
	c.Driver.HasSwap = func() (bool, error) { return true, nil }
	d := open(t, c)
	flex := live.Submission{
		Job: cluster.Job{Name: "flex", Class: cluster.Flex, Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(100, 16*resource.MiB), MaxMemory: 64 * resource.MiB,
			Command: cluster.Command{Args: []string{"sh", "-c", "echo begun; exec sleep 1000"}}}}},
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/",
		Caller: cluster.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}}
	flexJob, err := d.Driver.Submit(t.Context(), flex)
	if err != nil {
		t.Fatal(err)
	}
	ids := []cluster.JobID{submit(t, d, "echo begun; exec sleep 1000"), flexJob}
	for _, id := range ids {
		if _, err := d.Driver.WaitTask(t.Context(), cluster.TaskID{Job: id}, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		container := cluster.ContainerID{Task: cluster.TaskID{Job: id}, Run: 1}
		makeOld(t, filepath.Join(c.State, "containers", container.String(), "spec.json"))
	}
	d = open(t, c)
	for _, id := range ids {
		task, err := d.Driver.WaitTask(t.Context(), cluster.TaskID{Job: id}, false)
		if err != nil || task.Run != 1 || task.State != live.TaskRunning {
			t.Errorf("the task of job %d is %+v, %v", id, task, err)
		}
	}
	j, err := d.Driver.Job(t.Context(), flexJob, true)
	if err != nil || j.Tasks[0].Usage == nil || j.Tasks[0].Usage.State != cluster.ContainerRunning {
		t.Errorf("nobody manages the memory of the FLEX container: %+v, %v", j.Tasks, err)
	}
	remove(t, d)
}

// makeOld gives a container's record the form in which release 1 wrote it.
func makeOld(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	envelope, launch := record["envelope"].(map[string]any), record["launch"].(map[string]any)
	delete(record, "envelope")
	delete(record, "supervisor")
	if launch["class"] = envelope["class"]; launch["class"] == cluster.Flex.String() {
		launch["breathing"] = map[string]any{"max_memory_bytes": envelope["max_memory_bytes"], "rank": envelope["rank"]}
	}
	if text, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
