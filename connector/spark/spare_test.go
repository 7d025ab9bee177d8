//go:build spark

package spark_test

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/connector/spark"
	"github.com/bellows-rm/bellows/executor"
)

// breaks enrols an application that no JVM can be attached to, again and again.
func (m *machine) breaks(ctx context.Context, pool string) {
	for ctx.Err() == nil {
		a, err := executor.Enrol(ctx, executor.ApplicationConfig{Socket: filepath.Join(m.dir, "state", "bellows.sock"),
			Pool: pool, Attach: []byte("this is no driver"), Enrolment: executor.Enrolment{Name: "broken", Drives: true}})
		if err != nil {
			continue
		}
		a.Demand(a.NewStage(executor.Stage{Function: spark.Function}), 1)
		for err == nil {
			_, err = a.Changes(ctx)
		}
		_ = a.Cancel(context.WithoutCancel(ctx), "the test has ended")
	}
}

// A JVM to which attachments fail is replaced while another application sends it one job after the other: the next JVM
// is ready before, and all jobs are right, without an executor that is lost.
func TestLongSparkSpare(t *testing.T) {
	m := begin(t)
	_, jar := m.pool("spare", "--memory", "2GiB", "--min", "1", "--max", "1")
	d := m.driver("stream", jar)
	if err := d.open("spark-bellows://spare", nil); err != nil {
		t.Fatal(err)
	}
	var want any
	job := func() time.Duration {
		t.Helper()
		began := time.Now()
		var got any
		if err := d.ask("count", map[string]any{"rows": 1000, "keep": false}, &got); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("a job finds %v, want %v", got, want)
		}
		return time.Since(began)
	}
	job()
	log := func() string { return m.run(m.bellows, "logs", "--stderr", "pool/spare") }

	ctx, cancel := context.WithCancel(t.Context())
	var broken sync.WaitGroup
	broken.Go(func() { m.breaks(ctx, "spare") })
	var took []time.Duration
	for until := time.Now().Add(5 * time.Minute); !strings.Contains(log(), "JVM 1 is replaced"); {
		for range 10 {
			took = append(took, job())
		}
		if time.Now().After(until) {
			t.Fatalf("it is not replaced:\n%s", log())
		}
	}
	cancel()
	broken.Wait()
	said := log()
	ready, replaced := strings.Index(said, "JVM 2 is ready"), strings.Index(said, "JVM 1 is replaced: ")
	if ready < 0 || ready > replaced || strings.Contains(said, "has ended") || strings.Contains(said, "has killed") {
		t.Errorf("the next JVM is not ready before:\n%s", said)
	}
	slices.Sort(took)
	t.Logf("%d jobs, half of them within %v, the longest took %v", len(took), took[len(took)/2], took[len(took)-1])
}
