package mapping

import (
	"bufio"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/internal/testterminal"
)

// On a terminal, results take the place of the progress.
func TestProgressAndResults(t *testing.T) {
	x := testterminal.Open(t, 40, 6)
	synctest.Test(t, func(t *testing.T) {
		r := &run{options: &options{}, out: bufio.NewWriter(x.File), seen: true,
			progress: terminal.NewProgress(x.File, "map"), ended: map[int]ended{}, next: 1, read: 4}
		r.freed.L = &r.mu
		for i := range 2 {
			time.Sleep(terminal.Patience)
			r.end(2*i+2, ended{result: []byte("even")})
			if err := r.print(); err != nil {
				t.Fatal(err)
			}
			r.end(2*i+1, ended{result: []byte("odd")})
			if err := r.print(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(terminal.Patience)
		if err := r.print(); err != nil {
			t.Fatal(err)
		}
	})
	x.Await(`odd *\n *even *\n *odd *\n *even *\n *map: 4 of 4 inputs that were read`)
}

// However many calls fail, in whatever order they end: the first are listed, and the others are counted.
func TestManyFailures(t *testing.T) {
	var all failures
	for _, n := range rand.New(rand.NewPCG(1, 2)).Perm(mostListed + 500) {
		all.add(failure{n + 1, `"x"`, "Traceback:\nValueError: it is bad"})
	}
	var text strings.Builder
	all.list(&text, 2000)
	lines := strings.Split(text.String(), "\n")
	if len(all.first) != mostListed || lines[0] != "bellows: 1500 of 2000 inputs failed:" ||
		lines[1] != `  input 1 "x": ValueError: it is bad` ||
		lines[mostListed] != `  input 1000 "x": ValueError: it is bad` ||
		strings.Join(lines[mostListed+1:],
			"\n") != "  and 500 more\nThe whole error of input 1:\nTraceback:\nValueError: it is bad\n" {
		t.Errorf("%d are kept, and listed: %s", len(all.first), text.String())
	}
}

// An error of one line is said once.
func TestShortError(t *testing.T) {
	var all failures
	all.add(failure{1, `"x"`, "its executor was lost 4 times\n"})
	var text strings.Builder
	if all.list(&text, 1); text.String() != "bellows: 1 of 1 input failed:\n  input 1 \"x\": its executor was lost "+
		"4 times\n" {
		t.Error(text.String())
	}
}

// Of what a call printed, the lines that were kept whole are shown, and that there were others.
func TestPrintedIsTruncated(t *testing.T) {
	var said strings.Builder
	r := &run{options: &options{}, out: bufio.NewWriter(io.Discard), progress: terminal.NewProgress(&said, "map"),
		ended: map[int]ended{}, next: 1, read: 2}
	r.freed.L = &r.mu
	r.end(1, ended{printed: []byte("lf a line\na whole one\nlast"), truncated: true})
	r.end(2, ended{printed: []byte("all\n")})
	if err := r.print(); err != nil {
		t.Fatal(err)
	}
	if want := "input 1: ... (only the end is kept)\ninput 1: a whole one\ninput 1: last\ninput 2: " +
		"all\n"; said.String() != want {
		t.Errorf("it says %q, want %q", said.String(), want)
	}
}
