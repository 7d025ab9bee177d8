//go:build spark

package spark_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pyspark returns the folder of the Spark that is tested, or of another version.
func pyspark(t *testing.T, version ...string) string {
	t.Helper()
	return fetched(t, "pyspark", version...)
}

// fetched returns the path of what is fetched from PyPI.
func fetched(t *testing.T, what string, arguments ...string) string {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "./fetch", arguments...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 {
		fmt.Printf("LEFT OUT: %s could not be fetched from PyPI\n", what)
		t.Skipf("LEFT OUT: %s could not be fetched: %s", what, said.String())
	} else if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	return strings.TrimSpace(string(out))
}

// machine is a daemon in a state of its own, and a Spark.
type machine struct {
	t       *testing.T
	dir     string
	bellows string
	env     []string
	python  string // that drivers run with
}

// quick is for JVMs that live so shortly that it costs more to optimise their code than it saves.
const quick = "-XX:TieredStopAtLevel=1"

// beside lets a test run beside another one, unless all tests run, which take more memory.
func beside(t *testing.T) {
	if !*long {
		t.Parallel()
	}
}

func begin(t *testing.T, up ...string) *machine {
	t.Helper()
	if len(up) == 0 {
		up = []string{"--memory", "3GiB"}
	}
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	dir, err := os.MkdirTemp("", "spark") // The name of a socket is short.
	if err != nil {
		t.Fatal(err)
	}
	home := pyspark(t)
	program := filepath.Join(dir, "bellows")
	m := &machine{t: t, dir: dir, bellows: program, python: "python3", env: append(os.Environ(), "BELLOWS="+program,
		"BELLOWS_STATE="+filepath.Join(dir, "state"), "BELLOWS_SOCKET=", "SPARK_HOME="+home, "SPARK_LOCAL_DIRS="+dir,
		"PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"), "SPARK_LOCAL_IP=127.0.0.1")}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if !*long {
		m.env = append(m.env, "JDK_JAVA_OPTIONS="+quick)
	}
	m.run("go", "build", "-o", m.bellows, "../../cmd/bellows")
	m.run(append([]string{m.bellows, "up", "--detach"}, up...)...)
	t.Cleanup(func() { m.run(m.bellows, "down", "--force") })
	return m
}

// run runs a program, and returns its standard output.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stderr = m.env, &said
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%q: %v\n%s%s", args, err, out, said.String())
	}
	return string(out)
}

// program is a program of Spark that runs.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	log   string
	got   map[string]any
}

// submit submits the checks by the line that `pool create` has printed.
func (m *machine) submit(line, name string, slow bool) *program {
	m.t.Helper()
	marks := filepath.Join(m.dir, name)
	if err := os.Mkdir(marks, 0o700); err != nil {
		m.t.Fatal(err)
	}
	return m.start(line, name, fmt.Sprintf("testdata/checks.py %s %d", marks, map[bool]int{true: 1}[slow]))
}

// start starts a program, with arguments, by the line that `pool create` has printed.
func (m *machine) start(line, name, arguments string) *program {
	m.t.Helper()
	p := &program{t: m.t, log: filepath.Join(m.dir, name+".log"), got: map[string]any{}}
	log, err := os.Create(p.log)
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.CommandContext(m.t.Context(), "sh", "-c",
		"exec "+strings.Replace(strings.TrimSpace(line), "PROGRAM", arguments, 1))
	p.cmd.Env, p.cmd.Stderr = m.env, log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	return p
}

