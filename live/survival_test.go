package live_test

// These tests run the driver with the real agent, in a process of its own that is killed repeatedly. Test files may
// import both packages, which do not import each other.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/daemon"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/node/agent"
)

// TestMain lets this test program run as a supervisor or as a daemon.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == agent.SuperviseCommand:
		doom("supervisor", filepath.Dir(filepath.Dir(os.Args[len(os.Args)-1])))
		syscall.Exit(agent.Supervise(os.Args[2:])) // os.Exit would sleep for a second with the race detector.
	case len(os.Args) == 4 && os.Args[1] == "daemon":
		doom("daemon", os.Args[2])
		if err := obey(os.Args[2], os.Args[3]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) == 2 && os.Args[1] == "allocate":
		block := make([]byte, 200<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// ask is a line that a daemon of these tests reads, answer the line with which it replies.
type ask struct {
	Submit *live.Submission `json:",omitempty"`
	Cancel cluster.JobID    `json:",omitempty"`
	Pause  cluster.JobID    `json:",omitempty"` // and wait for a moment until its first task stands still
	Resume cluster.JobID    `json:",omitempty"`
	Shift  cluster.JobID    `json:",omitempty"` // wait until leveling has stopped a task of the job, or the job has ended
	Wait   cluster.JobID    `json:",omitempty"`
	Jobs   bool             `json:",omitempty"`
	Prune  time.Duration    `json:",omitempty"` // remove jobs that ended longer ago than this
	Tidy   bool             `json:",omitempty"` // remove the control groups, and end
}

type answer struct {
	ID    cluster.JobID `json:",omitempty"`
	Jobs  []api.Job     `json:",omitempty"`
	Error string        `json:",omitempty"`
}

// tiny lets event logs go on in another segment every 8 kB or so.
var tiny = &retention.Rule{For: 1000 * time.Hour, Events: 48_000}

// obey opens a daemon and carries out requests until its input ends, or it is killed.
func obey(dir, name string) error {
	p, err := policy.New(name, brisk)
	if err != nil {
		return err
	}
	d, err := daemon.Open(daemon.Config{State: dir, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Agent:  agent.Config{Node: "n1", Capacity: resource.Of(4000, 512*resource.MiB), Grace: 100 * time.Millisecond},
		Driver: live.Config{Policy: slowing{p}, Settings: brisk, Keep: tiny}})
	if err != nil {
		return err
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var q ask
		if err := in.Decode(&q); err != nil {
			return d.Close()
		}
		reply, err := serve(d.Driver, &q)
		if q.Tidy {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			err = d.Remove(ctx)
		}
		if err != nil {
			reply.Error = err.Error()
		}
		if err := out.Encode(reply); err != nil || q.Tidy {
			return err
		}
	}
}

// slowing is a policy that also throttles each task of jobs named "slowed" once it runs, resizes those of jobs named
// "resized", and lets those of jobs named "leveled" stand still soon after they began: for as long as the name says.
type slowing struct{ policy.Policy }

// lasting is how long the name of a job says that something lasts, such as "slowed for 5s".
func lasting(name string, byDefault time.Duration) time.Duration {
	_, text, _ := strings.Cut(name, " for ")
	text, _, _ = strings.Cut(text, " ")
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return byDefault
}

// cue returns since when a task may be throttled, resized and leveled: since it runs and, if the name of its job ends
// in "with kept", since its owner also holds the task of the job named "kept".
func cue(p *book.Plan, j *book.JobState, t *book.TaskState) (since timeline.Time, ok bool) {
	if !strings.HasSuffix(j.Name, " with kept") {
		return t.Launched, t.Running
	}
	for _, other := range p.Jobs {
		if other.Name == "kept" && len(other.Tasks) > 0 && other.Tasks[0].Suspended &&
			other.Tasks[0].SuspendedBy&cluster.HeldByOwner != 0 {
			return max(t.Launched, other.Tasks[0].SuspendedSince), t.Running
		}
	}
	return 0, false
}

func (s slowing) Decide(now timeline.Time, p *book.Plan) {
	s.Policy.Decide(now, p)
	for _, j := range p.Jobs {
		for _, t := range j.Tasks {
			since, ok := cue(p, j, t)
			switch _, held := t.HeldUntil(); {
			case !ok:
			case strings.HasPrefix(j.Name, "slowed") && t.Throttled == nil:
				p.Throttle(t, resource.Vector{}.With(resource.Disk, resource.MB), now.Add(lasting(j.Name, time.Hour)),
					cluster.BecauseNodePressure(resource.Disk, resource.MB, 2*resource.MB))
			case j.Name == "resized" && t.Resized == nil:
				p.Resize(t, t.Grant.With(resource.CPU, 2*t.Grant[resource.CPU]).With(resource.Memory, t.Grant[resource.Memory]+
					resource.MiB), cluster.BecausePhaseDemands(0, t.Grant))
			case strings.HasPrefix(j.Name, "leveled") && !held && now < since.Add(60*time.Millisecond):
				p.SuspendUntil(t, now.Add(lasting(j.Name, 100*time.Millisecond)), cluster.TaskID{},
					cluster.BecauseNodePressure(resource.CPU, resource.Core, resource.Core))
			}
		}
	}
}

func serve(d *live.Driver, q *ask) (answer, error) {
	ctx := context.Background()
	me := cluster.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	switch {
	case q.Submit != nil:
		q.Submit.Caller = me
		id, err := d.Submit(ctx, *q.Submit)
		return answer{ID: id}, err
	case q.Cancel != 0:
		return answer{}, d.Cancel(ctx, me, q.Cancel)
	case q.Pause != 0:
		err := d.Pause(ctx, me, q.Pause, cluster.TaskID{}, false)
		for end := time.Now().Add(2 * time.Second); err == nil && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if j, err := d.Job(ctx, q.Pause, false); err != nil || j.Ended || len(j.Tasks) > 0 && j.Tasks[0].Suspended != nil {
				break
			}
		}
		return answer{}, err
	case q.Resume != 0:
		return answer{}, d.Resume(ctx, me, q.Resume, cluster.TaskID{})
	case q.Shift != 0:
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if j, err := d.Job(ctx, q.Shift, false); err != nil || j.Ended || shifted(&j) || time.Now().After(end) {
				return answer{Jobs: []api.Job{j}}, err
			}
		}
	case q.Wait != 0:
		j, err := d.Wait(ctx, q.Wait)
		return answer{Jobs: []api.Job{j}}, err
	case q.Prune != 0:
		_, err := d.Prune(ctx, retention.Rule{For: q.Prune}, false)
		return answer{}, err
	case q.Jobs:
		jobs, err := d.JobsAfter(ctx, 0, 1_000_000)
		for i := range jobs {
			if err == nil {
				jobs[i], err = d.Job(ctx, jobs[i].ID, false)
			}
		}
		return answer{Jobs: jobs}, err
	}
	return answer{}, nil
}

