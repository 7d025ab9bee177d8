package top

import (
	"context"
	"time"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/jobs"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
)

// request is something that the daemon is to do.
type request struct {
	what action
	subject
}

type action uint8

const (
	explaining action = iota
	pausing
	resuming
	killing
)

var deeds = [...]string{pausing: "paused", resuming: "resumed", killing: "killed"}

// answer is how a request ended.
type answer struct {
	request
	explanation api.Explanation
	err         error
}

// requestTime is how long a request may take.
const requestTime = 30 * time.Second

// send sends a request to the daemon and waits for its answer.
func (r request) send(ctx context.Context, client *client.Client) answer {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	a := answer{request: r}
	switch r.what {
	case explaining:
		a.explanation, a.err = client.Explain(ctx, r.job)
	case pausing:
		a.err = client.Pause(ctx, r.job, r.task, false)
	case resuming:
		a.err = client.Resume(ctx, r.job, r.task)
	case killing:
		a.err = client.Kill(ctx, r.job)
	}
	return a
}

// explain asks for an explanation of the selected job if the pane is open and has none, or one of an earlier
// revision. It asks for one at a time.
func (s *state) explain() {
	p := s.pane
	if p == nil || len(s.rows) == 0 {
		return
	}
	job := s.selected.job
	if p.job != job {
		*p = pane{job: job}
	}
	if s.asking || !p.asked.IsZero() && (s.revisions[job] == p.revision || s.now.Sub(p.asked) < explainAgain) {
		return
	}
	p.asked, p.revision, s.asking = s.now, s.revisions[job], true
	s.ask(explaining, subject{job: job})
}

// hear takes in the answer to a request.
func (s *state) hear(a *answer) {
	if a.what != explaining {
		s.heard(a)
		return
	}
	s.asking = false
	if s.pane == nil || s.pane.job != a.job {
		return
	}
	lines, err := jobs.Explained(&a.explanation, s.now)
	if a.err != nil {
		err = a.err
	}
	if err != nil {
		lines = []string{err.Error()}
	}
	s.pane.lines = lines
}
