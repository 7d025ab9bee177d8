package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/internal/recordingdisk"
	"github.com/bellows-rm/bellows/sim/trial"
)

// contest is a slow disk with one arm, a daemon on it, and files to read, one for each of some readers. They hinder
// each other.
type contest struct {
	t       testing.TB
	disk    *recordingdisk.Disk
	state   string
	readers int
}

// newContest starts a daemon with a policy, and no reader.
func newContest(t testing.TB, policy string, settings ...string) *contest {
	needControlGroups(t)
	c := &contest{t: t, disk: recordingdisk.New(t, 192<<20), readers: 4}
	for i := range c.readers {
		if err := durable.Write(c.file(i), make([]byte, 16<<20)); err != nil {
			t.Fatal(err)
		}
	}
	c.disk.Slow(recordingdisk.Pace{Rate: 32 << 20, Seek: 8 * time.Millisecond})
	c.state = filepath.Join(c.disk.Path(), "s")
	up := []string{"up", "--memory", "512MiB", "--policy", policy, "--detach"}
	for _, s := range settings {
		up = append(up, "--set", s)
	}
	c.bellows(up...)
	t.Cleanup(func() { c.bellows("down", "--force") })
	return c
}

func (c *contest) file(i int) string { return filepath.Join(c.disk.Path(), fmt.Sprint(i)) }

// readersOn starts a daemon with the policy prophet, and a job for each reader, which reads its file in order without
// end.
func readersOn(t testing.TB, settings ...string) *contest {
	c := newContest(t, "prophet", settings...)
	for i := range c.readers {
		c.bellows("run", "-d", "--memory", "64MiB", "--cpus", "100m", "--", "sh", "-c",
			"while :; do dd if="+c.file(i)+" of=/dev/null bs=128k iflag=direct 2>/dev/null; done")
	}
	return c
}

// readerModule is a function of a pool that reads a part of a file in order, past the page cache.
const readerModule = `import subprocess

def read(file):
    subprocess.run(["dd", "if=" + file, "of=/dev/null", "bs=128k", "count=16", "iflag=direct"], check=True, capture_output=True)
`

// poolOn starts a daemon and a pool of an executor for each reader, and calls the function for each file in turn,
// until the test is over.
func poolOn(t testing.TB, settings ...string) *contest {
	c := newContest(t, "fifo")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "reader.py"), []byte(readerModule), 0o644); err != nil {
		t.Fatal(err)
	}
	create := []string{"pool", "create", "readers", "--memory", "64MiB", "--cpus", "100m", "--max", fmt.Sprint(c.readers)}
	for _, s := range settings {
		create = append(create, "--set", s)
	}
	c.bellows(create...)
	var files strings.Builder
	for i := range 100_000 {
		fmt.Fprintln(&files, c.file(i%c.readers))
	}
	cmd := exec.Command("bellows", "map", "--pool", "readers", "reader:read")
	cmd.Env, cmd.Dir, cmd.Stdin = append(os.Environ(), "BELLOWS_STATE="+c.state), dir, strings.NewReader(files.String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return c
}

// bellows runs a command, and returns what it says, however its lines are folded.
func (c *contest) bellows(args ...string) string {
	c.t.Helper()
	cmd := exec.Command("bellows", args...)
	cmd.Env = append(os.Environ(), "BELLOWS_STATE="+c.state)
	said, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Errorf("%v: %v: %s", args, err, said)
	}
	return strings.Join(strings.Fields(string(said)), " ")
}

func (c *contest) await(what string, args ...string) {
	c.t.Helper()
	said := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if said = c.bellows(args...); strings.Contains(said, what) {
			return
		}
	}
	c.t.Errorf("%v does not say %q in time: %s", args, what, said)
}

// Programs that read from the same slow disk hinder each other: the daemon sees that the disk is pressed and says so,
// the policy prophet throttles the programs for a while, and the disk is not pressed any more when they have ended.
func TestPressedDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	t.Parallel() // it mostly waits
	c := readersOn(t, "prophet.backoff=5s")
	c.await("throttled to", "ps", "1")
	c.await("of disk until", "explain", "1")
	c.await("node pressure: the node gives", "explain", "1")
	c.await("is pressed: it is busy for several containers, and gives", "status")
	for i := 1; i < c.readers; i++ {
		c.bellows("kill", fmt.Sprint(i))
	}
	said := ""
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if said = c.bellows("status"); strings.Contains(said, "1 task running") && !strings.Contains(said, "is pressed") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the disk stays pressed: %s", said)
		}
	}
	text, err := os.ReadFile(filepath.Join(c.state, "daemon.log"))
	if err != nil || !strings.Contains(string(text), "the disk is not pressed any more") {
		t.Errorf("the daemon's log says %s (%v)", text, err)
	}
}