// process is a daemon in a process of its own.
type process struct {
	t       *testing.T
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	errors  *strings.Builder
}

func startDaemon(t *testing.T, dir, policy string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, command: exec.Command(self, "daemon", dir, policy), errors: &strings.Builder{}}
	p.command.Stderr = p.errors
	if p.in, err = p.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// ask returns the reply; ok is false if the daemon is gone.
func (p *process) ask(q ask) (reply answer, ok bool) {
	p.t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		p.t.Fatal(err)
	}
	_, _ = p.in.Write(append(text, '\n')) // If the daemon is gone, the answer says so.
	line, err := p.out.ReadString('\n')
	if err != nil {
		return answer{}, false
	}
	if err := json.Unmarshal([]byte(line), &reply); err != nil {
		p.t.Fatalf("the daemon says %s%s", line, p.errors)
	}
	return reply, true
}

// mustAsk is ask for a daemon that must be running.
func (p *process) mustAsk(q ask) answer {
	p.t.Helper()
	reply, ok := p.ask(q)
	if !ok || reply.Error != "" {
		p.t.Fatalf("asked %+v: %v %s; log:\n%s", q, ok, reply.Error, p.errors)
	}
	return reply
}

func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// needCgroups skips a test where containers cannot run.
func needCgroups(t *testing.T) {
	t.Helper()
	a, err := agent.Open(agent.Config{Dir: t.TempDir(), Capacity: resource.Of(1, 1)})
	if err != nil {
		t.Skipf("needs a control group with a memory controller: %v", err)
	}
	if err := a.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// kind is a kind of job, by name: its tasks' scripts, and the expected end.
type kind struct {
	tasks   int
	script  string
	memory  resource.Amount
	code    int
	outcome string
	status  string
	output  string
}

// once makes a script exit with 99 if the same task is run a second time.
const once = `mkdir "$RAN/$BELLOWS_JOB-$BELLOWS_TASK" || exit 99; `

func (k *kind) submission(t *testing.T, name, ran string) *live.Submission {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &live.Submission{
		Job: cluster.Job{Name: name, Stages: []cluster.Stage{{Tasks: k.tasks, Ideal: resource.Of(100, k.memory),
			Command: cluster.Command{Args: []string{"sh", "-c", once + k.script}}}}},
		Env: []string{"PATH=/usr/bin:/bin", "RAN=" + ran, "SELF=" + self}, Dir: "/",
	}
}

func kinds(random *rand.Rand) map[string]*kind {
	code := 1 + random.IntN(98)
	pause := func() string { return fmt.Sprintf("sleep 0.%03d; ", random.IntN(400)) }
	return map[string]*kind{
		"good": {1 + random.IntN(4), "echo begun; " + pause() + "echo done", 16 * resource.MiB, 0, "succeeded", "succeeded",
			"begun\ndone\n"},
		"bad": {1, "echo begun; " + pause() + fmt.Sprintf("exit %d", code), 16 * resource.MiB, code, "failed", "failed",
			"begun\n"},
		"big":  {1, pause() + `exec "$SELF" allocate`, 32 * resource.MiB, 137, "out-of-memory", "failed", ""},
		"gone": {1, "exec no-such-program", 16 * resource.MiB, 127, "failed", "failed", ""},
		"long": {1, "echo begun; exec sleep 1000", 16 * resource.MiB, 143, "killed", "cancelled", "begun\n"},
	}
}

// A daemon killed at any moment loses nothing: every job that it acknowledged is run, every task exactly once, and
// every exit code and all output is kept.
func TestKilledDaemonLosesNothing(t *testing.T) {
	needCgroups(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir, ran := t.TempDir(), t.TempDir()
	expected := map[string]*kind{}
	reported := map[string]cluster.JobID{}
	cancelled := map[string]bool{}
	const rounds = 25
	for round := range rounds {
		p := startDaemon(t, dir, "fair")
		doomed := time.AfterFunc(time.Duration(random.IntN(250))*time.Millisecond, func() { _ = p.command.Process.Kill() })
		for n := range 1 + random.IntN(4) {
			all := kinds(random)
			names := []string{"good", "good", "good", "bad", "big", "gone", "long"}
			what := names[random.IntN(len(names))]
			name := fmt.Sprintf("%s-%d-%d", what, round, n)
			expected[name] = all[what]
			reply, ok := p.ask(ask{Submit: all[what].submission(t, name, ran)})
			if !ok {
				break
			}
			if reply.Error != "" {
				t.Fatalf("round %d: %s", round, reply.Error)
			}
			reported[name] = reply.ID
			if what != "long" {
				continue
			}
			// Half of these jobs are cancelled now, whether they still run or not.
			if random.IntN(2) == 0 {
				time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
				if _, ok := p.ask(ask{Cancel: reply.ID}); !ok {
					break
				}
				cancelled[name] = true
			}
		}
		_ = p.command.Wait() // It is killed sooner or later.
		doomed.Stop()
	}

	p := startDaemon(t, dir, "fair")
	jobs := p.mustAsk(ask{Jobs: true}).Jobs
	for _, j := range jobs {
		if strings.HasPrefix(j.Name, "long") && !j.Ended && !cancelled[j.Name] {
			p.mustAsk(ask{Cancel: j.ID})
		}
	}
	for i, j := range jobs {
		jobs[i] = p.mustAsk(ask{Wait: j.ID}).Jobs[0]
	}
	tasks := 0
	for _, j := range jobs {
		k := expected[j.Name]
		if id, ok := reported[j.Name]; ok && id != j.ID {
			t.Errorf("job %s was said to be %d, but is %d", j.Name, id, j.ID)
		}
		delete(reported, j.Name)
		tasks += len(j.Tasks)
		verify(t, dir, &j, k)
	}
	for name, id := range reported {
		t.Errorf("job %s (%d) is lost", name, id)
	}
	if t.Failed() {
		t.Log(p.errors)
	}
	t.Logf("%d kills, %d jobs, %d tasks", rounds, len(jobs), tasks)
	replayAll(t, dir)
	p.mustAsk(ask{Tidy: true})
	if err := p.command.Wait(); err != nil {
		t.Error(err)
	}
}

// replayAll passes every log that the daemons left to another engine, which must take the same decisions. A log may end
// in the middle of its last step.
func replayAll(t *testing.T, dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "events", "*.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("event logs %v: %v", paths, err)
	}
	records := 0
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			continue // It was killed before it had written a header.
		}
		header, log := live.ReadLog(t, path)
		records += len(log)
		if at, ok := live.ReplayBy(t, header, log, func(p policy.Policy) policy.Policy { return slowing{p} }); !ok &&
			at < len(log)-1 {
			t.Errorf("%s: record %d of %d came out differently", path, at, len(log))
		}
	}
	t.Logf("%d event logs with %d records", len(paths), records)
}

