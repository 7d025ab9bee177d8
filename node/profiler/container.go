package profiler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// Container runs a command in its own control groups. The caller must close it.
type Container struct {
	command cluster.Command
	env     []string
	dir     string
	cpu     resource.Amount
	root    *cgroup.Root
	runs    int
}

// NewContainer returns a Runner for a command, whose placeholders are filled before each run, in a working directory
// (absolute) and with cpu millicores. The error is one sentence if this process may not limit the memory of other
// processes.
func NewContainer(command cluster.Command, env []string, dir string, cpu resource.Amount) (*Container, error) {
	host, err := cgroup.Discover("")
	if err != nil {
		return nil, fmt.Errorf("measuring needs control groups: %w", err)
	}
	root, err := host.Root(fmt.Sprintf("profile-%d", os.Getpid()), cgroup.Memory)
	if err != nil {
		return nil, fmt.Errorf("measuring needs control groups: %w", err)
	}
	return &Container{command: command, env: env, dir: dir, cpu: cpu, root: root}, nil
}

// Close removes the control groups.
func (c *Container) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return c.root.Remove(ctx)
}

// Run implements Runner. The program's memory is not swapped out.
func (c *Container) Run(ctx context.Context, memory resource.Amount) (m Measurement, err error) {
	return c.RunTold(ctx, memory, memory, 0)
}

// RunTold runs the command, with told in its placeholders, in a container with memory bytes and additionally swap bytes
// of swap.
func (c *Container) RunTold(ctx context.Context, told, memory, swap resource.Amount) (m Measurement, err error) {
	grant := resource.Of(c.cpu, told)
	job := cluster.Job{ID: 1, Name: "profile",
		Stages: []cluster.Stage{{Name: "profile", Tasks: 1, Ideal: grant, Command: c.command}}}
	filled, err := job.FillCommand(cluster.TaskID{Job: 1}, grant)
	if err != nil {
		return m, err
	}
	c.runs++
	group, err := c.root.Create(fmt.Sprintf("run-%d", c.runs))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, c.remove(group)) }()
	if err := c.limit(ctx, group, memory, swap); err != nil {
		return m, err
	}
	c.dropFiles(filled.Args)
	cmd := group.Command(ctx, filled.Args...)
	cmd.Env, cmd.Dir = slices.Clone(c.env), c.dir
	for name, value := range cluster.WithSize(nil, c.env, c.cpu) { // as a job of this size has them
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var said tail
	cmd.Stderr = &said
	before, known := BusyTime()
	begin := time.Now()
	failure := cmd.Run()
	m.Duration = time.Since(begin)
	after, ok := BusyTime()
	if ctx.Err() != nil {
		return m, ctx.Err()
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		const block = 512
		m.Written = resource.Amount(usage.Oublock) * block
		m.Resident = resource.Amount(usage.Maxrss) * resource.KiB
		m.MajorFaults = usage.Majflt
	}
	m.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	m.Others, m.OthersKnown = others(after-before, m.CPU, m.Duration), known && ok
	reading, err := group.Read()
	if err != nil {
		return m, err
	}
	m.Peak = resource.Amount(reading.PeakBytes.Or(0))
	m.Failure = failed(failure, reading, &said)
	return m, nil
}

// failed says why a run does not count.
func failed(err error, r cgroup.Reading, said *tail) string {
	if err == nil {
		return ""
	}
	if n, ok := r.OOMKills.Get(); ok && n > 0 {
		return "the kernel killed it for memory"
	}
	text := err.Error()
	if last := said.lastLine(); last != "" {
		text += ": " + last
	}
	return text
}

// limit limits the resources of a group.
func (c *Container) limit(ctx context.Context, g *cgroup.Group, memory, swap resource.Amount) error {
	limits := cgroup.Limits{MemoryBytes: cgroup.At(int64(memory)), SwapBytes: cgroup.At(int64(swap))}
	if err := g.ApplyCounted(ctx, limits); err != nil {
		return err
	}
	if _, ok := g.Has(cgroup.CPU); ok && c.cpu > 0 {
		return g.Apply(ctx, cgroup.Limits{CPUMillicores: cgroup.At(int64(c.cpu))})
	}
	return nil
}

// remove removes a group. Before that it drops the files of the group from the page cache: otherwise they would stay
// there without a group, and the next run would read them for free.
func (c *Container) remove(g *cgroup.Group) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := g.Kill(ctx); err != nil {
		return err
	}
	if dir, err := os.Open(c.dir); err == nil {
		_ = unix.Syncfs(int(dir.Fd())) // dirty pages cannot be dropped, and would disturb the next run
		dir.Close()
	}
	_ = g.Apply(ctx, cgroup.Limits{MemoryBytes: cgroup.At(int64(resource.MiB))})
	return g.Remove(ctx)
}

// dropFiles drops the page cache of files that the command names: another process may have read them first.
func (c *Container) dropFiles(args []string) {
	for _, arg := range args {
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.dir, path)
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if f, err := os.Open(path); err == nil {
			_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
			f.Close()
		}
	}
}

// tail keeps the end of its output.
type tail struct{ kept []byte }

const tailBytes = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - tailBytes; extra > 0 {
		t.kept = bytes.Clone(t.kept[extra:])
	}
	return len(p), nil
}

func (t *tail) lastLine() string {
	lines := strings.Split(strings.TrimSpace(string(t.kept)), "\n")
	return lines[len(lines)-1]
}
