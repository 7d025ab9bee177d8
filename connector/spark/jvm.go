package spark

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bellows-rm/bellows/executor"
)

// mainClass is what a JVM of an executor runs.
const mainClass = "org.apache.spark.executor.bellows.WarmExecutor"

// jvms starts JVMs of one executor.
type jvms struct {
	spark    Installation
	java     Java
	compiled Compiled
	heap     int64 // largest, bytes
	cores    int   // tasks that run at once
	scratch  *scratch
	group    *group
	out, err io.Writer // for what they print
}

// command returns the command of a JVM whose files are in folders, the first of which is for temporary ones.
func (j *jvms) command(folders []string) *exec.Cmd {
	conf := os.Getenv("SPARK_CONF_DIR")
	if conf == "" {
		conf = filepath.Join(j.spark.Home, "conf")
	}
	path := strings.Join([]string{j.compiled.Jar, conf, filepath.Join(j.spark.Home, "jars", "*")}, ":")
	args := append([]string{fmt.Sprintf("-Xmx%d", j.heap), "-XX:+UseG1GC", "-XX:+DisplayVMOutputToStderr",
		"-Djava.io.tmpdir=" + folders[0]}, j.compiled.JavaOptions...)
	cmd := exec.Command(j.java.Path, append(args, "-cp", path, mainClass)...)
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case executor.SecretVariable:
			value = ""
		case jdkOptions:
			if value = toldHeap.ReplaceAllString(value, ""); value == "" {
				continue
			}
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, ReportsVariable+"=/proc/self/fd/3", CoresVariable+"="+strconv.Itoa(j.cores),
		"SPARK_HOME="+j.spark.Home, "SPARK_EXECUTOR_DIRS="+strings.Join(folders, ","))
	return cmd
}

// In a FLEX container jdkOptions begins with a heap. It would do nothing, because the JVM has its own on its command
// line, but the JVM would print that it has read it.
const jdkOptions = "JDK_JAVA_OPTIONS"

var toldHeap = regexp.MustCompile(`^-Xmx[0-9]+k( |$)`)

// jvm is a process.
type jvm struct {
	process  *os.Process
	commands chan []byte
	out, err *output
}

// mostCommands bounds the commands that a JVM has not read. There is never more than one attachment, and one command
// for each application that ends.
const mostCommands = 4096

// begin starts a JVM: see launcher.
func (j *jvms) begin(number int, hear func(report), exited func(how string)) (runner, error) {
	folders, err := j.scratch.folders(number)
	if err != nil {
		return nil, fmt.Errorf("make folders for its files: %w", err)
	}
	cmd := j.command(folders)
	pipes, err := connect(cmd)
	if err != nil {
		return nil, err
	}
	kills := j.group.kills()
	err = cmd.Start()
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		return nil, err
	}
	v := &jvm{process: cmd.Process, commands: make(chan []byte, mostCommands), out: newOutput(pipes.out, j.out),
		err: newOutput(pipes.err, j.err)}
	var reading sync.WaitGroup
	reading.Go(v.out.copy)
	reading.Go(v.err.copy)
	stopped := make(chan struct{})
	go v.write(pipes.in, stopped)
	reading.Go(func() {
		listen(pipes.reports, hear, func(err error) { fmt.Fprintln(j.err, "bellows:", err) })
	})
	heard := make(chan struct{}) // all that it said
	go func() {
		defer close(heard)
		reading.Wait()
	}()
	go func() {
		_ = cmd.Wait()
		close(stopped)
		select {
		case <-heard:
		case <-time.After(time.Second): // A process that the JVM has left behind may hold a pipe open.
		}
		v.own("")
		j.scratch.remove(number)
		exited(howEnded(cmd.ProcessState, j.group.kills() > kills))
	}()
	return v, nil
}

// pipes are the ends of the pipes to a JVM, those of the launcher and those of the JVM.
type pipes struct {
	in                *os.File
	out, err, reports *os.File
	theirs            []*os.File
}

// connect makes the pipes of a JVM.
func connect(cmd *exec.Cmd) (p pipes, err error) {
	var ends [4][2]*os.File
	for i := range ends {
		if ends[i][0], ends[i][1], err = os.Pipe(); err != nil {
			return p, fmt.Errorf("make its pipes: %w", err)
		}
	}
	p.in, p.out, p.err, p.reports = ends[0][1], ends[1][0], ends[2][0], ends[3][0]
	p.theirs = []*os.File{ends[0][0], ends[1][1], ends[2][1], ends[3][1]}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = p.theirs[0], p.theirs[1], p.theirs[2], p.theirs[3:]
	return p, nil
}

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
}

func (p *pipes) closeOurs() {
	for _, f := range []*os.File{p.in, p.out, p.err, p.reports} {
		_ = f.Close()
	}
}

// mostReport bounds the line of a report, bytes.
const mostReport = 16 << 20

// listen calls hear for each report.
func listen(reports io.Reader, hear func(report), wrong func(error)) {
	lines := bufio.NewScanner(reports)
	lines.Buffer(nil, mostReport)
	for lines.Scan() {
		r, err := decode(lines.Bytes())
		if err != nil {
			wrong(err)
			continue
		}
		hear(r)
	}
}

// write writes commands until the JVM has ended.
func (v *jvm) write(in *os.File, stopped <-chan struct{}) {
	defer in.Close()
	for {
		select {
		case line := <-v.commands:
			if _, err := in.Write(line); err != nil {
				return
			}
		case <-stopped:
			return
		}
	}
}

func (v *jvm) send(line []byte) {
	select {
	case v.commands <- line:
	default:
		v.kill()
	}
}

func (v *jvm) dump() { _ = v.process.Signal(syscall.SIGQUIT) }

func (v *jvm) kill() { _ = v.process.Kill() }

// firstToGo is the oom_score_adj of processes that the kernel kills before all others.
const firstToGo = "1000"

// yield says whether the kernel is to kill the JVM before others of the container when that has no memory left. Where
// that cannot be said, the kernel chooses.
func (v *jvm) yield(is bool) {
	score, err := os.ReadFile("/proc/self/oom_score_adj")
	if is {
		score = []byte(firstToGo)
	} else if err != nil {
		return
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", v.process.Pid), score, 0)
}

func (v *jvm) own(label string) {
	v.out.own(label)
	v.err.own(label)
}

// Exit codes of the JVM and of Spark that say more than their number.
var exits = map[int]string{
	50: "a thread ended by an error that nothing handled",
	51: "a thread ended by an error that nothing handled",
	52: "it had no more memory in its heap (java.lang.OutOfMemoryError)",
	56: "it could not reach its driver (heartbeats failed)",
}

const killedForMemory = "the kernel has killed it, because the memory of the container was full"

// howEnded says how a JVM has ended; killed says that the kernel has killed a process of its container for memory.
func howEnded(s *os.ProcessState, killed bool) string {
	status, ok := s.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled() && killed:
		return killedForMemory
	case ok && status.Signaled():
		return fmt.Sprintf("it was ended by signal %d (%v)", status.Signal(), status.Signal())
	case exits[s.ExitCode()] != "":
		return fmt.Sprintf("exit code %d: %s", s.ExitCode(), exits[s.ExitCode()])
	}
	return fmt.Sprintf("exit code %d", s.ExitCode())
}
