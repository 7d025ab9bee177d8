package live

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/learn"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/store"
)

var (
	lifeJobs = flag.Int("life-jobs", 400, "how many jobs TestLongLife runs in 72 hours of the machine's time")
	lifeSeed = flag.Uint64("life-seed", 0, "what the machine of TestLongLife comes from; 0 is the time")
)

// lifeLoad is how many jobs per second TestLongLife submits at most: the machine has 40 times 100 millicores, and a
// job runs for 10 s on average, so that half of the machine is busy.
const lifeLoad = 2

// holding is what a driver holds at one moment.
type holding struct {
	heap, resident, stored  int64 // bytes: of objects in use, of the process (VmRSS), and of the store's files
	goroutines, descriptors int
	files                   int // of the state directory
	kept, open              int // jobs that have ended, and that have not
	apps                    int // of which something was learned
}

func (h holding) String() string {
	return fmt.Sprintf("heap %d KiB, RSS %d KiB, store %d KiB, %d goroutines, %d descriptors, %d files, %d jobs "+
		"kept, %d open, %d applications", h.heap>>10, h.resident>>10, h.stored>>10, h.goroutines, h.descriptors, h.files,
		h.kept, h.open, h.apps)
}

// holds measures a driver between two jobs.
func (r *rig) holds() (h holding) {
	r.t.Helper()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.heap, h.goroutines = int64(m.HeapAlloc), runtime.NumGoroutine()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		r.t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		r.t.Fatal(err)
	}
	h.resident = pages * int64(os.Getpagesize())
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		r.t.Fatal(err)
	}
	h.descriptors = len(open)
	if err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		h.files++
		if ok, _ := filepath.Match(store.File+"*", e.Name()); ok {
			info, err := e.Info()
			if err != nil {
				return err
			}
			h.stored += info.Size()
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	h.kept = len(r.all(1 << 20))
	jobs, err := r.Jobs(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	h.open, h.kept = len(jobs), h.kept-len(jobs)
	apps, err := r.store.Apps(context.Background(), user.UID, user.User)
	if err != nil {
		r.t.Fatal(err)
	}
	h.apps = len(apps)
	return h
}

// In 72 hours of a machine that does everything that it may do, and with restarts, what the driver holds stays as it
// was: memory, goroutines, descriptors, files and the store. Time is compressed: the machine and its programs are
// simulated, and the driver and its store are real.
func TestLongLife(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	seed := *lifeSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again: go test ./live -run TestLongLife -life-jobs %d -life-seed %d", *lifeJobs, seed)
	memory := "/dev/shm" // A disk takes longer for each commit than all else.
	if _, err := os.Stat(memory); err != nil {
		memory = ""
	}
	dir, err := os.MkdirTemp(memory, "bellows")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+store.Mark)) }()
	synctest.Test(t, func(t *testing.T) { longLife(t, dir, *lifeJobs, rand.New(rand.NewPCG(seed, 0))) })
}

func longLife(t *testing.T, dir string, jobs int, random *rand.Rand) {
	const samples, shift = 24, 3 * time.Hour // one sample and one restart per shift
	m := newMachine(rand.New(rand.NewPCG(random.Uint64(), 0)))
	keep := retention.Rule{For: 24 * time.Hour, Jobs: min(1000, jobs/10), Output: resource.GiB, Events: 16 * resource.MiB}
	r := &rig{t: t, dir: dir, keep: &keep, logTo: io.Discard}
	start := func() {
		p, err := policy.New("fair", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.open()
		r.startOn(p, m.connect())
	}
	start()
	each := max(1, (jobs+samples-1)/samples)
	pause := max(shift/time.Duration(each), time.Second/lifeLoad)
	var seen []holding
	ended := 0
	for range samples {
		begun := time.Now()
		for range each {
			r.submit(lifeJob(random))
			time.Sleep(time.Duration(random.Int64N(int64(2 * pause))))
		}
		time.Sleep(max(0, shift-time.Since(begun)))
		if _, err := r.Prune(t.Context(), keep, false); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, r.holds())
		m.mu.Lock()
		ended += len(m.starts)
		clear(m.starts)
		m.mu.Unlock()
		r.end()
		time.Sleep(time.Duration(random.IntN(60)) * time.Second)
		start()
	}
	r.end()
	for i, h := range seen {
		t.Logf("after %v: %v", time.Duration(i+1)*shift, h)
	}
	t.Logf("%d jobs were submitted, %d containers started", each*samples, ended)
	grows := func(what string, of func(holding) int64, slack int64) {
		var all []int64
		for _, h := range seen[samples/4:] { // Caches have filled by then.
			all = append(all, of(h))
		}
		// The median, since a sample may fall on a moment of much work.
		median := func(of []int64) int64 { slices.Sort(of); return of[len(of)/2] }
		first, later := median(all[:len(all)/2]), median(all[len(all)/2:])
		if later > first+first/10+slack {
			t.Errorf("%s grows: %d at first, and %d later", what, first, later)
		}
	}
	for _, h := range seen {
		if h.apps > learn.AppsKept+2*learn.AppsBeyond {
			t.Errorf("%d applications are known, want at most %d, and those of the latest jobs", h.apps, learn.AppsKept)
		}
	}
	grows("memory in bytes", func(h holding) int64 { return h.heap }, 1<<20)
	grows("RSS in bytes", func(h holding) int64 { return h.resident }, 4<<20)
	grows("the store in bytes", func(h holding) int64 { return h.stored }, 1<<20)
	// of programs that run just now
	grows("the number of goroutines", func(h holding) int64 { return int64(h.goroutines) }, 20)
	grows("the number of descriptors", func(h holding) int64 { return int64(h.descriptors) }, 4)
	grows("the number of files", func(h holding) int64 { return int64(h.files) }, samples) // the event log of each run
}

// lifeJob is a small job: nine of ten have one task. One of ten is of a program that runs again and again, the others
// are of programs that never do.
func lifeJob(random *rand.Rand) Submission {
	memory := resource.Amount(8+random.IntN(16)) * resource.MiB
	tasks := 1
	if random.IntN(10) == 0 {
		tasks += random.IntN(3)
	}
	name := []byte("again-")
	if random.IntN(10) > 0 {
		name = []byte("once-")
		for range 9 { // Digits would not tell programs apart.
			name = append(name, byte('a'+random.IntN(26)))
		}
	}
	return Submission{Job: cluster.Job{Name: string(name), MaxAttempts: 2, Stages: []cluster.Stage{{Tasks: tasks,
		Ideal: resource.Of(100, memory), Command: cluster.Command{Args: []string{"true"}}}}}, Caller: user, Dir: "/"}
}
