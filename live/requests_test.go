package live

import (
	"database/sql"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/admission"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// What the kernel executes is accepted, and what is refused the kernel does not execute.
func TestRefusesWhatTheKernelDoes(t *testing.T) {
	refused := func(args, env []string) error {
		j := submission(1).Job
		j.Stages[0].Args, j.Stages[0].Env = args, nil
		return j.CheckExec(0, env, nil)
	}
	// variables has n variables of a length with their names.
	variables := func(n, length int, letter string) (env []string) {
		for i := range n {
			env = append(env, fmt.Sprintf("%07d=", i)+strings.Repeat(letter, length-8))
		}
		return env
	}
	for name, c := range map[string]struct {
		args, env []string
		refused   bool
	}{
		"longest variable":   {env: variables(1, 128<<10-1, "x")},
		"a longer one":       {env: variables(1, 128<<10, "x"), refused: true},
		"large environment":  {env: variables(31, 64<<10, "x")},
		"a larger one":       {env: variables(33, 64<<10, "x"), refused: true},
		"many short ones":    {env: variables(120_000, 8, "x")},
		"more of them":       {env: variables(130_000, 8, "x"), refused: true},
		"with arguments":     {args: variables(10, 100<<10, "x"), env: variables(10, 64<<10, "x")},
		"with more of them":  {args: variables(10, 100<<10, "x"), env: variables(20, 64<<10, "x"), refused: true},
		"bytes, not letters": {env: variables(31, 64<<10, "\xff")},
	} {
		args := append([]string{"true"}, c.args...)
		err := refused(cluster.EncodeTexts(args), cluster.EncodeTexts(c.env))
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		// With the usual stack, as the submission says nothing of it.
		run := exec.Command("/bin/sh", append([]string{"-c", `ulimit -S -s 8192 && exec "$0" "$@"`}, args...)...)
		if run.Env = c.env; (run.Run() != nil) != c.refused {
			t.Errorf("%s: the kernel and bellows differ, which says %v", name, err)
		}
	}
	h := &cluster.Inherited{Limits: map[string]cluster.ResourceLimit{"stack": {Soft: -1, Hard: -1}}}
	j := submission(1).Job
	if err := j.CheckExec(0, variables(90, 64<<10, "x"), h); err != nil {
		t.Errorf("with a stack without limit: %v", err)
	}
	h.Limits["stack"] = cluster.ResourceLimit{Soft: 1 << 20, Hard: 1 << 20}
	if err := j.CheckExec(0, variables(5, 64<<10, "x"), h); err == nil {
		t.Error("accepted with a stack of 1 MiB")
	}
}

// An environment that no program can have is refused when its job is submitted.
func TestLargeEnvironmentIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(1)
		for i := range 112 {
			s.Env = append(s.Env, fmt.Sprintf("V%d=%s", i, strings.Repeat("x", 64<<10)))
		}
		_, err := r.Submit(t.Context(), s)
		want := `job "sorts" stage "sort" command and environment: take 7.00MiB, and the kernel executes no program with more than 2MiB: `
		if api.KindOf(err) != api.Invalid || !strings.HasPrefix(err.Error(), want) {
			t.Error(err)
		}
	})
}

