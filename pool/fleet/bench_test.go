package fleet

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
)

// BenchmarkStep measures one look at the sizes of pools: of a pool with 112 executors, all of which have registered,
// on a machine on which 10,000 jobs of another user wait. There are at most five looks a second, and none while
// nothing changes.
func BenchmarkStep(b *testing.B) {
	dir := b.TempDir()
	m := &machine{jobs: map[cluster.JobID]*running{}, news: make(chan struct{})}
	p, err := Open(Config{State: dir, Socket: filepath.Join(dir, "s"),
		Capacity: cores(224).Add(resource.Of(0, resource.GiB)), Jobs: m, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	p.begin.Do(func() {}) // Nothing looks but the benchmark.
	const executors = 112
	if _, err := p.Put(b.Context(), ada, api.OwnerOf(ada), api.PoolSpec{Name: "p", Command: []string{"/worker"}, Dir: "/",
		Min: executors, Max: executors, CPU: resource.Core, Memory: resource.MiB}); err != nil {
		b.Fatal(err)
	}
	h := p.all()[0]
	h.record.Launched = executors
	all := api.Update{Snapshot: true}
	for number := 1; number <= executors; number++ {
		job := api.Job{ID: cluster.JobID(number), Name: fmt.Sprintf("p executor %d", number), App: "pool/p", UID: ada.UID,
			Owner: api.OwnerOf(ada).Name, Started: time.Unix(1, 0)}
		job.Tasks = []api.Task{{State: api.TaskRunning, Grant: api.Grant{CPUMillicores: 1000}}}
		all.Jobs = append(all.Jobs, job)
		h.executors[number] = &launched{number: number}
		if _, err := h.pool.Register(b.Context(),
			executor.Registration{Executor: number, Secret: p.key.secret(h.record.ID, number)}); err != nil {
			b.Fatal(err)
		}
	}
	for id := range cluster.JobID(10_000) {
		job := api.Job{ID: 1000 + id, UID: 1, Owner: "bob",
			Stages: []api.Stage{{Stage: cluster.Stage{Tasks: 1, Ideal: cores(1)}, Startable: 1}}}
		all.Jobs = append(all.Jobs, job)
	}
	p.learn(&all)
	b.ReportAllocs()
	for b.Loop() {
		p.step()
	}
	if n := len(h.executors); n != executors || h.target != executors {
		b.Fatalf("%d executors, and %d wanted: %s", n, h.target, h.why)
	}
}
