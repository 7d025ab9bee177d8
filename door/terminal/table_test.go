package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestFoldKeepsWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zé ]{0,200}`).Draw(t, "text")
		n := rapid.IntRange(10, 80).Draw(t, "n")
		folded := Fold(text, n, "    ")
		if got, want := strings.Join(strings.Fields(folded), " "), strings.Join(strings.Fields(text), " "); got != want {
			t.Fatalf("words are %q, want %q", got, want)
		}
		for line := range strings.Lines(folded) {
			line = strings.TrimSpace(line)
			if utf8.RuneCountInString(line) > n && strings.Contains(line, " ") {
				t.Fatalf("line %q is longer than %d", line, n)
			}
		}
	})
}
