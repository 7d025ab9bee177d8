package eventlog

import (
	"io"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Present is a running cluster at one time, and a job that is about to be submitted. It is written as an event log of
// two steps: what was found, and the submission. An engine that takes these steps is where that of the cluster would
// be.
type Present struct {
	Header Header
	Now    timeline.Time
	// Found is what book.Snapshot.Inventory returns.
	Found []cluster.Event
	Job   cluster.Job
}

// Write writes p as an event log.
func (p *Present) Write(out io.Writer) error {
	w, err := NewWriter(out, p.Header)
	if err != nil {
		return err
	}
	if err := w.Events(p.Now, p.Found...); err != nil {
		return err
	}
	return w.Events(p.Now, cluster.Event{Kind: cluster.JobSubmitted, Job: p.Job.ID, NewJob: &p.Job})
}

// ReadPresent reads what Write has written. name is used in errors, which are a *fault.Fault if the content is wrong
// or incomplete.
func ReadPresent(in io.Reader, name string) (*Present, error) {
	r, err := NewReader(in, name)
	if err != nil {
		return nil, err
	}
	p := &Present{Header: r.Header}
	for step := range 2 {
		record, err := r.Next()
		switch {
		case err == io.EOF:
			return nil, r.fault("must have two steps, but ends after %d", step)
		case err != nil:
			return nil, err
		case step == 0:
			p.Now, p.Found = record.Now, record.Events
		case len(record.Events) != 1 || record.Events[0].Kind != cluster.JobSubmitted || record.Events[0].NewJob == nil:
			return nil, r.fault("must be the submission of a job")
		default:
			p.Job = *record.Events[0].NewJob
		}
	}
	return p, nil
}
