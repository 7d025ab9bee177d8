package profiling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
)

// claims makes measurements count for the quotas of the user: while a program is measured, a job of the user has what
// the largest run may use. The job's program waits for a lock of this process, which the kernel releases whatever
// ends the process.
type claims struct {
	client *client.Client
	most   resource.Amount // memory that a job of the user may request
	name   string
	cpus   resource.Amount
	tell   io.Writer
}

// findClaims returns nil if no quota limits the user: then measurements need no daemon.
func (o *profileOptions) findClaims(ctx context.Context, tell io.Writer) (*claims, error) {
	client, err := o.place.Client()
	if err != nil {
		return nil, err
	}
	quotas, err := client.Quotas(ctx, "")
	switch kind := api.KindOf(err); {
	case kind == api.Unavailable: // no daemon
		return nil, nil
	case err != nil:
		return nil, err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	c := &claims{client: client, name: o.name, cpus: o.cpus, tell: tell, most: status.LargestMemory()}
	me, limited := cmp.Or(place.UserName(), strconv.Itoa(os.Getuid())), false
	for _, q := range quotas {
		if q.User != me && q.Queue != cluster.DefaultQueue {
			continue
		}
		limited = true
		if q.Kind == cluster.QuotaMemory {
			c.most = min(c.most, resource.Amount(q.Most))
		}
	}
	if !limited {
		return nil, nil
	}
	return c, nil
}

// hold submits the job, and waits until it has started. The context that it returns ends if the job does; release
// ends the job.
func (c *claims) hold(ctx context.Context, memory resource.Amount) (held context.Context, release func(), err error) {
	lock, err := os.CreateTemp("", "bellows-profile-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a lock for the job that counts for your quotas: %w", err)
	}
	unlock := func() { _ = os.Remove(lock.Name()); _ = lock.Close() }
	id, err := c.submit(ctx, lock, memory)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	release = func() {
		cancel(nil)
		ending, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer stop()
		if c.client.Kill(ending, id) == nil {
			_, _ = c.client.Wait(ending, id) // so that what is measured next has room in the quotas
		}
		unlock()
	}
	if err := c.started(ctx, id); err != nil {
		release()
		return nil, nil, err
	}
	go func() {
		if j, err := c.client.Wait(held, id); err == nil {
			cancel(ended(id, j))
		}
	}()
	return held, release, nil
}

// submit submits the job. If this process ends before the job is killed, the job fails: so its use, which is not that
// of the measured program, teaches nothing.
func (c *claims) submit(ctx context.Context, lock *os.File, memory resource.Amount) (cluster.JobID, error) {
	flock, err := exec.LookPath("flock")
	if err != nil {
		return 0, command.Usagef("flock: must be installed, since quotas limit you: a job that counts for them waits with it")
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return 0, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	stage := cluster.Stage{Name: c.name, Tasks: 1, Ideal: resource.Of(c.cpus, memory),
		Command: cluster.Command{Args: []string{flock, "--shared", lock.Name(), "false"}}}
	return c.client.Submit(ctx,
		api.SubmissionOf(&cluster.Job{Name: cluster.NameFor("profile " + c.name), Stages: []cluster.Stage{stage}},
			[]string{"PATH=" + os.Getenv("PATH")}, "/", nil))
}

// started waits until the job has started.
func (c *claims) started(ctx context.Context, id cluster.JobID) error {
	const patience = time.Second
	late := time.AfterFunc(patience, func() {
		fmt.Fprintf(c.tell, "job %d counts for your quotas while the program is measured; it has not started: "+
			"`bellows explain %d` says why\n", id, id)
	})
	defer late.Stop()
	task, err := c.client.WaitTask(ctx, cluster.TaskID{Job: id})
	if err == nil && task.State == api.TaskEnded {
		var j api.Job
		if j, err = c.client.Wait(ctx, id); err == nil {
			err = ended(id, j)
		}
	}
	return err
}

// ended is the error if the job has ended too early.
func ended(id cluster.JobID, j api.Job) error {
	if j.Detail != "" {
		return fmt.Errorf("job %d, which counts for the quotas of the measurement, has ended: %s: %s", id, j.Status, j.Detail)
	}
	return fmt.Errorf("job %d, which counts for the quotas of the measurement, has ended: %s", id, j.Status)
}

// cause returns why a context ended, in place of an error that says only that it has.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); err != nil && why != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	return err
}
