package live

import (
	"context"
	"io"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// checkInput rejects the input of a job with several tasks, or with a task that may run several times.
func (d *Driver) checkInput(s *Submission) error {
	switch {
	case !s.Input:
		return nil
	case d.able.Input != "":
		return api.Errorf(api.Invalid, "job %q input: %s", s.Job.Name, d.able.Input)
	case len(s.Job.Stages) != 1 || s.Job.Stages[0].Tasks != 1:
		return api.Errorf(api.Invalid, "job %q input: must be that of a job of one task", s.Job.Name)
	case s.Job.MaxAttempts > 1:
		return api.Errorf(api.Invalid,
			"job %q retry %d: must be 0 for a program that reads its input, which cannot be read again", s.Job.Name,
			s.Job.MaxAttempts-1)
	case s.Job.Stages[0].Stdin != "":
		return api.Errorf(api.Invalid, "job %q input: must be sent or come from file %q, but not both", s.Job.Name,
			s.Job.Stages[0].Stdin)
	}
	return nil
}

// Input connects to the input of a job's program when the program runs. Package input describes the protocol. The
// caller closes the connection. The error is Invalid if the job takes no input, or no more.
func (d *Driver) Input(ctx context.Context, id cluster.JobID) (io.ReadWriteCloser, error) {
	task := cluster.TaskID{Job: id}
	var container cluster.ContainerID
	// Until the Driver knows of the end of a container, the container may be gone and yet appear to run.
	for deadline := time.Now().Add(10 * time.Second); ; {
		if err := d.takesInput(ctx, id); err != nil {
			return nil, err
		}
		t, err := d.WaitTask(ctx, task, false)
		if err != nil {
			return nil, err
		}
		if t.State == api.TaskEnded {
			return nil, api.Errorf(api.Invalid, "job %d: takes no more input, because its program has ended", id)
		}
		container = cluster.ContainerID{Task: task, Run: t.Run}
		c, err := d.backend.Input(container)
		if err == nil || time.Now().After(deadline) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// takesInput returns an error unless a job was submitted with input.
func (d *Driver) takesInput(ctx context.Context, id cluster.JobID) error {
	if err := d.awaitInventory(ctx); err != nil {
		return err
	}
	var err error
	if e := d.look(ctx, func() {
		if j, ok := d.jobs[id]; ok && !j.Request.Input {
			err = api.Errorf(api.Invalid, "job %d: was submitted without input", id)
		}
	}); e != nil {
		return e
	}
	return err // A job that is not here has ended, or never existed: waiting for its task reports that.
}
