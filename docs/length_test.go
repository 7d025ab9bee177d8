package docs_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// The first screen of README has the two commands that run and test the project, and the page is short.
func TestReadme(t *testing.T) {
	text := read(t, "../README.md")
	lines := strings.Split(text, "\n")
	screen := strings.Join(lines[:25], "\n")
	for _, command := range []string{"make demo", "make test"} {
		if !strings.Contains(screen, command) {
			t.Errorf("the first screen of README does not have %q", command)
		}
	}
	if words := len(strings.Fields(text)); words > 800 {
		t.Errorf("README has %d words, want at most 800", words)
	}
}

// Pages for people are read at a sitting: one of docs has at most 4,500 words, and all together have at most 40,000.
// Tables that a program reads out of the code are in docs/reference, what was measured in studies.
func TestPagesAreShort(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, page := range pages {
		words := len(strings.Fields(read(t, page)))
		if words > 4500 {
			t.Errorf("%s has %d words, want at most 4500", page, words)
		}
		if page != "results.md" && page != "truth.md" {
			all += words
		}
	}
	if all > 40000 {
		t.Errorf("the pages have %d words, want at most 40000", all)
	}
}
