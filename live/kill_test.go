package live_test

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

var (
	kills = flag.Int("kills", 6,
		"at how many changes of files TestKillAtEveryWrite kills, spread over all of them; a third of that with -short")
	killSeed = flag.Uint64("kill-seed", 0, "where the changes at which TestKillAtEveryWrite kills begin; 0 is the time")
)

// These files are next to a state directory: deadline names the last change of the process that is about to make it,
// as its number among the changes whose lines contain a text, and changes has a line for each change so far.
func deadline(state string) string { return state + ".deadline" }
func changes(state string) string  { return state + ".changes" }

// doom makes this process, a daemon or a supervisor of a state directory, count its changes of files together with the
// other processes, and die (SIGKILL) immediately before the change that the deadline names.
func doom(role, state string) {
	text, err := os.ReadFile(deadline(state))
	if err != nil {
		return
	}
	number, about, _ := strings.Cut(string(text), " ")
	last, err := strconv.Atoi(number)
	if err != nil {
		panic(err)
	}
	durable.Watch = func(op durable.Op, path string) {
		file, err := os.OpenFile(changes(state), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return // the test is over
		}
		defer file.Close()
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
			panic(err)
		}
		change := fmt.Sprintf("%s %s %s", role, op, strings.TrimPrefix(path, state+"/"))
		if _, err := fmt.Fprintln(file, change); err != nil {
			panic(err)
		}
		before, err := os.ReadFile(changes(state))
		if err != nil {
			panic(err)
		}
		if strings.Contains(change, about) && len(changesAbout(before, about)) == last {
			// The other processes keep running for as long as a slow disk would take, to show that everything that must
			// wait for this change does wait.
			_ = unix.Flock(int(file.Fd()), unix.LOCK_UN)
			time.Sleep(50 * time.Millisecond)
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
}

// changesAbout returns the lines of changes that contain a text.
func changesAbout(text []byte, about string) []string {
	return slices.DeleteFunc(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"),
		func(line string) bool { return !strings.Contains(line, about) })
}

// act is a job of the play, and its expected end if only daemons die.
type act struct {
	tasks    int // which start together in a job named gang
	attempts int
	class    cluster.Class
	script   string
	status   string
	starts   int
}

// play are the jobs of TestKillAtEveryWrite by name. A task reports its start, and complains if another run of it is
// still going on.
var play = map[string]act{
	"plain":   {2, 1, cluster.Regular, `sleep 0.05`, "succeeded", 1},
	"retry":   {1, 2, cluster.Regular, `test $(wc -l <"$RAN/$BELLOWS_JOB-$BELLOWS_TASK") -ge 2`, "succeeded", 2},
	"flex":    {1, 1, cluster.Flex, `sleep 0.05`, "succeeded", 1},
	"failed":  {1, 1, cluster.Regular, `exit 5`, "failed", 1},
	"gate":    {1, 1, cluster.Regular, `until [ -e "$RAN/gate" ]; do sleep 0.02; done`, "succeeded", 1},
	"long":    {1, 1, cluster.Regular, `exec sleep 1000`, "cancelled", 1},
	"gang":    {3, 1, cluster.Regular, `sleep 0.05`, "succeeded", 1},
	"slowed":  {1, 1, cluster.Regular, `sleep 0.1`, "succeeded", 1},
	"resized": {1, 1, cluster.Regular, `sleep 0.1`, "succeeded", 1},
	"leveled": {1, 1, cluster.Regular, `sleep 0.1`, "succeeded", 1},
	"held":    {1, 1, cluster.Regular, `until [ -e "$RAN/gate" ]; do sleep 0.02; done`, "succeeded", 1},
	"after":   {1, 1, cluster.Regular, `true`, "succeeded", 1},
}

const prologue = `echo start >>"$RAN/$BELLOWS_JOB-$BELLOWS_TASK"; exec 9>"$RAN/lock-$BELLOWS_JOB-$BELLOWS_TASK"; flock -n 9 || echo >"$RAN/twice"; `

func (a act) submission(name, ran string) *live.Submission {
	return &live.Submission{
		Job: cluster.Job{Name: name, Class: a.class, MaxAttempts: a.attempts,
			Stages: []cluster.Stage{{Tasks: a.tasks, Together: strings.HasPrefix(name, "gang"),
				Ideal:   resource.Of(100, 16*resource.MiB),
				Command: cluster.Command{Args: []string{"sh", "-c", prologue + a.script}}}}},
		Env: []string{"PATH=/usr/bin:/bin", "RAN=" + ran}, Dir: "/",
		Key: live.Key{Text: name, Digest: sha256.Sum256([]byte(name))},
	}
}

// theatre is one performance of the play.
type theatre struct {
	t     *testing.T
	state string
	ran   string
	p     *process
	told  map[string]cluster.JobID // jobs that the daemon acknowledged
	gone  bool                     // the daemon reported that the old jobs were removed
	held  bool                     // the daemon reported that a job is paused, and has not been asked to resume it
}

// perform runs the script until its end or until the daemon dies; it reports whether the script ended.
func (h *theatre) perform() bool {
	h.p = startDaemon(h.t, h.state, "prophet")
	do := func(q ask) bool {
		reply, ok := h.p.ask(q)
		// A job whose supervisor died may have ended before.
		if ok && reply.Error != "" && q.Cancel == 0 && q.Pause == 0 && q.Resume == 0 {
			h.t.Fatalf("asked %+v: %s; log:\n%s", q, reply.Error, h.p.errors)
		}
		if ok && q.Submit != nil {
			h.told[q.Submit.Job.Name] = reply.ID
		}
		return ok
	}
	for _, name := range []string{"held", "plain", "retry", "flex", "failed", "gang", "slowed", "resized", "leveled",
		"gate", "long"} {
		if !do(askSubmit(name, h.ran)) {
			return false
		}
	}
	for _, name := range []string{"plain", "retry", "flex", "failed", "gang", "slowed", "resized", "leveled"} {
		if !do(askWait(h.told[name])) {
			return false
		}
	}
	if !do(ask{Pause: h.told["held"]}) {
		return false
	}
	h.held = true
	if !do(ask{Prune: time.Hour}) {
		return false
	}
	h.gone = true
	// The next daemon adopts running containers, and may die doing so.
	h.p.kill()
	h.p = startDaemon(h.t, h.state, "prophet")
	if !do(askJobs()) {
		return false
	}
	h.held = false
	return do(ask{Resume: h.told["held"]}) && h.openGate() && do(askWait(h.told["held"])) && do(askWait(h.told["gate"])) &&
		do(askCancel(h.told["long"])) && do(askWait(h.told["long"]))
}

func askSubmit(name, ran string) ask { return ask{Submit: play[name].submission(name, ran)} }
func askWait(id cluster.JobID) ask   { return ask{Wait: id} }
func askCancel(id cluster.JobID) ask { return ask{Cancel: id} }
func askJobs() ask                   { return ask{Jobs: true} }

func (h *theatre) openGate() bool {
	if err := os.WriteFile(filepath.Join(h.ran, "gate"), nil, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return true
}

// finish starts a daemon that is not killed, lets it end every job, and returns the jobs.
func (h *theatre) finish() []api.Job {
	if err := os.Remove(deadline(h.state)); err != nil {
		h.t.Fatal(err)
	}
	h.p.kill()
	h.p = startDaemon(h.t, h.state, "prophet")
	h.openGate()
	h.told["after"] = h.p.mustAsk(askSubmit("after", h.ran)).ID
	jobs := h.p.mustAsk(askJobs()).Jobs
	for _, j := range jobs { // A client that got no answer submits again.
		if _, ok := play[j.Name]; ok {
			if again := h.p.mustAsk(askSubmit(j.Name, h.ran)).ID; again != j.ID {
				h.t.Errorf("job %s is %d, and submitted again with its key %d", j.Name, j.ID, again)
			}
		}
	}
	for i, j := range jobs {
		if h.held && j.Name == "held" && j.Paused == nil && !j.Ended {
			h.t.Errorf("job %s was said to be paused, and is not: %+v", j.Name, j)
		}
		if j.Paused != nil {
			h.p.ask(ask{Resume: j.ID}) // It may just have ended.
		}
		if j.Name == "long" && !j.Ended {
			h.p.ask(askCancel(j.ID)) // It may just have ended.
		}
		jobs[i] = h.p.mustAsk(askWait(j.ID)).Jobs[0]
	}
	h.awaitRemoval(jobs)
	h.p.mustAsk(ask{Tidy: true})
	if err := h.p.command.Wait(); err != nil {
		h.t.Errorf("the daemon ended with %v: %s", err, h.p.errors)
	}
	h.checkLearned(jobs)
	replayAll(h.t, h.state)
	return jobs
}

// checkLearned expects that each run that succeeded and was measured has taught its application once. Each job of the
// play is an application of its own; of the old ones some may have been removed.
func (h *theatre) checkLearned(jobs []api.Job) {
	s, err := store.Open(h.state)
	if err != nil {
		h.t.Fatal(err)
	}
	defer s.Close()
	ctx := h.t.Context()
	for i := range jobs {
		if strings.HasPrefix(jobs[i].Name, "old") {
			continue
		}
		measured, taught := map[cluster.ContainerID]bool{}, 0
		if err := s.Usage(ctx, jobs[i].ID, func(u store.Usage) error {
			measured[u.Container] = u.Usage.Length() > 0
			return nil
		}); err != nil {
			h.t.Fatal(err)
		}
		tasks, err := s.Tasks(ctx, jobs[i].ID)
		if err != nil {
			h.t.Fatal(err)
		}
		want := 0
		for _, r := range tasks {
			if r.Outcome == cluster.Succeeded && measured[r.Container] {
				want++
			}
		}
		if a, err := s.App(ctx, jobs[i].UID, "", jobs[i].App); err == nil {
			history, notes, err := profile.ReadHistory(a.Learned)
			if err != nil || len(notes) > 0 {
				h.t.Errorf("history of job %s: %v, %q", jobs[i].Name, err, notes)
			}
			for _, app := range history.Apps() {
				_, n := history.Runs(app)
				taught += n
			}
		}
		if taught != want {
			h.t.Errorf("job %s, application %q: %d runs taught something, want %d", jobs[i].Name, jobs[i].App, taught, want)
		}
	}
}

// awaitRemoval waits until the daemon has finished a removal that another daemon began: the output of unlisted jobs.
func (h *theatre) awaitRemoval(listed []api.Job) {
	for i, name := range old {
		if slices.ContainsFunc(listed, func(j api.Job) bool { return j.Name == name }) {
			continue
		}
		for end := time.Now().Add(time.Minute); h.hasOutput(i) && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		}
	}
}

// hasOutput reports whether output of an old job exists.
func (h *theatre) hasOutput(i int) bool {
	_, err := os.Stat(filepath.Join(h.state, "logs", strconv.Itoa(i+1)))
	return err == nil
}

// check compares the jobs with the answers of the daemon and the runs of the programs. dead is the change that was
// prevented, as doom writes it.
func (h *theatre) check(jobs []api.Job, dead string) {
	seen := map[string]bool{}
	for i := range jobs {
		j := &jobs[i]
		if seen[j.Name] {
			h.t.Errorf("job %s is there twice", j.Name)
		}
		seen[j.Name] = true
		if id, ok := h.told[j.Name]; ok && id != j.ID {
			h.t.Errorf("job %s was said to be %d, but is %d", j.Name, id, j.ID)
		}
		if !strings.HasPrefix(j.Name, "old") {
			h.checkJob(j, dead)
		}
	}
	h.checkPruned(seen)
	for name, id := range h.told {
		if !seen[name] {
			h.t.Errorf("job %s (%d) is lost", name, id)
		}
	}
	if _, err := os.Stat(filepath.Join(h.ran, "twice")); !errors.Is(err, os.ErrNotExist) {
		h.t.Error("two runs of a task at once")
	}
}

// checkPruned expects no old job if the removal was reported. In any case each job must have both row and output, or
// neither.
func (h *theatre) checkPruned(seen map[string]bool) {
	for i, name := range old {
		if there := h.hasOutput(i); h.gone && seen[name] || there != seen[name] {
			h.t.Errorf("old job %s: said to be removed: %v; in the list: %v; its output is there: %v", name, h.gone,
				seen[name], there)
		}
	}
}

// checkJob expects the ends in play. A task whose supervisor dies is lost with it: it may run again, or count as
// failed. Then its job has failed, and the job's other tasks may be ended before their programs begin.
func (h *theatre) checkJob(j *api.Job, dead string) {
	a := play[j.Name]
	dies := func(task int) bool {
		container, output := fmt.Sprintf(" containers/%d-0-%d-", j.ID, task), fmt.Sprintf(" logs/%d/", j.ID)
		return strings.HasPrefix(dead, "supervisor") &&
			(strings.Contains(dead, container) || strings.Contains(dead+"/", output))
	}
	victim := false
	for task := range a.tasks {
		victim = victim || dies(task)
	}
	lost := victim && failedByLoss(j)
	for task := range a.tasks {
		text, err := os.ReadFile(filepath.Join(h.ran, fmt.Sprintf("%d-%d", j.ID, task)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			h.t.Fatal(err)
		}
		starts := strings.Count(string(text), "\n")
		switch {
		case starts == a.starts, dies(task) && starts <= a.starts+1, lost && starts < a.starts, a.status == "cancelled" &&
			starts == 0:
		default:
			h.t.Errorf("job %s task %d started %d times, want %d", j.Name, task, starts, a.starts)
		}
	}
	if j.Status.String() != a.status && !lost {
		h.t.Errorf("job %s is %s, want %s: %s", j.Name, j.Status, a.status, j.Detail)
	}
}

// old are jobs that ended before the play, so long ago that they are removed; their ids count from 1.
var old = []string{"old-1", "old-2", "old-3"}

// stage creates a state directory with the old jobs.
func stage(t *testing.T) (state string) {
	state = filepath.Join(t.TempDir(), "state")
	p := startDaemon(t, state, "prophet")
	for i, name := range old {
		id := p.mustAsk(ask{Submit: play["after"].submission(name, t.TempDir())}).ID
		if p.mustAsk(askWait(id)); id != cluster.JobID(i+1) {
			t.Fatalf("old job %d has the id %d", i+1, id)
		}
	}
	p.mustAsk(ask{Tidy: true})
	if err := p.command.Wait(); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range old {
		j, err := s.Job(t.Context(), cluster.JobID(i+1))
		if err != nil {
			t.Fatal(err)
		}
		j.State.Finished = j.State.Finished.Add(-24 * time.Hour)
		if err := s.Write(t.Context(), store.Batch{Jobs: map[cluster.JobID]store.JobState{j.ID: j.State}}); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

// failedByLoss reports whether a job failed and one of its runs was lost, which counts as an attempt.
func failedByLoss(j *api.Job) bool {
	return j.Status == cluster.StatusFailed && slices.ContainsFunc(slices.Concat(j.Tasks, j.Earlier),
		func(t api.Task) bool { return t.Outcome == cluster.Lost })
}

// performance performs the play with a death at a change (none: 0) of those that contain a text, and returns these.
func performance(t *testing.T, stage string, at int, about string) (list []string) {
	h := &theatre{t: t, state: filepath.Join(t.TempDir(), "state"), ran: t.TempDir(), told: map[string]cluster.JobID{}}
	if err := os.CopyFS(h.state, os.DirFS(stage)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(deadline(h.state), []byte(strconv.Itoa(at)+" "+about), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := h.perform()
	text, err := os.ReadFile(changes(h.state))
	if err != nil {
		t.Fatal(err)
	}
	list = changesAbout(text, about)
	dead := "nobody"
	if at > 0 && at <= len(list) {
		dead = list[at-1]
	}
	h.check(h.finish(), dead)
	if t.Failed() {
		t.Logf("dead at change %d, %s; the play came to its end: %v; log:\n%s", at, dead, ended, h.p.errors)
	}
	return list
}

// A daemon or a supervisor dies immediately before any change of a file (write, fsync, rename, commit …) in a run with
// retries, FLEX, tasks that start together, a throttle, a resize, a hold of leveling, a pause, a restart, a
// cancellation and the removal of jobs. The death loses nothing that was acknowledged, and no task that ended runs
// again.
func TestKillAtEveryWrite(t *testing.T) {
	needCgroups(t)
	want := *kills
	if testing.Short() {
		want /= 3
	}
	stage := stage(t)
	list := performance(t, stage, 0, "")
	points, about := len(list), map[string]int{}
	for _, change := range list {
		for _, file := range []string{"want.json", ".jsonl.tmp"} {
			if strings.Contains(change, file) {
				about[file]++
			}
		}
	}
	from := *killSeed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	stride := max(1, points/max(1, want))
	first := 1 + rand.New(rand.NewPCG(from, 0)).IntN(stride)
	t.Logf("%d changes, of records of orders and new event logs %v; again: go test ./live -run "+
		"TestKillAtEveryWrite -kills %d -kill-seed %d", points, about, *kills, from)
	n := 0
	for at := first; at <= points && !t.Failed(); at += stride {
		t.Run(strconv.Itoa(at), func(t *testing.T) { performance(t, stage, at, "") })
		n++
	}
	t.Logf("killed at %d of %d changes", n, points)
}

// The daemon dies immediately before any change of a file with which a segment of the event log begins, or an old one
// goes: the death loses nothing, and all event logs can be read and replayed.
func TestKillWhereSegmentsBegin(t *testing.T) {
	needCgroups(t)
	want := max(1, *kills/3)
	if testing.Short() {
		want = 1
	}
	stage := stage(t)
	for _, about := range []string{"daemon make events/", "daemon write events/00000", "daemon rename events/",
		"daemon remove events/"} {
		points := len(performance(t, stage, 0, about))
		if points == 0 {
			t.Errorf("no change is a %s", about)
		}
		stride := max(1, points/want)
		first := 1 + rand.IntN(stride)
		n := 0
		for at := first; at <= points && !t.Failed(); at += stride {
			t.Run(fmt.Sprintf("%s %d", about, at), func(t *testing.T) { performance(t, stage, at, about) })
			n++
		}
		t.Logf("killed at %d of %d changes like %s", n, points, about)
	}
}
