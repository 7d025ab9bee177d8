package firstuse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// contender is a way to run the jobs.
type contender struct {
	name string
	run  func(ctx context.Context, order []program) ([]Job, error)
}

// Names of contenders that the report compares.
const (
	ours  = "bellows"
	boxes = "peak boxes"
)

// Others returns the names of the contenders beside bellows.
func Others() (names []string) {
	for _, c := range contenders(&study{result: &Result{}})[1:] {
		names = append(names, c.name)
	}
	return names
}

// contenders returns all ways to run the jobs, bellows first.
func contenders(s *study) []contender {
	cores := s.result.Cores
	free := s.meanPeak()
	parallel := func(looks bool, flags ...string) func(context.Context, []program) ([]Job, error) {
		return func(ctx context.Context, order []program) ([]Job, error) {
			return s.parallel(ctx, order, looks, flags...)
		}
	}
	all := strconv.Itoa(4 * cores)
	return []contender{
		{ours, func(ctx context.Context, order []program) ([]Job, error) {
			return s.bellows(ctx, "auto", order, func(*program) []string { return nil })
		}},
		{boxes, func(ctx context.Context, order []program) ([]Job, error) {
			return s.bellows(ctx, "boxes", order, s.box)
		}},
		{"-j CORES", parallel(false, "-j", strconv.Itoa(cores))},
		{"-j 4xCORES", parallel(false, "-j", all)},
		{"--memfree", parallel(true, "-j", all, "--retries", "5", "--memfree", free)},
		{"--memsuspend", parallel(true, "-j", all, "--memsuspend", free)},
		{"&", s.plain},
	}
}

// meanPeak is the mean peak, as GNU parallel reads it.
func (s *study) meanPeak() string {
	return fmt.Sprintf("%dM", s.result.sum()/resource.Amount(max(1, len(s.result.Programs)))/resource.MiB)
}

// alone returns what a program did alone.
func (s *study) alone(p *program) *Alone {
	return &s.result.Programs[slices.IndexFunc(s.result.Programs, func(a Alone) bool { return a.Name == p.name })]
}

// box returns the flags by which a program gets a box of its peak.
func (s *study) box(p *program) []string {
	return []string{"--memory", resource.FormatMemoryExact(s.alone(p).Box), "--reserve", "stated"}
}

// bellows runs the jobs under a daemon, which ends afterwards. What it has learned is kept under a name.
func (s *study) bellows(ctx context.Context, name string, order []program, flags func(*program) []string) (jobs []Job,
	err error) {
	state := filepath.Join(s.work, "kept-"+name)
	env := append(os.Environ(), "BELLOWS_STATE="+state)
	tool := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, s.Bellows, args...)
		cmd.Env, cmd.Dir = env, s.input
		return cmd
	}
	up := tool(ctx, "up", "--detach", "--memory", resource.FormatMemoryExact(s.Node), "--cpus",
		strconv.Itoa(s.result.Cores))
	if out, err := up.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("bellows up: %w: %s", err, out)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if out, failure := tool(ctx, "down").CombinedOutput(); failure != nil {
			err = errors.Join(err, fmt.Errorf("bellows down: %w: %s", failure, out))
		}
	}()
	return s.atOnce(ctx, order, func(p *program) *exec.Cmd {
		args := append([]string{"run"}, flags(p)...)
		return tool(ctx, append(append(args, "--"), strings.Fields(p.commandOf(s.Kind))...)...)
	})
}

// atOnce starts a command for each job, and waits for all.
func (s *study) atOnce(ctx context.Context, order []program, of func(*program) *exec.Cmd) ([]Job, error) {
	jobs := make([]Job, len(order))
	var running sync.WaitGroup
	begun := time.Now()
	for i := range order {
		cmd := of(&order[i])
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		running.Go(func() {
			err := cmd.Wait()
			jobs[i] = Job{Name: order[i].name, Ended: time.Since(begun).Seconds(), Said: lastLine(said.Bytes())}
			if err != nil {
				jobs[i].Exit = cmd.ProcessState.ExitCode()
			}
		})
	}
	running.Wait()
	return jobs, ctx.Err()
}

// plain starts all jobs at once in a container of the size of the node.
func (s *study) plain(ctx context.Context, order []program) (jobs []Job, err error) {
	c, err := openContainer(ctx, s.Node, s.Swap)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	return s.atOnce(ctx, order, func(p *program) *exec.Cmd {
		return c.command(ctx, s.input, strings.Fields(p.commandOf(s.Kind))...)
	})
}

// parallel runs the jobs under GNU parallel, in a container of the size of the node. looks says that parallel shall see
// the memory of the node.
func (s *study) parallel(ctx context.Context, order []program, looks bool, flags ...string) (jobs []Job, err error) {
	c, err := openContainer(ctx, s.Node, s.Swap)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	log := filepath.Join(s.work, "joblog")
	args := append([]string{"parallel", "--will-cite", "--joblog", log}, flags...)
	if looks {
		path, stop, err := c.meminfo(s.work, s.Node, s.Swap)
		if err != nil {
			return nil, err
		}
		defer stop()
		args = append([]string{"unshare", "--mount", "sh", "-c", `mount --bind "$1" /proc/meminfo && shift && exec "$@"`,
			"sh", path}, args...)
	}
	var lines, said bytes.Buffer
	for i := range order {
		fmt.Fprintln(&lines, order[i].commandOf(s.Kind))
	}
	cmd := c.command(ctx, s.input, args...)
	cmd.Stdin, cmd.Stderr = &lines, &said
	begun := time.Now()
	failure := cmd.Run()
	took := time.Since(begun).Seconds()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return nil, fmt.Errorf("parallel: %w: %s", errors.Join(failure, err), said.Bytes())
	}
	jobs = readJoblog(string(text), begun, order)
	for i := range jobs {
		jobs[i].Said = lastLine(said.Bytes())
	}
	jobs[0].Ended = max(jobs[0].Ended, took) // it ends with the last of them
	return jobs, nil
}

// readJoblog reads the log of GNU parallel, whose last line about a job counts. A job that is not there was lost.
func readJoblog(text string, begun time.Time, order []program) []Job {
	jobs := make([]Job, len(order))
	for i := range order {
		jobs[i] = Job{Name: order[i].name, Exit: -1}
	}
	for _, line := range strings.Split(text, "\n") {
		// Seq, Host, Starttime, JobRuntime, Send, Receive, Exitval, Signal, Command
		fields := strings.Split(line, "\t")
		const least = 9
		if len(fields) < least {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(fields[0]))
		if err != nil || n < 1 || n > len(jobs) {
			continue
		}
		j := &jobs[n-1]
		start, _ := strconv.ParseFloat(strings.TrimSpace(fields[2]), 64)
		lasted, _ := strconv.ParseFloat(strings.TrimSpace(fields[3]), 64)
		j.Ended = start + lasted - float64(begun.UnixMilli())/1e3
		j.Exit, _ = strconv.Atoi(strings.TrimSpace(fields[6]))
		if signal, _ := strconv.Atoi(strings.TrimSpace(fields[7])); signal != 0 {
			j.Exit = 128 + signal
		}
	}
	return jobs
}
