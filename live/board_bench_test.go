package live

import (
	"context"
	"database/sql"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/store"
)

const (
	benchContainers = 100
	benchStored     = 10_000
	benchReads      = 1000 // per second
	benchWatchers   = 50
)

// busy is a driver with running containers and a store of jobs that have ended.
type busy struct {
	*rig
	running []cluster.Order
	random  *rand.Rand
}

func newBusy(b *testing.B) *busy {
	r := &busy{rig: &rig{t: b, dir: b.TempDir(), fake: &fake{events: make(chan cluster.Event, 1000),
		orders: make(chan cluster.Order, 1000), forgotten: map[cluster.ContainerID]bool{}}, logTo: io.Discard},
		random: rand.New(rand.NewPCG(1, 2))}
	node := cluster.Node{Name: "n1", Capacity: resource.Of(benchContainers*resource.Core,
		benchContainers*400*resource.MiB)}
	r.fake.events <- cluster.Event{Kind: cluster.NodeJoined, NewNode: &node}
	r.fake.events <- cluster.Event{Kind: cluster.Synced}
	r.open()
	db, err := sql.Open("sqlite", filepath.Join(r.dir, store.File))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := db.Exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO jobs (owner_uid, owner_name, name, status, ended, submitted_ns, started_ns, finished_ns, exit_code, request, task_count, succeeded_count)
		SELECT 2000, 'ada', 'old', 'succeeded', 1, 1, 2, 3, 0, '{}', 1, 1 FROM n`, benchStored); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	r.start(fifo(b))
	b.Cleanup(r.end)
	for range benchContainers {
		r.submit(submission(1))
		r.launch()
	}
	return r
}

// launch carries out the next start.
func (r *busy) launch() {
	o := r.order(cluster.Start)
	r.fake.launched(o)
	r.running = append(r.running, o)
}

// trip returns the time from the end of a container to the start of the next.
func (r *busy) trip() time.Duration {
	r.submit(submission(1))
	at := r.random.IntN(len(r.running))
	ends := r.running[at]
	r.running = slices.Delete(r.running, at, at+1)
	begun := time.Now()
	r.fake.ended(ends.Container, cluster.Succeeded, 0)
	r.launch()
	return time.Since(begun)
}

// readKinds are what callers read.
var readKinds = []string{"job", "list", "page", "explanation"}

// read reads. inLoop computes what is on the board in the loop, as it was done before there was one.
func (r *busy) read(random *rand.Rand, kind string, inLoop bool) (err error) {
	ctx := context.Background()
	id := cluster.JobID(benchStored + 1 + random.IntN(benchContainers))
	view := func(ids ...cluster.JobID) error {
		return r.look(ctx, func() {
			for _, id := range ids {
				if j := r.jobs[id]; j != nil {
					_ = r.shownAs(j, nil, 1).Whole(r.now())
				}
			}
		})
	}
	switch {
	case kind == "job" && inLoop:
		err = view(id)
	case kind == "job":
		_, err = r.Job(ctx, id, false)
	case kind == "list" && inLoop:
		err = r.look(ctx, func() {
			for _, id := range r.openJobs() {
				_ = r.shownAs(r.jobs[id], nil, 1).Job
			}
		})
	case kind == "list":
		_, err = r.Jobs(ctx)
	case kind == "page" && inLoop:
		if _, err = r.store.List(ctx, cluster.JobID(random.IntN(benchStored)), 100); err == nil {
			err = view() // None of them is here.
		}
	case kind == "page":
		_, err = r.JobsAfter(ctx, cluster.JobID(random.IntN(benchStored)), 100)
	default:
		_, err = r.Explain(ctx, id)
	}
	return err
}

// any reads as callers do: mostly a job, sometimes a page of jobs, seldom an explanation.
func (r *busy) any(random *rand.Rand, inLoop bool) error {
	return r.read(random, []string{"job", "job", "job", "job", "job", "job", "page", "page", "page",
		"explanation"}[random.IntN(10)], inLoop)
}

// reads reads benchReads times per second until stop is called, which returns how long each took. Whoever is late
// catches up, and the wait counts.
func (r *busy) reads(inLoop bool) (stop func() []time.Duration) {
	const readers = 10
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	ends := make(chan struct{})
	for i := range readers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 3))
			due := time.Now().Add(time.Duration(random.IntN(readers)) * time.Second / benchReads)
			for {
				select {
				case <-ends:
					return
				case <-time.After(time.Until(due)):
				}
				if err := r.any(random, inLoop); err != nil {
					r.t.Error(err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(due))
				mu.Unlock()
				due = due.Add(readers * time.Second / benchReads)
			}
		})
	}
	return func() []time.Duration {
		close(ends)
		all.Wait()
		return took
	}
}

// watch has callers follow the changes, as the server does for its clients, until stop is called.
func (r *busy) watch() (stop func() []time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range benchWatchers {
		all.Go(func() {
			for from := int64(0); ctx.Err() == nil; {
				if u, err := r.Changes(ctx, from); err == nil {
					from = u.Revision
				}
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	return func() []time.Duration {
		cancel()
		all.Wait()
		return nil
	}
}

// BenchmarkReads measures, in turn, the time from the end of a container to the start of the next without readers,
// with 1,000 reads per second from the board, with as many that the loop answers, and with 50 callers who follow the
// changes; and how long the reads take. A trip has two commits to the disk.
func BenchmarkReads(b *testing.B) {
	r := newBusy(b)
	ways := map[string]func() (stop func() []time.Duration){
		"none": func() func() []time.Duration { return func() []time.Duration { return nil } },
		"board": func() func() []time.Duration {
			return r.reads(false)
		}, "loop": func() func() []time.Duration { return r.reads(true) }, "watchers": r.watch}
	trips, reads := map[string][]time.Duration{}, map[string][]time.Duration{}
	for b.Loop() {
		for way, start := range ways {
			stop := start()
			for range 50 {
				trips[way] = append(trips[way], r.trip())
			}
			reads[way] = append(reads[way], stop()...)
		}
	}
	at := func(all []time.Duration, share float64) float64 {
		slices.Sort(all)
		return float64(all[int(share*float64(len(all)-1))]) / 1e6
	}
	for way := range ways {
		b.ReportMetric(at(trips[way], 0.99), "trip-p99-ms/"+way)
		b.ReportMetric(at(trips[way], 0.5)/at(trips["none"], 0.5), "trip-p50-ratio/"+way)
		if len(reads[way]) > 0 {
			b.ReportMetric(at(reads[way], 0.5), "read-p50-ms/"+way)
			b.ReportMetric(at(reads[way], 0.99), "read-p99-ms/"+way)
		}
	}
	b.ReportMetric(at(trips["none"], 0.5), "trip-p50-ms/none")
}

// BenchmarkRead measures what one read costs that the board answers, and one that the loop answers; and how many
// there are per second of CPU time, of the whole process.
func BenchmarkRead(b *testing.B) {
	r := newBusy(b)
	for _, kind := range readKinds {
		for _, way := range []string{"board", "loop"} {
			if kind == "explanation" && way == "board" {
				continue
			}
			b.Run(kind+"/"+way, func(b *testing.B) {
				random := rand.New(rand.NewPCG(1, 4))
				used := cpuTime(b)
				for b.Loop() {
					if err := r.read(random, kind, way == "loop"); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/(cpuTime(b)-used).Seconds(), "reads/cpu-s")
			})
		}
	}
}

// cpuTime returns the CPU time of the process.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSegment measures for how long the loop stands still when a segment of the event log begins, with 100
// containers and 10,000 jobs that wait.
func BenchmarkSegment(b *testing.B) {
	r := newBusy(b)
	if _, _, err := r.SubmitAll(b.Context(), user, Key{}, many(10_000, nil)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := r.do(b.Context(), func() {
			r.beginSegment(r.now())
		}); err != nil {
			b.Fatal(err)
		}
	}
	if r.events.Number() != b.N+1 {
		b.Errorf("%d segments after %d rounds", r.events.Number(), b.N)
	}
	b.ReportMetric(float64(r.events.Size())/1e6, "MB-inventory")
}
