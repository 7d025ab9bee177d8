package demo

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/internal/testfile"
)

// canned is a result in which every contender runs the same two tasks, each contender later than the one
// before.
func canned() *ElasticResult {
	r := &ElasticResult{Node: node, Machine: Machine{Launch: 20 * time.Millisecond, Neighbour: 1.1}}
	for i := range sizings {
		c := &sizings[i]
		run := twoTasks()
		run.Configuration, run.Round = c.Label, 1
		for j := range run.Jobs {
			run.Jobs[j].Ended += time.Duration(3-i) * time.Second
		}
		for j := range run.Tasks {
			run.Tasks[j].Memory *= resource.MiB
			run.Tasks[j].Ended += time.Duration(3-i) * time.Second
		}
		for j := range run.Usage {
			run.Usage[j].Anonymous *= resource.MiB
		}
		run.Replay = &Replay{Decisions: 5, Equal: 5, Changed: 2}
		r.Runs = append(r.Runs, *run)
		said := *run
		said.Simulated, said.Round, said.Usage = true, 0, nil
		r.Predicted = append(r.Predicted, said)
		r.Summaries = append(r.Summaries,
			summarise(c, []*Run{run}, []resource.Amount{100 * resource.MiB, 100 * resource.MiB}))
	}
	d := elasticDemonstration{result: r}
	d.compare()
	return r
}

// drawn returns the only picture of a part.
func drawn(t *testing.T, pictures []Picture) []byte {
	t.Helper()
	if len(pictures) != 1 {
		t.Fatalf("%d pictures, want 1", len(pictures))
	}
	svg, err := pictures[0].SVG()
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, svg)
	return svg
}

func TestPicture(t *testing.T) { testfile.Golden(t, "picture.svg", drawn(t, canned().Pictures())) }

func TestReport(t *testing.T) {
	var out bytes.Buffer
	if err := canned().Write(&out); err != nil {
		t.Fatal(err)
	}
	testfile.Golden(t, "report.txt", out.Bytes())
	narrow(t, out.String())
}

func wellFormed(t *testing.T, text []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

// narrow checks that a report fits a terminal.
func narrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > terminal.Width {
			t.Errorf("%d columns, more than %d: %s", n, terminal.Width, line)
		}
	}
}
