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
	"github.com/bellows-rm/bellows/trial"
)

// contest is a slow disk with one arm and programs that read from it, each its own file in order without end, until the test
// is over. They hinder each other.
type contest struct {
	t       testing.TB
	disk    *recordingdisk.Disk
	state   string
	readers int
}

// newContest starts a daemon with the policy prophet, and four readers.
func newContest(t testing.TB, settings ...string) *contest {
	needControlGroups(t)
	c := &contest{t: t, disk: recordingdisk.New(t, 192<<20), readers: 4}
	file := func(i int) string { return filepath.Join(c.disk.Path(), fmt.Sprint(i)) }
	for i := range c.readers {
		if err := durable.Write(file(i), make([]byte, 16<<20)); err != nil {
			t.Fatal(err)
		}
	}
	c.disk.Slow(recordingdisk.Pace{Rate: 32 << 20, Seek: 8 * time.Millisecond})
	c.state = filepath.Join(c.disk.Path(), "s")
	up := []string{"up", "--memory", "512MiB", "--policy", "prophet", "--detach"}
	for _, s := range settings {
		up = append(up, "--set", s)
	}
	c.bellows(up...)
	t.Cleanup(func() { c.bellows("down", "--force") })
	for i := range c.readers {
		c.bellows("run", "-d", "--memory", "64MiB", "--cpus", "100m", "--", "sh", "-c",
			"while :; do dd if="+file(i)+" of=/dev/null bs=128k iflag=direct 2>/dev/null; done")
	}
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

// Programs that read from the same slow disk hinder each other: the daemon sees that the disk is pressed and says so, the
// policy prophet throttles the programs for a while, and the disk is not pressed any more when they have ended.
func TestPressedDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	t.Parallel() // it mostly waits
	c := newContest(t, "prophet.backoff=5s")
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

// BenchmarkPressedDisk measures what readers of a disk with one arm get together, without back-off, by shares, and by turns.
// Each of nine rounds measures every setting for 24 s, odd rounds in the reverse order. At the end it reports, for each setting,
// the mean speed and the geometric mean of the ratios to the speed without back-off in the same round, with their 95 % confidence
// intervals. It takes some 25 minutes, more than the default -timeout.
func BenchmarkPressedDisk(b *testing.B) {
	const rounds = 9
	settings := [][]string{{"prophet.backoff=0s"}, {"prophet.backoff=5s", "prophet.relief=share"},
		{"prophet.backoff=5s", "prophet.relief=turns"}, {"prophet.backoff=15s", "prophet.relief=turns"}}
	speeds := make([][rounds]float64, len(settings)) // MB/s; 0 is not measured
	for round := range rounds {
		for i := range settings {
			if round%2 == 1 {
				i = len(settings) - 1 - i
			}
			b.Run(fmt.Sprintf("%s/round=%d", strings.Join(settings[i], ","), round), func(b *testing.B) {
				speeds[i][round] = benchmarkContest(b, settings[i])
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
func benchmarkContest(b *testing.B, settings []string) (speed float64) {
	c := newContest(b, settings...)
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
