package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

var upgradeFrom = flag.String("upgrade-from", "",
	"commit from whose program TestUpgradeFromPrograms and TestPoolsOfTwoPrograms upgrade; baseline is the last "+
		"one in CHANGELOG.md")

// upgradedFrom returns the commit from which the program is upgraded.
func upgradedFrom(t *testing.T) string {
	t.Helper()
	switch *upgradeFrom {
	case "":
		t.Skip("builds an earlier program, which takes a minute: run with -upgrade-from baseline, or make test-upgrade")
	case "baseline":
		text, err := os.ReadFile("../../CHANGELOG.md")
		if err != nil {
			t.Fatal(err)
		}
		last := regexp.MustCompile("(?m)^Baseline: `([0-9a-f]{40})`").FindStringSubmatch(string(text))
		if last == nil {
			t.Fatal("CHANGELOG.md names no baseline")
		}
		return last[1]
	}
	return *upgradeFrom
}

// TestUpgradeFromPrograms builds the program of the baseline, lets its daemon run jobs, kills it with SIGKILL, and
// starts the present daemon on its state directory. Supervisors of the earlier program still run then.
func TestUpgradeFromPrograms(t *testing.T) {
	commit := upgradedFrom(t)
	needControlGroups(t)
	testswap.Need(t, 64<<20)
	u := &upgrade{t: t, program: buildAt(t, commit), state: upgradeState(t), fifo: filepath.Join(t.TempDir(), "go")}
	u.before()
	u.kill()
	u.after()
}

// buildAt builds the program of an earlier commit, and beside it others from files of source, whose names they get.
func buildAt(t *testing.T, commit string, others ...string) string {
	t.Helper()
	if out, err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("needs the history of the repository with commit %s: %v: %s", commit, err, out)
	}
	tree, program := filepath.Join(t.TempDir(), "tree"), filepath.Join(t.TempDir(), "bellows")
	git := func(args ...string) {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("worktree", "add", "-q", "--detach", tree, commit)
	defer git("worktree", "remove", "--force", tree)
	for _, source := range append([]string{"./cmd/bellows"}, others...) {
		name := strings.TrimSuffix(filepath.Base(source), ".go")
		build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(filepath.Dir(program), name), source)
		build.Dir = tree
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build %s of %s: %v: %s", name, commit, err, out)
		}
	}
	return program
}

// upgradeState makes a state directory, in which the name of a socket is short.
func upgradeState(t *testing.T) string {
	t.Helper()
	state, err := os.MkdirTemp("", "bellows")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(os.RemoveAll(state), os.RemoveAll(state+store.Mark)) })
	return state
}

// upgrade is one upgrade from an earlier program.
type upgrade struct {
	t       *testing.T
	program string // the earlier one
	state   string
	fifo    string // what a job that runs waits for

	ends, fails, waits, flex string // ids of jobs
}

// run runs a command of one of both programs, and returns its output and its exit code.
func (u *upgrade) run(program string, args ...string) (output string, code int) {
	u.t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		u.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/bin:/usr/bin:/bin", "BELLOWS_STATE=" + u.state}
	said, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		u.t.Fatalf("%s %v: %v: %s", program, args, err, said)
	} else if ok {
		return string(said), exit.ExitCode()
	}
	return string(said), 0
}

// old runs a command of the earlier program, which must end with a code.
func (u *upgrade) old(code int, args ...string) string {
	u.t.Helper()
	said, got := u.run(u.program, args...)
	if got != code {
		u.t.Fatalf("the earlier bellows %v: exit code %d, want %d: %s", args, got, code, said)
	}
	return strings.TrimSpace(said)
}

// new runs a command of the present program, which must end with a code. Under its name in PATH this program is the
// command: see TestMain.
func (u *upgrade) new(code int, args ...string) string {
	u.t.Helper()
	said, got := u.run("bellows", args...)
	if got != code {
		u.t.Errorf("bellows %v: exit code %d, want %d: %s", args, got, code, said)
	}
	return strings.TrimSpace(said)
}

const upgradeTwo = `bellows: 1
name: two
stages:
  - {name: a, tasks: 2, cpus: 0.25, memory: 16MiB, command: [sh, -c, "echo {task}"]}
  - {name: b, after: [a], memory: 16MiB, command: ["true"]}
`

// upgradePair are two jobs, the last ones, which are stored with one environment.
const upgradePair = `bellows: 1
name: pair-1
stages: [{name: a, cpus: 0.25, memory: 230MiB, command: ["true"]}]
---
bellows: 1
name: pair-2
stages: [{name: a, cpus: 0.25, memory: 230MiB, command: ["true"]}]
`

