package server

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/kept"
)

// textRoom bounds the bytes of JSON that are kept of jobs: some 20,000 jobs as lists show them.
const textRoom = 16 << 20

// texts writes jobs as JSON. A job that has not changed since it was written for a caller of the same rights is not
// written again.
type texts struct {
	kept    *kept.Cache[textKey, []byte]
	buffers sync.Pool // of *bytes.Buffer
}

// textKey is what a text depends on.
type textKey struct {
	job     cluster.JobID
	version int64
	whole   bool // with the tasks, as the answer to a request for one job
	size    bool // what everybody may see; otherwise what its owner sees
}

func newTexts() *texts {
	return &texts{kept: kept.New[textKey, []byte](textRoom),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
}

// answer calls write with an answer as JSON if that is a job or a list of jobs; otherwise ok is false. It shows what
// c may see, which is decided here again, whatever was cut before.
func (t *texts) answer(c *caller, answer any, write func(text []byte)) (ok bool, err error) {
	text := t.buffers.Get().(*bytes.Buffer)
	defer t.buffers.Put(text)
	text.Reset()
	switch a := answer.(type) {
	case api.Job:
		err = t.put(text, c, &a, true)
	case []api.Job:
		err = t.putAll(text, c, a)
	default:
		return false, nil
	}
	text.WriteByte('\n') // as json.Encoder
	if err == nil {
		write(text.Bytes())
	}
	return true, err
}

func (t *texts) putAll(to *bytes.Buffer, c *caller, jobs []api.Job) error {
	if jobs == nil {
		to.WriteString("null")
		return nil
	}
	to.WriteByte('[')
	for i := range jobs {
		if i > 0 {
			to.WriteByte(',')
		}
		if err := t.put(to, c, &jobs[i], false); err != nil {
			return err
		}
	}
	to.WriteByte(']')
	return nil
}

// put writes a job as c may see it.
func (t *texts) put(to *bytes.Buffer, c *caller, j *api.Job, whole bool) error {
	key := textKey{j.ID, j.Version, whole, !c.owns(api.Owner{UID: j.UID, Name: j.Owner})}
	if key.version != 0 {
		if text, ok := t.kept.Get(key); ok {
			to.Write(text)
			return nil
		}
	}
	shown := *j
	if key.size {
		shown = sizeOf(j)
	}
	from := to.Len()
	if err := encode(to, shown); err != nil {
		return err
	}
	to.Truncate(to.Len() - 1) // encode ends the line
	if key.version != 0 {
		text := bytes.Clone(to.Bytes()[from:])
		t.kept.Offer(key, text, len(text))
	}
	return nil
}

// encode writes a value as JSON, and ends the line.
func encode(to *bytes.Buffer, value any) error {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false) // people read the answers, browsers do not
	return e.Encode(value)
}

// updates are the newest updates as events. All watchers of the same rights who know the same revision get the same
// bytes.
type updates struct {
	kept *kept.Cache[updateKey, eventTexts]
}

type updateKey struct {
	from, to int64
	all      bool // for an operator
	owner    api.Owner
}

// eventTexts are events, and when they were written.
type eventTexts struct {
	at     time.Time
	events [][]byte
}

// updateRoom bounds the bytes of the updates that are kept.
const updateRoom = 4 << 20

func newUpdates() updates { return updates{kept.New[updateKey, eventTexts](updateRoom)} }

// texts returns the events of an update that leads from a revision on, as c may see it. What follows from the time is
// at most watchPace old.
func (u *updates) texts(c *caller, from int64, up api.Update) ([][]byte, error) {
	key := updateKey{from: from, to: up.Revision, all: c.operator}
	if !c.operator {
		key.owner = api.OwnerOf(c.Credentials)
	}
	now := time.Now()
	if known, ok := u.kept.Get(key); ok && now.Sub(known.at) < watchPace {
		return known.events, nil
	}
	made, size := eventTexts{at: now}, 0
	for _, part := range parts(up) {
		part.Jobs = each(part.Jobs, c.job)
		id := part.Revision
		if part.More {
			id = 0 // Whoever has only this part does not know the revision.
		}
		text, err := eventText("update", id, part)
		if err != nil {
			return nil, err
		}
		made.events, size = append(made.events, text), size+len(text)
	}
	u.kept.Put(key, made, size)
	return made.events, nil
}