// until reads results until one of a name has come.
func (p *program) until(name string) any {
	p.t.Helper()
	for p.got[name] == nil && p.lines.Scan() {
		if text, is := strings.CutPrefix(p.lines.Text(), "RESULT "); is {
			if err := json.Unmarshal([]byte(text), &p.got); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	if p.got[name] == nil {
		p.fatal("it ended without the result " + name)
	}
	return p.got[name]
}

func (p *program) fatal(why string) {
	p.t.Helper()
	log, _ := os.ReadFile(p.log)
	p.t.Fatalf("%s\n%s", why, log[max(0, len(log)-8<<10):])
}

// end waits for the end of a program, and checks its results.
func (p *program) end(slow bool) {
	p.t.Helper()
	p.until("attachments")
	want := map[string]string{"rdd": "[[0,71071],[1,71214],[2,71357],[3,71500],[4,71643],[5,71786],[6,70929]]",
		"sql": `[["name-0",9995000],["name-1",9997000],["name-2",9999000],["name-3",10001000],["name-4",10003000]]`,
		"udf": "[0,1,8,27,64,125]", "stages": "[333,333,334]", "attachments": "1"}
	if slow {
		p.until("jvm_after")
		want["slow"] = "[[0,18],[1,22],[2,26]]"
	}
	for p.lines.Scan() {
	}
	if err := p.cmd.Wait(); err != nil {
		p.fatal(err.Error())
	}
	for name, text := range want {
		var rows any
		if err := json.Unmarshal([]byte(text), &rows); err != nil {
			p.t.Fatal(err)
		}
		if !reflect.DeepEqual(p.got[name], rows) {
			p.t.Errorf("%s: got %v, want %s", name, p.got[name], text)
		}
	}
}

// Spark as it is runs a program on an executor that stays: the next program starts on the same JVM, a job of two stages
// is attached to it once, and a query goes on although that JVM is killed.
func TestSpark(t *testing.T) {
	beside(t)
	m := begin(t)
	line := m.run(m.bellows, "pool", "create", "sp", "--spark", "auto", "--min", "1", "--max", "1", "--set",
		"mira.keep=next")
	t.Log(line)
	first := m.submit(line, "first", false)
	jvm := first.until("jvm").(float64)
	first.end(false)

	if seen := m.run(m.bellows, "pool", "top", "sp", "--once", "--json"); !strings.Contains(seen, `"language": "spark"`) {
		t.Errorf("the pool does not say that its executors are of Spark:\n%s", seen)
	}
	quiet := strings.Replace(line, "PROGRAM", "--conf spark.log.level=WARN PROGRAM", 1)
	second := m.submit(quiet, "second", true)
	if again := second.until("jvm").(float64); again != jvm {
		t.Errorf("the second program ran in JVM %v, the first in %v", again, jvm)
	}
	t.Logf("the first job took %.1f s in the first program, %.1f s in the second", first.got["first_seconds"],
		second.got["first_seconds"])
	second.until("udf")
	for { // until the query runs
		if _, err := os.Stat(filepath.Join(m.dir, "second", "task-1")); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := syscall.Kill(int(jvm), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second.end(true)
	if after := second.got["jvm_after"]; after == jvm {
		t.Errorf("JVM %v was killed and runs", after)
	}
	for _, p := range []*program{first, second} {
		id := p.got["id"].(string)
		mine := m.run(m.bellows, "logs", "--stderr", "--application", id, "pool/sp")
		for line := range strings.Lines(mine) {
			if !strings.HasPrefix(line, "[checks "+id[strings.LastIndex(id, "-")+1:]+" ") && !strings.HasPrefix(line, "==> ") {
				t.Errorf("a line of application %s: %s", id, line)
			}
		}
		if info := strings.Contains(mine, " INFO "); info != (p == first) {
			t.Errorf("application %s logs at the level info: %v\n%s", id, info, mine)
		}
		if !strings.Contains(mine, "a task of "+id) {
			t.Errorf("the log of application %s does not have what its task printed:\n%s", id, mine)
		}
	}
	said := m.run(m.bellows, "logs", "--stderr", "1")
	for _, want := range []string{"JVM 1 has ended: it was ended by signal 9", "JVM 2 is ready: Spark 4.2.0", "[checks "} {
		if !strings.Contains(said, want) {
			t.Errorf("the log of the executor does not say %q:\n%s", want, said)
		}
	}
}