// file writes a job file.
func (u *upgrade) file(text string) string {
	u.t.Helper()
	name := filepath.Join(u.t.TempDir(), "job.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
	return name
}

// before has the earlier program run jobs of every kind: five that end, a profile, and four that do not end.
func (u *upgrade) before() {
	u.up(u.program)
	u.t.Cleanup(func() { u.run("bellows", "down", "--force") }) // whatever runs then
	u.old(0, "run", "--name", "hello", "--cpus", "0.25", "--memory", "16MiB", "--", "echo", "hello")
	u.old(3, "run", "--name", "fails", "--cpus", "0.25", "--memory", "16MiB", "--", "sh", "-c", "exit 3")
	cancelled := u.old(0, "run", "-d", "--name", "cancelled", "--cpus", "0.25", "--memory", "16MiB", "--", "sleep", "1000")
	u.oldUntil("running", cancelled)
	u.old(0, "kill", cancelled)
	u.oldUntil("cancelled", cancelled)
	u.old(0, "submit", "--wait", u.file(upgradeTwo))
	u.old(0, "profile", "--name", "naps", "--quiet", "--sizes", "8MiB,16MiB,32MiB,64MiB", "--repeats", "1", "--",
		"sleep", "0.3")
	u.old(0, "token", "create", "--scope", "submit", "--expires", "30d", "--file", filepath.Join(u.t.TempDir(), "token"))

	for _, name := range []string{u.fifo, u.fifo + ".alone"} {
		if err := unix.Mkfifo(name, 0o600); err != nil {
			u.t.Fatal(err)
		}
	}
	u.ends = u.old(0, "run", "-d", "--name", "ends", "--cpus", "0.25", "--memory", "32MiB", "--", "sh", "-c",
		"echo before; read x < "+u.fifo+"; echo after $x; exit 7")
	u.fails = u.old(0, "run", "-d", "--name", "ends-alone", "--cpus", "0.25", "--memory", "16MiB", "--", "sh", "-c",
		"echo alone; read x < "+u.fifo+".alone; exit 5")
	u.flex = u.old(0, "run", "-d", "--name", "flex", "--class", "flex", "--cpus", "0.25", "--memory", "32MiB",
		"--max-memory", "64MiB", "--", "sleep", "1000")
	u.waits = u.old(0, "run", "-d", "--name", "waits", "--cpus", "0.25", "--memory", "224MiB", "--", "echo", "waited")
	for _, id := range []string{u.ends, u.fails, u.flex} {
		u.oldUntil("running", id)
	}
	u.oldUntil("pending", u.waits)
	u.old(0, "pause", u.waits)
	u.old(0, "submit", u.file(upgradePair))
}

// up starts a daemon of 256 MiB.
func (u *upgrade) up(program string) {
	u.t.Helper()
	if said, code := u.run(program, "up", "--memory", "256MiB", "--cpus", "1", "--policy", "fifo", "--detach"); code != 0 {
		u.t.Fatalf("up: exit code %d: %s", code, said)
	}
}

// await waits until what is true.
func (u *upgrade) await(what string, is func() bool) {
	u.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			u.t.Fatal("it never came: " + what)
		}
	}
}

// oldUntil waits until the earlier program lists a job with a status.
func (u *upgrade) oldUntil(status, id string) {
	u.t.Helper()
	line := regexp.MustCompile("(?m)^ +" + id + " .* " + status + " ")
	u.await("job "+id+" "+status, func() bool { return line.MatchString(u.old(0, "ps", "--all") + " ") })
}

// until waits until the present program lists a job with a status.
func (u *upgrade) until(status, id string) {
	u.t.Helper()
	u.await("job "+id+" "+status, func() bool { return u.job(id).Status.String() == status })
}

// job returns a job as the present program shows it.
func (u *upgrade) job(id string) api.Job {
	u.t.Helper()
	said := u.new(0, "ps", id, "--json")
	var j api.Job
	if err := json.Unmarshal([]byte(said), &j); err != nil {
		u.t.Fatalf("ps %s: %v: %s", id, err, said)
	}
	return j
}

// kill kills the daemon.
func (u *upgrade) kill() {
	u.t.Helper()
	text, err := os.ReadFile(filepath.Join(u.state, "lock"))
	if err != nil {
		u.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		u.t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		u.t.Fatal(err)
	}
	u.await("the end of the daemon", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ") // Nobody may wait for it.
	})
}

