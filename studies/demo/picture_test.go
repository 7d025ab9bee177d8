package demo

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/door/terminal"
)

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
