package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
)

// What became of a container is judged by its records alone. Where a record cannot be read now, nothing is judged: this
// process may have no descriptor left, or the disk may not answer. The record is read again, with growing pauses, and
// people see why and since when. Only an order to end the container decides without the record.
const (
	firstRetry   = 50 * time.Millisecond
	longestRetry = 30 * time.Second
)

// errAway is the error of reading a record while the folder of all containers is not at its place.
var errAway = errors.New("the state directory is not there")

// unlike are the kernel's errors for a path that leads to something that is no record. Reading again does not change
// that.
var unlike = []error{fs.ErrNotExist, unix.ENOTDIR, unix.EISDIR, unix.ELOOP}

// isUnread reports whether an error of reading a record says nothing of the record: the record may be whole, and may be
// read later. A record that is not there, or says something else than it should, is not unread.
func isUnread(err error) bool {
	if errors.Is(err, errAway) {
		return true
	}
	for _, e := range unlike {
		if errors.Is(err, e) {
			return false
		}
	}
	var path *fs.PathError
	var number unix.Errno
	return errors.As(err, &path) || errors.As(err, &number)
}

// troubles are the containers with a record that cannot be read now. The zero value has none.
type troubles struct {
	mu  sync.Mutex
	all map[cluster.ContainerID]trouble
}

type trouble struct {
	why         error
	since, next time.Time
}

// note records why a record cannot be read, and when it is read again. It reports whether that is new.
func (t *troubles) note(id cluster.ContainerID, why error, next time.Time) (begins bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, known := t.all[id]
	if !known {
		was.since = time.Now()
	}
	if t.all == nil {
		t.all = map[cluster.ContainerID]trouble{}
	}
	t.all[id] = trouble{why, was.since, next}
	return !known
}

// over records that there is nothing left to be read. It reports whether there was.
func (t *troubles) over(id cluster.ContainerID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, was := t.all[id]
	delete(t.all, id)
	return was
}

// words describes them all.
func (t *troubles) words() map[cluster.ContainerID]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[cluster.ContainerID]string, len(t.all))
	for id, of := range t.all {
		out[id] = fmt.Sprintf("a record of container %s cannot be read since %s, and is read again at %s: %v",
			id, of.since.Format(time.TimeOnly), of.next.Format(time.TimeOnly), of.why)
	}
	return out
}

// Troubles implements live.Troubled.
func (a *Agent) Troubles() map[cluster.ContainerID]string { return a.troubles.words() }

// again reads records of a container until that succeeds, or fails for good: it returns the error of the last try,
// which isUnread only if the container was to end meanwhile, or the agent was closed.
func (a *Agent) again(c *container, read func() error) error {
	for pause := firstRetry; ; pause = min(2*pause, longestRetry) {
		err := read()
		if !isUnread(err) {
			if a.troubles.over(c.id) {
				a.log.Info("the record of a container can be read again", "container", c.id)
			}
			return err
		}
		if a.troubles.note(c.id, err, time.Now().Add(pause)) {
			a.log.Warn("a record of a container cannot be read, and is read again", "container", c.id, "error", err)
		}
		select {
		case <-time.After(pause):
			continue
		case <-c.decided:
			a.log.Warn("a container ends whose record cannot be read", "container", c.id, "error", err)
		case <-a.closed.Done():
		}
		a.troubles.over(c.id)
		return err
	}
}