// Executors of a pool that read from the same slow disk hinder each other: their application has fewer of them for a
// while, says why, and has all of them again.
func TestPressedPool(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	t.Parallel() // it mostly waits
	c := poolOn(t)
	c.await("holds 4 executors; running tasks: 4", "pool", "explain", "readers")
	c.await("is pressed: it is busy for several containers, and gives", "status")
	c.await("holds 2 executors; running tasks: 2", "pool", "explain", "readers")
	c.await("because it uses much of what is short: the machine gives", "pool", "explain", "readers")
	c.await("holds 4 executors; running tasks: 4", "pool", "explain", "readers")
}

// BenchmarkPressedDisk measures what readers of a disk with one arm get together: jobs without back-off, by shares,
// and by turns, and a pool without back-off and with it. It takes some 45 minutes, more than the default -timeout.
func BenchmarkPressedDisk(b *testing.B) {
	b.Run("jobs", func(b *testing.B) {
		compareContests(b, readersOn, [][]string{{"prophet.backoff=0s"}, {"prophet.backoff=5s", "prophet.relief=share"},
			{"prophet.backoff=5s", "prophet.relief=turns"}, {"prophet.backoff=15s", "prophet.relief=turns"}})
	})
	b.Run("pool", func(b *testing.B) {
		compareContests(b, poolOn, [][]string{{"mira.backoff=0s"}, {"mira.backoff=5s"}, {"mira.backoff=15s"}})
	})
}

// compareContests measures every setting for 24 s in each of nine rounds, odd rounds in the reverse order. At the end
// it reports, for each setting, the mean speed and the geometric mean of the ratios to the speed with the first
// setting in the same round, with their 95 % confidence intervals.
func compareContests(b *testing.B, start func(testing.TB, ...string) *contest, settings [][]string) {
	const rounds = 9
	speeds := make([][rounds]float64, len(settings)) // MB/s; 0 is not measured
	for round := range rounds {
		for i := range settings {
			if round%2 == 1 {
				i = len(settings) - 1 - i
			}
			b.Run(fmt.Sprintf("%s/round=%d", strings.Join(settings[i], ","), round), func(b *testing.B) {
				speeds[i][round] = benchmarkContest(b, start(b, settings[i]...))
			})
		}
	}
	for i := range settings {
		var measured, ratios []float64
		for round, speed := range speeds[i] {
			if speed > 0 {
				measured = append(measured, speed)
			}
			if base := speeds[0][round]; speed > 0 && base > 0 {
				ratios = append(ratios, speed/base)
			}
		}
		b.Run(strings.Join(settings[i], ",")+"/all", func(b *testing.B) {
			report(b, trial.Mean(measured), "MB/s")
			report(b, trial.GeometricMean(ratios), "ratio")
			b.ReportMetric(0, "ns/op") // means nothing
		})
	}
}

// benchmarkContest returns what readers get together, MB/s.
func benchmarkContest(b *testing.B, c *contest) (speed float64) {
	time.Sleep(5 * time.Second) // until the first pressure has been seen
	for b.Loop() {
		before := c.read()
		began := time.Now()
		time.Sleep(24 * time.Second) // three turns
		speed = float64(c.read()-before) / 1e6 / time.Since(began).Seconds()
	}
	b.ReportMetric(speed, "MB/s")
	return speed
}

// report reports an estimate as far as it is known.
func report(b *testing.B, e trial.Estimate, unit string) {
	if e.Known() {
		b.ReportMetric(e.Mean, unit)
	}
	if e.Interval() {
		b.ReportMetric(e.Low, "low-"+unit)
		b.ReportMetric(e.High, "high-"+unit)
	}
}

// read returns how much has been read from the disk, in bytes.
func (c *contest) read() (n int64) {
	c.t.Helper()
	device, err := c.disk.Device()
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("/sys/dev/block", device, "stat"))
	if err != nil {
		c.t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	if _, err := fmt.Sscan(fields[2], &n); err != nil {
		c.t.Fatal(err)
	}
	return 512 * n
}
