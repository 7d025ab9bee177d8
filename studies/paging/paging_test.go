package paging

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/profiler"
)

const mib = resource.MiB

// pager is a program that takes one second, or two where it spills. When it pages, it never ends below half of its
// ideal memory, and is killed at a quarter.
type pager struct {
	ideal resource.Amount
	runs  int
}

func (p *pager) RunWay(ctx context.Context, way Way, memory resource.Amount) (profiler.Measurement, error) {
	p.runs++
	switch {
	case memory >= p.ideal:
		return profiler.Measurement{Duration: time.Second}, nil
	case way == Spill:
		return profiler.Measurement{Duration: 2 * time.Second, Written: 700}, nil
	case memory < p.ideal/4:
		return profiler.Measurement{Failure: "killed"}, nil
	case memory < p.ideal/2:
		ended, end := context.WithCancel(ctx)
		end()
		<-ended.Done()
		return profiler.Measurement{}, context.DeadlineExceeded
	}
	return profiler.Measurement{Duration: 3 * time.Second, MajorFaults: 9}, nil
}

func TestMeasurePaging(t *testing.T) {
	p := Plan{Ideal: 64 * mib, Shares: []float64{0.2, 0.75}, Repeats: 3, GiveUp: 10}
	program := pager{ideal: p.Ideal}
	c, err := Measure(context.Background(), &program, &p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.IdealSeconds != 1 || c.Ideal != p.Ideal || len(c.Points) != 3 {
		t.Fatalf("%+v", c)
	}
	low, high := c.Points[0], c.Points[1]
	if low.Share != 0.2 || len(low.Spill.Seconds) != 3 || low.Spill.Median() != 2 || low.Spill.Written != 700 {
		t.Errorf("spilling at 0.2: %+v", low.Spill)
	}
	if low.Page.Known() || low.Page.Failures != 2 || low.Page.Failed != "killed" {
		t.Errorf("paging at 0.2: %+v, want two failures and no third try", low.Page)
	}
	if high.Page.Median() != 3 || high.Page.MajorFaults != 9 || high.Page.AtLeast() {
		t.Errorf("paging at 0.75: %+v", high.Page)
	}
	if want := 1 + 3*2*3 - 1; program.runs != want {
		t.Errorf("%d runs, want %d", program.runs, want)
	}
	c.Pattern = "x"
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// slow never ends by itself.
type slow struct{ pager }

func (s *slow) RunWay(ctx context.Context, way Way, memory resource.Amount) (profiler.Measurement, error) {
	if way == Page && memory < s.ideal {
		<-ctx.Done()
		return profiler.Measurement{}, ctx.Err()
	}
	m, err := s.pager.RunWay(ctx, way, memory)
	m.Duration = time.Millisecond
	return m, err
}

func TestPagingIsGivenUp(t *testing.T) {
	p := Plan{Ideal: 64 * mib, Shares: []float64{0.5}, Repeats: 2, GiveUp: 5}
	program := slow{pager{ideal: p.Ideal}}
	c, err := Measure(context.Background(), &program, &p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if page := c.Points[0].Page; !page.AtLeast() || page.Over != 0.005 || len(page.Seconds) > 0 {
		t.Errorf("%+v, want a lower bound of 5 ms", page)
	}
}

func TestPagingPlanRefuses(t *testing.T) {
	for _, tt := range []struct {
		p    Plan
		want string
	}{
		{Plan{Ideal: 64 * mib, Shares: []float64{0.5}, GiveUp: 5}, "repeats 0: must be 1 to 100"},
		{Plan{Ideal: 64 * mib, Shares: []float64{0.5}, Repeats: 1, GiveUp: 1}, "give-up 1: must be a number above 1"},
		{Plan{Ideal: 64 * mib, Repeats: 1, GiveUp: 5}, "shares: at least one"},
		{Plan{Ideal: 64 * mib, Shares: []float64{0.5, 0.5}, Repeats: 1, GiveUp: 5},
			"share 0.5: must be above 0, below 1, and above the one before"},
		{Plan{Ideal: 4 * mib, Shares: []float64{0.25}, Repeats: 1, GiveUp: 5},
			"share 0.25: is 1MiB of memory, must be at least 2MiB"},
	} {
		if err := tt.p.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

// Both ways run one right after the other at every size, in every round.
func TestPagingRunsAreInterleaved(t *testing.T) {
	p := Plan{Ideal: 64 * mib, Shares: []float64{0.25, 0.5}, Repeats: 2, GiveUp: 5}
	runs := p.Runs()[1:]
	count := map[Run]int{}
	for i := 0; i < len(runs); i += 2 {
		a, b := runs[i], runs[i+1]
		if a.Share != b.Share || a.Round != b.Round || a.Way == b.Way {
			t.Errorf("%v, then %v", a, b)
		}
		count[a]++
		count[b]++
	}
	if len(count) != 12 {
		t.Errorf("%d different runs, want 12", len(count))
	}
}

// shell returns a container for a shell script, or skips the test on a machine that cannot make containers.
func shell(t *testing.T, dir, script string) *profiler.Container {
	t.Helper()
	c, err := profiler.NewContainer(cluster.Command{Args: []string{"sh", "-c", script}}, os.Environ(), dir, 1000)
	if err != nil {
		t.Skipf("needs control groups with a memory controller: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A program really pages to a file, which does not exist afterwards.
func TestSwapFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	if DeviceOf(dir) == "unknown" {
		t.Skip("needs a folder on a disk")
	}
	testswap.Lock(t)
	swap, err := NewSwapFile(dir, 64*mib)
	if err != nil {
		t.Skipf("no swap file can be had: %v", err)
	}
	closed := false
	defer func() {
		if !closed {
			swap.Close()
		}
	}()
	if _, err := NewSwapFile(dir, 64*mib); err == nil || !strings.Contains(err.Error(), "already swaps to "+swap.Path()) {
		t.Errorf("a second one: %v", err)
	}
	if host, err := cgroup.Discover(""); err == nil {
		if _, ok := host.Serves(cgroup.Memory); ok {
			c := shell(t, dir, "x=$(head -c 20000000 /dev/zero | tr '\\0' x); printf %s $x | wc -c > length")
			var m profiler.Measurement
			for range 3 { // a program that pages without an anchor is killed now and then, although swap has space
				m, err = InContainer(c, 64*mib).RunWay(context.Background(), Page, 16*mib)
				if m.Failure != "the kernel killed it for memory" {
					break
				}
			}
			if err != nil || m.Failure != "" {
				t.Errorf("paging: %+v, %v", m, err)
			}
			if text, _ := os.ReadFile(filepath.Join(dir, "length")); string(text) != "20000000\n" {
				t.Errorf("length %q", text)
			}
		}
	}
	closed = true
	if err := swap.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	for _, e := range left {
		if strings.Contains(e.Name(), "swap") {
			t.Errorf("left behind: %s, %v", e.Name(), err)
		}
	}
}

func TestDescribeDevice(t *testing.T) {
	sys := t.TempDir()
	disk := filepath.Join(sys, "devices", "vda")
	part := filepath.Join(disk, "vda1")
	for _, d := range []string{filepath.Join(disk, "queue"), filepath.Join(disk, "device"), part,
		filepath.Join(sys, "dev", "block")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{filepath.Join(disk, "queue", "rotational"): "0\n",
		filepath.Join(part, "partition"): "1\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		filepath.Join(sys, "dev", "block", "254:1"): part,
		filepath.Join(disk, "device", "driver"):     "../../bus/drivers/virtio_blk",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if got := describeDevice(sys, 254, 1); got != "virtio disk, solid state" {
		t.Errorf("%q", got)
	}
	if got := describeDevice(sys, 9, 9); got != "unknown" {
		t.Errorf("%q", got)
	}
}
