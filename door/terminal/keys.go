package terminal

import (
	"strings"
	"unicode/utf8"
)

// Key is a key that was pressed: its character, or one of the constants.
type Key rune

const (
	noKey Key = -1 - iota // what arrived is no key, or one that nothing here knows
	pasteBegins
	pasteEnds
	KeyUp
	KeyDown
	KeyPageUp
	KeyPageDown
	KeyHome
	KeyEnd
	KeyEscape
	KeyEnter
	KeyBackspace
	KeyInterrupt // Ctrl-C
	KeyRedraw    // Ctrl-L
	KeySuspend   // Ctrl-Z
)

// decoder finds the keys in what a terminal sends.
type decoder struct {
	rest []byte // the beginning of a key whose end has not arrived
	// pasting: what arrives is pasted text, which presses no key.
	pasting bool
}

// keys returns the keys in p, which follows what arrived before. last says that nothing else arrives for now: then an
// escape character is the key Escape, and not the beginning of another.
func (d *decoder) keys(p []byte, last bool) (all []Key) {
	d.rest = append(d.rest, p...)
	for len(d.rest) > 0 {
		key, n := decode(d.rest, last)
		if n == 0 {
			break
		}
		d.rest = d.rest[n:]
		switch {
		case key == pasteBegins:
			d.pasting = true
		case key == pasteEnds:
			d.pasting = false
		case key != noKey && !d.pasting:
			all = append(all, key)
		}
	}
	return all
}

// decode returns the first key in p, which is not empty, and its length; length 0 if its end has not arrived.
func decode(p []byte, last bool) (Key, int) {
	switch c := p[0]; {
	case c == 0x1b:
		return decodeEscape(p, last)
	case c == '\r' || c == '\n':
		return KeyEnter, 1
	case c == 0x7f || c == '\b':
		return KeyBackspace, 1
	case c == 'C'-'@':
		return KeyInterrupt, 1
	case c == 'L'-'@':
		return KeyRedraw, 1
	case c == 'Z'-'@':
		return KeySuspend, 1
	case c < ' ':
		return noKey, 1
	case !utf8.FullRune(p) && !last:
		return noKey, 0
	}
	r, n := utf8.DecodeRune(p)
	if r == utf8.RuneError && n == 1 {
		return noKey, 1
	}
	return Key(r), n
}

// decodeEscape is decode for what begins with an escape character: the key Escape, a character with Alt, which is not
// used here, or a control sequence (ECMA-48, 5.4): ESC [ or ESC O, parameters, and a last character that names the
// key.
func decodeEscape(p []byte, last bool) (Key, int) {
	switch {
	case len(p) == 1 && !last:
		return noKey, 0
	case len(p) == 1 || p[1] == 0x1b:
		return KeyEscape, 1
	case p[1] != '[' && p[1] != 'O':
		return noKey, 2
	}
	for i, c := range p[2:] {
		switch {
		case c == '[' && i == 0: // the Linux console sends ESC [ [ A for F1
		case c >= '@' && c <= '~':
			return keyOf(string(p[2:2+i]), c), 2 + i + 1
		case c < ' ' || c > '~': // no part of a sequence
			return noKey, 2 + i
		}
	}
	if last {
		return noKey, len(p)
	}
	return noKey, 0
}

// numbered are the keys whose control sequences have a number as parameter.
var numbered = map[string]Key{"1": KeyHome, "7": KeyHome, "4": KeyEnd, "8": KeyEnd, "5": KeyPageUp, "6": KeyPageDown,
	"200": pasteBegins, "201": pasteEnds}

// keyOf returns the key of a control sequence.
func keyOf(parameters string, end byte) Key {
	number, _, _ := strings.Cut(parameters, ";") // a modifier may follow
	if number == "[" {
		return noKey
	}
	switch end {
	case 'A':
		return KeyUp
	case 'B':
		return KeyDown
	case 'H':
		return KeyHome
	case 'F':
		return KeyEnd
	}
	if key, known := numbered[number]; known && end == '~' {
		return key
	}
	return noKey
}
