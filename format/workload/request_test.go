package workload

import (
	"io"
	"testing"

	"github.com/bellows-rm/bellows/internal/testrequest"
)

// A recording has no job that the other front doors refuse.
func TestRecordingsRefuseWhatNoJobMayRequest(t *testing.T) {
	for _, c := range testrequest.Cases {
		t.Run(c.Name, func(t *testing.T) {
			j := c.Job()
			j.ID = 1
			got := ""
			if err := Write(io.Discard, &Workload{Jobs: []Job{{Job: j, After: -1}}}, Header{}); err != nil {
				got = err.Error()
			}
			if want := c.Place("write job 1 of the workload: "); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
