package terminal

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCells(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "日本": 4, "ｶﾅ": 2, "▇·…": 3, "👍": 2,
		"한글": 4} {
		if got := Cells(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"abcdef", 6, "abcdef"}, {"abcdef", 4, "abc…"}, {"abcdef", 1, "…"}, {"abcdef", 0, ""}, {"abcdef", -3, ""},
		{"", 0, ""},
		{"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"日本語", 2, "…"}, {"ae\u0301bc", 3, "ae\u0301…"},
	} {
		if got := Cut(tt.text, tt.n); got != tt.want {
			t.Errorf("%q cut to %d columns is %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

// A text that is cut fits, and is as long as it can be.
func TestCutFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, n := rapid.StringMatching(`[a-z日本́é…]{0,30}`).Draw(t, "text"), rapid.IntRange(-1, 40).Draw(t, "n")
		got := Cut(text, n)
		switch {
		case Cells(got) > max(0, n):
			t.Fatalf("%q takes more than %d columns", got, n)
		case Cells(text) <= n && got != text, Cells(text) > n && n > 0 && (Cells(got) < n-1 || !strings.HasSuffix(got, "…")):
			t.Fatalf("%q cut to %d columns is %q", text, n, got)
		}
	})
}
