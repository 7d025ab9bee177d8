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

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{"a/b.jsonl.zst": "a/b.jsonl.zst", "two words": "'two words'", "": "''",
		"it's": `'it'\''s'`} {
		if got := Quote(word); got != want {
			t.Errorf("%q is written %s, want %s", word, got, want)
		}
	}
}