// The environment of a job that waits is in the store alone. When a task starts, it has the environment, and a daemon
// that was started again has it too.
func TestEnvironmentIsReadAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.submit(submission(2)) // as many as run at once
		s := submission(1)
		s.Env = append(s.Env, "SECRET="+strings.Repeat("s", 1000))
		id := r.submit(s)
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		for _, o := range []cluster.Order{first, second} {
			if !slices.Contains(o.Launch.Env, "PATH=/bin") || !slices.Contains(o.Launch.Env, "LC_ALL=C") ||
				slices.Contains(o.Launch.Env, "LC_ALL=de_DE") {
				t.Errorf("environment %v", o.Launch.Env)
			}
		}
		held := func() (bytes resource.Amount) {
			t.Helper()
			if err := r.do(t.Context(), func() {
				bytes = r.gate.Requests()
				if env := r.jobs[id].Request.Env; env != nil {
					t.Errorf("environment %v is in memory", env)
				}
			}); err != nil {
				t.Fatal(err)
			}
			return bytes
		}
		before := held()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r.fake = newFake()
		r.start(fifo(t))
		again := []cluster.Order{r.order(cluster.Start), r.order(cluster.Start)}
		if after := held(); after != before || after < 1500 {
			t.Errorf("requests take %d bytes, and after the start %d", before, after)
		}
		for _, o := range again {
			r.fake.launched(o)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
		}
		last := r.order(cluster.Start)
		if last.Container.Task.Job != id || !slices.Contains(last.Launch.Env, s.Env[2]) ||
			!slices.Contains(last.Launch.Env, "BELLOWS_JOB=2") {
			t.Errorf("%v has the environment %v", last.Container, last.Launch.Env)
		}
		r.fake.launched(last)
		r.fake.ended(last.Container, cluster.Succeeded, 0)
		r.wait(id)
		if err := r.do(t.Context(), func() {
			if bytes := r.gate.Requests(); bytes != 0 {
				t.Errorf("the requests of no jobs take %d bytes", bytes)
			}
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// While the environment of a job cannot be read, its task does not start, and does not fail: that is tried again.
func TestEnvironmentThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		first := r.submit(submission(2))
		orders := []cluster.Order{r.order(cluster.Start), r.order(cluster.Start)}
		id := r.submit(submission(1))
		db, err := sql.Open("sqlite", filepath.Join(r.dir, store.File))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		change := func(to string) {
			t.Helper()
			if _, err := db.Exec("UPDATE jobs SET request = "+to+" WHERE id = ?", int64(id)); err != nil {
				t.Fatal(err)
			}
		}
		change("'#' || request")
		for _, o := range orders {
			r.fake.launched(o)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
		}
		synctest.Wait()
		r.noOrder()
		if ready := r.Ready(); !strings.Contains(fmt.Sprint(ready), "read the environment of job 2: ") {
			t.Errorf("ready: %v", ready)
		}
		change("substr(request, 2)")
		if o := r.order(cluster.Start); o.Container.Task.Job != id || !slices.Contains(o.Launch.Env, "PATH=/bin") {
			t.Errorf("%v starts with %v", o.Container, o.Launch.Env)
		}
		if j := r.wait(first); j.Status != cluster.StatusSucceeded {
			t.Errorf("%+v", j)
		}
	})
}

// What waits is bounded in bytes, for each user and for all together. Others go on, and so does the user once jobs
// have ended.
func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(1))
		start := r.order(cluster.Start)
		other := submission(1)
		other.Caller.UID, other.Caller.User = 2001, "bob"
		more := func(uid uint32, bytes resource.Amount) {
			t.Helper()
			if err := r.do(t.Context(), func() {
				r.gate.More(&store.Job{Request: store.Request{As: cluster.Credentials{UID: uid}}, Bytes: int64(bytes)})
			}); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(s Submission, want string) {
			t.Helper()
			_, alone := r.Submit(t.Context(), s)
			_, _, together := r.SubmitAll(t.Context(), s.Caller, Key{}, func(yield func(Submission, error) bool) {
				yield(s, nil)
			})
			for _, err := range []error{alone, together} {
				if api.KindOf(err) != api.OverQuota || !strings.HasPrefix(err.Error(), `job "sorts": the requests of `+want) {
					t.Errorf("%v\nwant %s", err, want)
				}
			}
		}
		var own resource.Amount
		if err := r.do(t.Context(), func() { own = r.gate.Requests() }); err != nil {
			t.Fatal(err)
		}
		more(user.UID, admission.MostRequests-own)
		refused(submission(1), "your jobs that have not ended take 128MiB, and may take 128MiB: ")
		r.submit(other)
		r.fake.launched(start)
		r.fake.ended(start.Container, cluster.Succeeded, 0)
		r.wait(id)
		r.submit(submission(1))
		more(3000, admission.MostAllRequests-admission.MostRequests)
		refused(other, "the jobs of all users that have not ended take 512.0MiB, and may take 512MiB: ")
	})
}
