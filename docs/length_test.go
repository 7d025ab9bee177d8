package docs_test

import (
	"strings"
	"testing"
)

// The first screen of README has the two commands that run and test the project, and the page is short.
func TestReadme(t *testing.T) {
	text := read(t, "../README.md")
	lines := strings.Split(text, "\n")
	screen := strings.Join(lines[:25], "\n")
	for _, command := range []string{"make build &&", "make test"} {
		if !strings.Contains(screen, command) {
			t.Errorf("the first screen of README does not have %q", command)
		}
	}
	if words := len(strings.Fields(text)); words > 800 {
		t.Errorf("README has %d words, want at most 800", words)
	}
}
