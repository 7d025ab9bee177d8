package firstuse

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// container is a control group of the size of a node, in which other contenders run the jobs.
type container struct {
	root  *cgroup.Root
	group *cgroup.Group
}

// openContainer makes a container; memory 0 bounds nothing.
func openContainer(ctx context.Context, memory, swap resource.Amount) (*container, error) {
	host, err := cgroup.Discover("")
	if err != nil {
		return nil, err
	}
	root, err := host.Root(fmt.Sprintf("firstuse-%d", os.Getpid()), cgroup.Memory)
	if err != nil {
		return nil, err
	}
	c := &container{root: root}
	if c.group, err = root.Create("node"); err == nil && memory > 0 {
		err = c.group.ApplyCounted(ctx, cgroup.Limits{MemoryBytes: cgroup.At(int64(memory)),
			SwapBytes: cgroup.At(int64(swap))})
	}
	if err != nil {
		return nil, errors.Join(err, c.close(ctx))
	}
	return c, nil
}

// close ends what runs in the container, and removes it.
func (c *container) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return c.root.Remove(ctx)
}

// command returns a command that runs in the container, in a folder.
func (c *container) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := c.group.Command(ctx, args...)
	cmd.Dir = dir
	return cmd
}

// watch samples the memory of the container, without page cache and with swap, until the returned function is called,
// which returns the largest sample.
func (c *container) watch() (most func() resource.Amount) {
	var peak resource.Amount
	stop := every(20*time.Millisecond, func() {
		if r, err := c.group.Read(); err == nil {
			peak = max(peak, resource.Amount(r.AnonBytes.Or(0)+r.SwapBytes.Or(0)))
		}
	})
	return func() resource.Amount {
		stop()
		return peak
	}
}

// every calls a function now and then again after each interval, until the returned function is called.
func every(interval time.Duration, do func()) (stop func()) {
	do()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				do()
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// meminfo keeps a file that says of the container what /proc/meminfo says of a machine, until the returned function is
// called: programs that look there shall see the node.
func (c *container) meminfo(dir string, memory, swap resource.Amount) (path string, stop func(), err error) {
	path = filepath.Join(dir, "meminfo")
	f, err := os.Create(path)
	if err != nil {
		return "", nil, err
	}
	end := every(100*time.Millisecond, func() {
		used, swapped := resource.Amount(0), resource.Amount(0)
		if r, err := c.group.Read(); err == nil {
			used, swapped = resource.Amount(r.AnonBytes.Or(0)), resource.Amount(r.SwapBytes.Or(0))
		}
		free := max(0, memory-used)
		text := ""
		for _, line := range []struct {
			name  string
			bytes resource.Amount
		}{{"MemTotal", memory}, {"MemFree", free}, {"MemAvailable", free}, {"Buffers", 0}, {"Cached", 0},
			{"SwapCached", 0}, {"SwapTotal", swap}, {"SwapFree", max(0, swap-swapped)}} {
			text += fmt.Sprintf("%-15s %12d kB\n", line.name+":", line.bytes/resource.KiB)
		}
		_, _ = f.WriteAt([]byte(text), 0) // always of the same length
	})
	return path, func() {
		end()
		f.Close()
	}, nil
}
