package jobfile

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/internal/testrequest"
)

// A job file is refused for what every front door refuses; the error has the line and the field.
func TestFilesRefuseWhatNoJobMayRequest(t *testing.T) {
	for _, c := range testrequest.Cases {
		t.Run(c.Name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.File()), "x", nil)
			if c.Wrong == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			place, want := `x:4: job "j" stage "s" `, c.Wrong
			if c.JobFields != nil {
				place = `x:1: job "j" `
			}
			if c.Notation {
				want, _, _ = strings.Cut(want, ":")
			}
			if err == nil || !strings.HasPrefix(err.Error(), place+strings.Fields(want)[0]) || !c.Notation &&
				err.Error() != place+want {
				t.Errorf("got  %v\nwant %s", err, place+want)
			}
		})
	}
}
