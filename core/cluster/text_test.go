package cluster

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEncodeText(t *testing.T) {
	for raw, want := range map[string]string{"": "", "plain {memory}": "plain {memory}", "caf\xe9.txt": "caf\x00e9.txt",
		"é\xc3": "é\x00c3", "\xed\xa0\x80": "\x00ed\x00a0\x0080", "\uFFFD": "\uFFFD"} {
		if got := EncodeText(raw); got != want {
			t.Errorf("%q is %q, want %q", raw, got, want)
		}
	}
	for _, text := range []string{"\x00", "a\x00b", "\x0000", "\x0041", "\x00E9", "\x00c3\x00a9", "\x00g1", "\x00+1"} {
		if raw, err := DecodeText(text); err == nil {
			t.Errorf("%q is read as %q", text, raw)
		}
	}
}

// An argument of arbitrary bytes survives JSON unchanged, and has only one encoding.
func FuzzEncodeText(f *testing.F) {
	for _, raw := range []string{"caf\xe9.txt", "\xff\xfe", "a\x00b", "\x00e9", "é\xc3\x28", "\u202e"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if raw, err := DecodeText(text); err == nil && utf8.ValidString(text) && EncodeText(raw) != text {
			t.Errorf("%q is read as %q, and that written as %q", text, raw, EncodeText(raw))
		}
		for _, c := range []byte(text) {
			if c == 0 {
				return // no argument contains one
			}
		}
		sent, err := json.Marshal(EncodeText(text))
		if err != nil {
			t.Fatal(err)
		}
		var arrived string
		if err := json.Unmarshal(sent, &arrived); err != nil {
			t.Fatal(err)
		}
		if raw, err := DecodeText(arrived); err != nil || raw != text {
			t.Errorf("%q arrives as %q, %v", text, raw, err)
		}
	})
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{"": "", "plain é 日本": "plain é 日本",
		"evil\x1b[2J\x1b]0;owned\a\r\nX": `evil\x1b[2J\x1b]0;owned\a\r\nX`, "a\u202eb": `a\u202eb`, "a\x9bb": `a\x9bb`,
		"a\u009bb": `a\u009bb`, "\uFFFD": "\uFFFD", "x\x7f": `x\x7f`} {
		got := Printable(text)
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("%q is printed with %q", text, r)
			}
		}
	}
}
