package profiler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// scripted is a program that needs 8 MiB not to spill, does not work below 4 MiB, and gets slower with every run.
type scripted struct{ runs int }

func (s *scripted) Run(_ context.Context, memory resource.Amount) (Measurement, error) {
	s.runs++
	m := Measurement{Duration: time.Duration(100+s.runs) * time.Millisecond, Written: 5000, Peak: memory}
	switch {
	case memory < 4*mib:
		m.Failure = "the kernel killed it for memory"
	case memory < 8*mib:
		m.Duration *= 2
		m.Written += 70_000
	}
	return m, nil
}

func TestMeasure(t *testing.T) {
	p := Plan{Fitted: []resource.Amount{2 * mib, 4 * mib, 16 * mib}, HeldOut: []resource.Amount{3 * mib, 8 * mib},
		Repeats: 2}
	var program scripted
	seen := 0
	res, err := Measure(context.Background(), &program, &p, func(done, all int, _ Run, _ Measurement) {
		seen++
		if done > all || all != 11 {
			t.Errorf("told of run %d of %d", done, all)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	// The two sizes that fail are run once each.
	if program.runs != 9 || seen != 9 {
		t.Errorf("%d runs, %d told, want 9", program.runs, seen)
	}
	if len(res.Failed) != 2 || res.Failed[0].Memory != 2*mib || res.Failed[1].Memory != 3*mib {
		t.Errorf("failed: %v", res.Failed)
	}
	want := []struct {
		s       profile.Sample
		memory  resource.Amount
		spilled resource.Amount
	}{
		{res.Fitted[0], 4 * mib, 70_000}, {res.Fitted[1], 16 * mib, 0}, {res.HeldOut[0], 8 * mib, 0},
	}
	for _, w := range want {
		if w.s.Memory != w.memory || w.s.Spilled != w.spilled || len(w.s.Repeats) != 2 ||
			w.s.Duration != min(w.s.Repeats[0], w.s.Repeats[1]) {
			t.Errorf("sample %+v, want memory %d and %d spilled", w.s, w.memory, w.spilled)
		}
	}
	if res.Beside[4*mib].Peak != 4*mib {
		t.Errorf("beside: %+v", res.Beside)
	}
}

// broken cannot run anything.
type broken struct{}

func (broken) Run(context.Context, resource.Amount) (Measurement, error) {
	return Measurement{}, errors.New("no room")
}

func TestMeasureStopsAtErrors(t *testing.T) {
	p := Plan{Fitted: []resource.Amount{2 * mib, 4 * mib}, Repeats: 1}
	if _, err := Measure(context.Background(), broken{}, &p, nil); err == nil || err.Error() != "run with 4MiB: no room" {
		t.Errorf("%v", err)
	}
}

func TestBufferOf(t *testing.T) {
	tests := []struct {
		arg            string
		overhead, most resource.Amount
		want           profile.Buffer
		ok             bool
	}{
		{"{memory}", 0, 1 << 30, profile.Buffer{Share: 1, Overhead: 16 * mib}, true},
		{"-S{memory*0.8:K}", 0, 1 << 30, profile.Buffer{Share: 0.8}, true},
		{"{memory-16MiB:M}", 0, 1 << 30, profile.Buffer{Share: 1, Overhead: 16 * mib}, true},
		{"{memory/2-4MiB}", mib, 1 << 30, profile.Buffer{Share: 0.5, Overhead: 5 * mib}, true},
		{"plain", mib, 1 << 30, profile.Buffer{Share: 1, Overhead: mib}, true},
		{"{memory*2}", 0, 1 << 30, profile.Buffer{}, false},
		{"{memory*x}", 0, 1 << 30, profile.Buffer{}, false},
	}
	for _, tt := range tests {
		got, err := BufferOf(cluster.Command{Args: []string{"sort", tt.arg}}, tt.overhead, tt.most)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.arg, err)
			continue
		}
		if err == nil && (got.Share != tt.want.Share || got.Overhead > tt.want.Overhead+1 ||
			got.Overhead < tt.want.Overhead-1) {
			t.Errorf("%s: %+v, want %+v", tt.arg, got, tt.want)
		}
	}
}

// container returns a Container for a shell script, or skips the test where there can be none.
func container(t *testing.T, dir, script string) *Container {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	c, err := NewContainer(cluster.Command{Args: []string{"sh", "-c", script}}, os.Environ(), dir, 1000)
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

func TestContainerMeasures(t *testing.T) {
	dir := t.TempDir()
	c := container(t, dir, "head -c 3000000 /dev/zero > out; echo {memory*1:MiB} > size")
	m, err := c.Run(context.Background(), 32*mib)
	if err != nil || m.Failure != "" {
		t.Fatalf("%+v, %v", m, err)
	}
	size, _ := os.ReadFile(filepath.Join(dir, "size"))
	if string(size) != "32\n" {
		t.Errorf("{memory*1:MiB} became %q", size)
	}
	if m.Duration <= 0 || m.Peak <= 0 || m.Peak > 32*mib {
		t.Errorf("%+v: want a duration, and a peak below the bound", m)
	}
	if onDisk(dir) && (m.Written < 3_000_000 || m.Written > 4_000_000) {
		t.Errorf("wrote %d bytes, want about 3000000", m.Written)
	}
}

// onDisk reports whether writes in dir are counted: those to a file system in memory are not.
func onDisk(dir string) bool {
	text, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return false
	}
	best, kind := "", ""
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 2 && strings.HasPrefix(dir+"/", strings.TrimSuffix(f[1], "/")+"/") && len(f[1]) >= len(best) {
			best, kind = f[1], f[2]
		}
	}
	return kind == "ext4" || kind == "xfs" || kind == "btrfs"
}

func TestContainerSaysWhyARunFailed(t *testing.T) {
	tests := []struct{ script, want string }{
		{"x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo $x", "for memory"},
		{"echo first >&2; echo no such key >&2; exit 3", "exit status 3: no such key"},
	}
	for _, tt := range tests {
		c := container(t, t.TempDir(), tt.script)
		m, err := c.Run(context.Background(), 16*mib)
		if err != nil || !strings.Contains(m.Failure, tt.want) {
			t.Errorf("%s: failure %q, %v, want %q", tt.script, m.Failure, err, tt.want)
		}
	}
}

func TestContainerIsInterruptible(t *testing.T) {
	dir := t.TempDir()
	c := container(t, dir, "echo > begun; sleep 1000 & wait")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, 16*mib)
		done <- err
	}()
	for {
		if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("ended too soon: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
}

func ExampleSplit() {
	fitted, heldOut := Split([]resource.Amount{64 * mib, 128 * mib, 256 * mib, 512 * mib, 1024 * mib})
	for _, m := range fitted {
		fmt.Println("fit to ", resource.FormatMemory(m))
	}
	for _, m := range heldOut {
		fmt.Println("try on ", resource.FormatMemory(m))
	}
	// Output:
	// fit to  64MiB
	// fit to  256MiB
	// fit to  1GiB
	// try on  128MiB
	// try on  512MiB
}