func verify(t *testing.T, dir string, j *api.Job, k *kind) {
	t.Helper()
	if strings.HasPrefix(j.Name, "long") && len(j.Tasks) == 0 && j.Status == cluster.StatusCancelled {
		return // It never started.
	}
	if j.Status.String() != k.status || len(j.Tasks) != k.tasks {
		t.Errorf("job %s: %s with %d tasks, want %s with %d; %s", j.Name, j.Status, len(j.Tasks), k.status, k.tasks, j.Detail)
		return
	}
	for _, task := range j.Tasks {
		if k.status == "cancelled" && (task.Exit == nil || task.Exit.Started == 0) {
			continue // It was ended before it started.
		}
		if task.Outcome.String() != k.outcome || task.Exit == nil || (task.Exit.Code != k.code && k.status != "cancelled") {
			t.Errorf("job %s task %s run %d: %s %+v, want %s %d; %s", j.Name, task.Task, task.Run, task.Outcome, task.Exit,
				k.outcome, k.code, task.Detail)
			continue
		}
		id := cluster.ContainerID{Task: task.Task, Run: task.Run}
		text, err := os.ReadFile(filepath.Join(dir, "logs", fmt.Sprint(j.ID), id.String()+".out"))
		if err != nil || string(text) != k.output && (k.status != "cancelled" || !strings.HasPrefix(k.output, string(text))) {
			t.Errorf("job %s task %s output %q, want %q: %v", j.Name, task.Task, text, k.output, err)
		}
	}
}

