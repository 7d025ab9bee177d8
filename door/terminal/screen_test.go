package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Each text takes the place of the one before, and what does not fit is counted.
func TestScreen(t *testing.T) {
	var b bytes.Buffer
	s := NewScreen(&b)
	fmt.Fprint(s, "first\nsecond\n")
	if b.Len() > 0 {
		t.Errorf("shows %q before Show", b.String())
	}
	if err := s.Show(); err != nil || b.String() != "\033[Hfirst\033[K\nsecond\033[K\033[J" {
		t.Errorf("shows %q, %v", b.String(), err)
	}
	b.Reset()
	fmt.Fprint(s, strings.Repeat("line\n", 30))
	if err := s.Show(); err != nil || strings.Count(b.String(), "line\033[K\n") != 23 ||
		!strings.HasSuffix(b.String(), "7 more lines\033[K\033[J") {
		t.Errorf("shows %q, %v", b.String(), err)
	}
}
