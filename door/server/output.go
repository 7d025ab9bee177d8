package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// lookAgain is the interval between reads of a followed file: short enough for a person who watches.
const lookAgain = 50 * time.Millisecond

// output answers with the output of one run of a task. With Follow, the run may start later.
func (s *Server) output(ctx context.Context, o api.Output) (*streamed, error) {
	file, err := s.find(ctx, &o)
	if err != nil {
		return nil, err
	}
	path := file.Stdout
	if o.Stderr {
		path = file.Stderr
	}
	return &streamed{func(w io.Writer) {
		ended := (<-chan struct{})(closed)
		if o.Follow && !file.Ended {
			ended = s.whenEnded(ctx, o.Task, file.Run)
		}
		_ = stream(ctx, w, path, o.From, o.All, ended)
		cutIfEnded(ctx)
	}}, nil
}

// find returns the location of the output. With Follow, it waits for the run to begin.
func (s *Server) find(ctx context.Context, o *api.Output) (api.LogFile, error) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		if o.Follow {
			if _, err := s.driver.WaitTask(ctx, o.Task, false); err != nil {
				return api.LogFile{}, err
			}
		}
		files, err := s.driver.Logs(ctx, o.Task.Job)
		if err != nil {
			return api.LogFile{}, err
		}
		file, err := pick(files, o.Task, o.Run)
		if err == nil || !o.Follow {
			return file, err
		}
		// The requested run follows a run that failed, or will never exist.
		if job, gone := s.driver.Job(ctx, o.Task.Job, false); gone != nil || job.Ended {
			return file, err
		}
		select {
		case <-ctx.Done():
			return file, ctx.Err()
		case <-tick.C:
		}
	}
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// pick returns the file of a run of a task; of the newest if run is 0.
func pick(files []api.LogFile, id cluster.TaskID, run int) (api.LogFile, error) {
	var found *api.LogFile
	for i := range files {
		f := &files[i]
		if f.Task == id && (f.Run == run || run == 0 && (found == nil || f.Run > found.Run)) {
			found = f
		}
	}
	switch {
	case found != nil:
		return *found, nil
	case run != 0:
		return api.LogFile{}, api.Errorf(api.NotFound, "task %s run %d: does not exist", id, run)
	}
	return api.LogFile{}, api.Errorf(api.NotFound, "task %s: has printed nothing, because it has not started", id)
}

// whenEnded returns a channel that is closed when the run of the task has ended or ctx is done.
func (s *Server) whenEnded(ctx context.Context, id cluster.TaskID, run int) <-chan struct{} {
	c := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = s.driver.WaitTask(ctx, id, true)
	}()
	go func() {
		defer close(c)
		// After a failed run the next run may start at once; its end does not matter here.
		tick := time.NewTicker(10 * lookAgain)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			files, err := s.driver.Logs(ctx, id.Job)
			if file, none := pick(files, id, run); err != nil || none != nil || file.Ended {
				return
			}
		}
	}()
	return c
}

// stream copies a file to w as it grows, until ended is closed and the rest is copied. For all see printed.
func stream(ctx context.Context, w io.Writer, path string, from int64, all bool, ended <-chan struct{}) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	flush := func() {}
	if f, ok := w.(http.Flusher); ok {
		flush = f.Flush
	}
	flush()
	var p *printed
	for last := false; ; {
		if p == nil {
			var err error
			if p, err = openPrinted(path, from, all); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if p != nil {
				defer p.file.Close()
			}
		}
		if p != nil {
			some, err := p.copy(w, last)
			if err != nil {
				return err
			}
			if some {
				flush()
			}
		}
		if last {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			last = true
		case <-tick.C:
		}
	}
}
