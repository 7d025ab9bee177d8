package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/bellows-rm/bellows/live/api"
)

// Seen is what WatchMachine yields: one of its fields is set.
type Seen struct {
	Update  *api.Update
	Machine *api.Machine // about every second
	Lost    error        // why there is no connection: again after each attempt to connect that fails
}

// watchAgain is how long Watch waits before it connects again.
const watchAgain = 200 * time.Millisecond

// seenIn returns what is in a stream of server-sent events, until the stream ends or breaks. Events of other kinds do
// not count.
func seenIn(from io.Reader) iter.Seq2[Seen, error] {
	return func(yield func(Seen, error) bool) {
		lines, kind := bufio.NewReader(from), ""
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			name, value, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(": "))
			switch string(name) {
			case "event":
				kind = string(value)
			case "data":
				seen, err := seenOf(kind, value)
				if err != nil {
					yield(Seen{}, fmt.Errorf("read what has changed: %w", err))
					return
				}
				if seen != (Seen{}) && !yield(seen, nil) {
					return
				}
			}
		}
	}
}

// seenOf returns the content of an event; it is empty if the event is of another kind.
func seenOf(kind string, data []byte) (seen Seen, err error) {
	switch kind {
	case "update":
		seen.Update = new(api.Update)
		err = json.Unmarshal(data, seen.Update)
	case "machine":
		seen.Machine = new(api.Machine)
		err = json.Unmarshal(data, seen.Machine)
	case "dropped":
		var d api.Dropped
		err = json.Unmarshal(data, &d)
		seen.Lost = api.Errorf(api.Unavailable, "%s", d.Reason)
	}
	return seen, err
}