// awaitOutput waits until a container has printed text.
func awaitOutput(t *testing.T, dir string, id cluster.ContainerID, text string) {
	t.Helper()
	file := filepath.Join(dir, "logs", fmt.Sprint(id.Task.Job), id.String()+".out")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		got, err := os.ReadFile(file)
		if err == nil && string(got) == text {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %q, %v; want %q", file, got, err, text)
		}
	}
}

// A container keeps running without a daemon, however the daemon ended, and is found again by the next daemon.
func TestContainersSurviveEveryEnd(t *testing.T) {
	needCgroups(t)
	dir, ran := t.TempDir(), t.TempDir()
	gate := filepath.Join(ran, "gate")
	k := kind{tasks: 2, script: `echo begun; until [ -e "$RAN/gate" ]; do sleep 0.01; done; echo done`,
		memory: 16 * resource.MiB, outcome: "succeeded", status: "succeeded", output: "begun\ndone\n"}
	p := startDaemon(t, dir, "fair")
	id := p.mustAsk(ask{Submit: k.submission(t, "waits", ran)}).ID
	for index := range int32(k.tasks) {
		awaitOutput(t, dir, cluster.ContainerID{Task: cluster.TaskID{Job: id, Index: index}, Run: 1}, "begun\n")
	}
	for _, end := range []string{"killed", "closed", "killed"} {
		if end == "killed" {
			p.kill()
		} else {
			p.in.Close()
			if err := p.command.Wait(); err != nil {
				t.Errorf("%s: %v %s", end, err, p.errors)
			}
		}
		p = startDaemon(t, dir, "fair")
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := p.mustAsk(ask{Wait: id}).Jobs[0]
	verify(t, dir, &j, &k)
	if slices.ContainsFunc(j.Tasks, func(task api.Task) bool { return task.Run > 1 }) {
		t.Errorf("tasks %+v", j.Tasks)
	}
	p.mustAsk(ask{Tidy: true})
	if err := p.command.Wait(); err != nil {
		t.Error(err)
	}
}