// schemaOf returns the version of the schema of the store, while there is no daemon.
func (u *upgrade) schemaOf() (version int) {
	u.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(u.state, store.File)+"?mode=ro")
	if err == nil {
		err = errors.Join(db.QueryRow("PRAGMA user_version").Scan(&version), db.Close())
	}
	if err != nil {
		u.t.Fatal(err)
	}
	return version
}

// after starts the present daemon, and checks what it makes of what the earlier one left behind.
func (u *upgrade) after() {
	t := u.t
	schema := u.schemaOf()
	u.open(u.fifo+".alone", "x") // A job ends while there is no daemon.
	u.up("bellows")
	for id, want := range map[string]string{"1": "hello succeeded 0", "2": "fails failed 3",
		"3": "cancelled cancelled 143", "4": "two succeeded 0"} {
		j := u.job(id)
		code := 0
		if j.ExitCode != nil {
			code = *j.ExitCode
		}
		if got := fmt.Sprint(j.Name, " ", j.Status, " ", code); got != want {
			t.Errorf("job %s is %q, want %q", id, got, want)
		}
	}
	if said := u.new(0, "logs", "1"); said != "hello" {
		t.Errorf("the output of job 1 is %q", said)
	}
	if said := u.new(0, "profile", "show", "naps"); !strings.Contains(said, "naps") {
		t.Errorf("the profile is %s", said)
	}

	// Both programs that run go on, in the same run; a program that has ended has its exit code; what waits waits.
	u.until("failed", u.fails)
	if j := u.job(u.fails); j.ExitCode == nil || *j.ExitCode != 5 {
		t.Errorf("the job that ended without a daemon is %+v", j)
	}
	for _, id := range []string{u.ends, u.flex} {
		if j := u.job(id); j.Status != cluster.StatusRunning || len(j.Tasks) != 1 || j.Tasks[0].Run != 1 ||
			j.Tasks[0].State != api.TaskRunning {
			t.Errorf("job %s is %+v", id, j)
		}
	}
	if j := u.job(u.waits); j.Status != cluster.StatusPending || j.Paused == nil {
		t.Errorf("the job that waits is %+v", j)
	}
	u.wantGranted(64 * resource.MiB)
	u.open(u.fifo, "42")
	u.until("failed", u.ends)
	if j := u.job(u.ends); j.ExitCode == nil || *j.ExitCode != 7 || !j.Started.Before(j.Finished) ||
		j.Submitted.After(j.Started) {
		t.Errorf("the job that ended is %+v", j)
	}
	if said := u.new(0, "logs", u.ends); !strings.HasPrefix(said+"\n", "before\nafter 42\n") {
		t.Errorf("its output is %q", said)
	}
	u.new(0, "kill", "--wait", u.flex)
	u.new(0, "resume", u.waits)
	u.until("succeeded", u.waits)
	if said := u.new(0, "logs", u.waits); said != "waited" {
		t.Errorf("the output of the job that waited is %q", said)
	}
	for _, id := range []string{"9", "10"} {
		u.until("succeeded", id)
	}
	if said := u.new(0, "run", "--cpus", "0.25", "--memory", "240MiB", "--", "echo", "new"); said != "new" {
		t.Errorf("a new job printed %q", said)
	}
	u.wantGranted(0)

	if said := u.new(0, "token", "list", "--json"); strings.Count(said, `"submit"`) != 1 {
		t.Errorf("the tokens are %s", said)
	}

	// The earlier program refuses what the present one has written in a later schema, and changes nothing.
	u.kill()
	if u.schemaOf() > schema {
		said, code := u.run(u.program, "up", "--memory", "256MiB", "--detach")
		if want := fmt.Sprintf("versions up to %d", schema); code != 1 ||
			!strings.Contains(said, "its schema has version") || !strings.Contains(said, want) {
			t.Errorf("the earlier program ended with exit code %d: %s", code, said)
		}
	}
	u.up("bellows")
	u.until("succeeded", u.waits)
	u.new(0, "down")
}

// open writes a line into a pipe that a program reads.
func (u *upgrade) open(fifo, line string) {
	u.t.Helper()
	if err := os.WriteFile(fifo, []byte(line+"\n"), 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// wantGranted waits until an amount of memory is granted.
func (u *upgrade) wantGranted(want resource.Amount) {
	u.t.Helper()
	u.await(resource.FormatMemory(want)+" granted", func() bool {
		var status struct{ Nodes []api.Node }
		if err := json.Unmarshal([]byte(u.new(0, "status", "--json")), &status); err != nil || len(status.Nodes) != 1 {
			u.t.Fatalf("status %+v: %v", status, err)
		}
		return status.Nodes[0].Memory-status.Nodes[0].FreeMemory == int64(want)
	})
}
