package terminal

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestKeys(t *testing.T) {
	for text, want := range map[string][]Key{
		"jk":                           {'j', 'k'},
		"é日":                           {'é', '日'},
		"\r\n":                         {KeyEnter, KeyEnter},
		"\x7f\b":                       {KeyBackspace, KeyBackspace},
		"\x03\x0c\x01\x1a":             {KeyInterrupt, KeyRedraw, KeySuspend},
		"\x1b":                         {KeyEscape},
		"\x1b\x1b":                     {KeyEscape, KeyEscape},
		"\x1b[A\x1bOB":                 {KeyUp, KeyDown},
		"\x1b[1;5A\x1b[H":              {KeyUp, KeyHome},
		"\x1b[5~\x1b[6~":               {KeyPageUp, KeyPageDown},
		"\x1b[1~\x1b[4~\x1b[F":         {KeyHome, KeyEnd, KeyEnd},
		"\x1bx\x1b[15~\x1b[Zq":         {'q'}, // Alt-X, F5, Shift-Tab
		"\x1b[[Aq":                     {'q'}, // F1 of the Linux console
		"\x1b[12":                      nil,   // never completed
		"\x1b[1\x03":                   {KeyInterrupt},
		"\xff\xe6q":                    {'q'}, // no UTF-8
		"a\x1b[200~Ky\x1b[A\x1b[201~b": {'a', 'b'},
	} {
		whole := new(decoder).keys([]byte(text), true)
		var d decoder
		var single []Key
		for i := range len(text) {
			single = append(single, d.keys([]byte{text[i]}, false)...)
		}
		single = append(single, d.keys(nil, true)...)
		if !slices.Equal(whole, want) || !slices.Equal(single, want) {
			t.Errorf("%q: keys %d, byte by byte %d, want %d", text, whole, single, want)
		}
	}
}

// Whatever arrives, nothing of it is kept for ever, and pasted text presses no key.
func TestAnyBytesAreKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d decoder
		for _, part := range rapid.SliceOf(rapid.SliceOfN(rapid.SampledFrom([]byte("\x1b[O~A2015;x\x00\xff\xc3\xa9")), 0,
			8)).Draw(t, "parts") {
			for _, k := range d.keys(part, false) {
				if k == noKey || k == pasteBegins || k == pasteEnds {
					t.Fatalf("%q is key %d", part, k)
				}
			}
		}
		if d.keys(nil, true); len(d.rest) > 0 {
			t.Fatalf("%q is kept", d.rest)
		}
	})
}
