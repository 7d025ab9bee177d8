package live_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/internal/recordingdisk"
	"github.com/bellows-rm/bellows/live/api"
)

var (
	cuts    = flag.Int("cuts", 8, "at how many moments TestPowerLoss cuts the power")
	cutSeed = flag.Uint64("cut-seed", 0, "what the random moments of TestPowerLoss come from; 0 is the time")
)

// word is the daemon's statement about a job, with the number of writes and flushes that the disk had received by then.
type word struct {
	at    int
	name  string
	id    cluster.JobID
	ended bool
}

// kindOf is the act in play of which a job of TestPowerLoss is an instance.
func kindOf(name string) act {
	kind, _, _ := strings.Cut(name, "-")
	return play[kind]
}

// blackout is a state directory on a disk whose power fails.
type blackout struct {
	t     *testing.T
	disk  *recordingdisk.Disk
	ran   string
	words []word
}

func (b *blackout) state() string { return filepath.Join(b.disk.Path(), "state") }

func (b *blackout) ask(name string) ask {
	ran := filepath.Join(b.ran, name)
	if err := os.MkdirAll(ran, 0o700); err != nil {
		b.t.Fatal(err)
	}
	return ask{Submit: kindOf(name).submission(name, ran)}
}

// record makes a daemon run jobs, and records its statements and their times.
func (b *blackout) record(rounds int) {
	p := startDaemon(b.t, b.state(), "prophet")
	for round := range rounds {
		ids := map[string]cluster.JobID{}
		names := []string{"plain", "retry", "flex", "failed", "gang", "slowed"}
		for i, kind := range names {
			names[i] = fmt.Sprintf("%s-%d", kind, round)
			ids[names[i]] = p.mustAsk(b.ask(names[i])).ID
			b.words = append(b.words, word{b.disk.Now(), names[i], ids[names[i]], false})
		}
		for _, name := range names {
			p.mustAsk(askWait(ids[name]))
			b.words = append(b.words, word{b.disk.Now(), name, ids[name], true})
		}
	}
	b.down(p)
}

// down stops a daemon and unmounts the file system.
func (b *blackout) down(p *process) {
	b.t.Helper()
	p.mustAsk(ask{Tidy: true})
	if err := p.command.Wait(); err != nil {
		b.t.Errorf("the daemon ended with %v: %s", err, p.errors)
	}
	if err := b.disk.Unmount(); err != nil {
		b.t.Fatal(err)
	}
}

// starts is how many times tasks of a job started.
func (b *blackout) starts(name string) (n int) {
	paths, err := filepath.Glob(filepath.Join(b.ran, name, "[0-9]*-[0-9]*"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			b.t.Fatal(err)
		}
		n += strings.Count(string(text), "\n")
	}
	return n
}

// restart starts a daemon on the contents of the disk after a cut and lets all jobs end. It returns the contradictions
// to the statements before the cut, and the time until the daemon answered.
func (b *blackout) restart(at int) (wrong []string, up time.Duration) {
	b.t.Helper()
	before := map[string]int{}
	for _, w := range b.words {
		before[w.name] = b.starts(w.name)
	}
	began := time.Now()
	p := startDaemon(b.t, b.state(), "prophet")
	jobs := map[string]api.Job{}
	list := p.mustAsk(askJobs()).Jobs
	up = time.Since(began)
	p.mustAsk(askWait(p.mustAsk(b.ask("after")).ID))
	for _, j := range list {
		if _, twice := jobs[j.Name]; twice {
			wrong = append(wrong, fmt.Sprintf("job %s is there twice", j.Name))
		}
		jobs[j.Name] = p.mustAsk(askWait(j.ID)).Jobs[0]
	}
	b.down(p)
	for _, w := range b.words {
		if w.at > at {
			continue
		}
		j, ok := jobs[w.name]
		switch again := b.starts(w.name) - before[w.name]; {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("job %s is lost", w.name))
		case j.ID != w.id:
			wrong = append(wrong, fmt.Sprintf("job %s was said to be %d, but is %d", w.name, w.id, j.ID))
		case j.Status.String() != kindOf(w.name).status && (w.ended || !failedByLoss(&j)):
			wrong = append(wrong, fmt.Sprintf("job %s is %s: %s", w.name, j.Status, j.Detail))
		case w.ended && again > 0:
			wrong = append(wrong, fmt.Sprintf("job %s had ended, and %d tasks ran again", w.name, again))
		}
	}
	return wrong, up
}

// After a power failure at any moment the daemon starts, has every job that it acknowledged, and does not run a job
// again that it reported as ended. The same test detects a disk that loses flushed data.
func TestPowerLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short; needs root, FUSE and loop devices")
	}
	needCgroups(t)
	seed := *cutSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again: go test ./live -run TestPowerLoss -cuts %d -cut-seed %d", *cuts, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	b := &blackout{t: t, disk: recordingdisk.New(t, 64<<20), ran: t.TempDir()}
	b.record(3)
	total := b.disk.Now()
	var slowest time.Duration
	for n := range *cuts {
		at := random.IntN(total + 1)
		if n%4 == 0 { // while the daemon makes its state directory
			at = random.IntN(b.words[0].at + 1)
		}
		if err := b.disk.MountAfterCut(at, random); err != nil {
			t.Fatalf("cut %d, after %d of %d records: %v", n, at, total, err)
		}
		wrong, up := b.restart(at)
		for _, what := range wrong {
			t.Errorf("cut %d, after %d of %d records: %s", n, at, total, what)
		}
		slowest = max(slowest, up)
	}
	t.Logf("%d cuts in %d writes and flushes; the daemon answered after %v at most", *cuts, total, slowest)
	if most := 5 * time.Second; slowest > most {
		t.Errorf("the daemon answered after %v, want at most %v", slowest, most)
	}
	if err := b.disk.MountForgetful(total / 3); err != nil {
		t.Fatal(err)
	}
	wrong, _ := b.restart(total)
	if !slices.ContainsFunc(wrong, func(what string) bool { return strings.HasSuffix(what, "is lost") }) {
		t.Errorf("a disk that forgot two thirds of what it was told to keep was not found out: %q", wrong)
	}
}
