package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EncodeText makes valid UTF-8 of an argument, a variable or a path, which may contain any byte except zero. Without
// it, JSON, which transports and stores them, would change bytes that are not UTF-8. Each such byte becomes a zero byte
// and two hexadecimal digits; valid UTF-8, including placeholders, does not change. DecodeText is the inverse.
func EncodeText(raw string) string {
	if utf8.ValidString(raw) {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRuneInString(raw[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "\x00%02x", raw[i])
		} else {
			b.WriteString(raw[i : i+n])
		}
		i += n
	}
	return b.String()
}

// EncodeTexts encodes each text of a list.
func EncodeTexts(raw []string) []string {
	all := slices.Clone(raw)
	for i := range all {
		all[i] = EncodeText(all[i])
	}
	return all
}

// errZero is what DecodeText returns for a zero byte that EncodeText did not write.
var errZero = errors.New("must not hold a zero byte")

// DecodeText reverses EncodeText. It returns an error for a text that EncodeText cannot have written.
func DecodeText(text string) (raw string, err error) {
	if strings.IndexByte(text, 0) < 0 {
		return text, nil
	}
	var b strings.Builder
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "\x00")
		b.WriteString(before)
		if !found {
			break
		}
		if len(after) < 2 {
			return "", errZero
		}
		c, err := strconv.ParseUint(after[:2], 16, 8)
		if err != nil {
			return "", errZero
		}
		b.WriteByte(byte(c))
		rest = after[2:]
	}
	if EncodeText(b.String()) != text {
		return "", errZero
	}
	return b.String(), nil
}

// Printable escapes characters that would break a line, control a terminal or not show. Names that users choose are
// printed this way.
func Printable(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// Decoded returns l with the bytes that the kernel gets: see EncodeText.
func (l *Launch) Decoded() (raw Launch, err error) {
	raw = *l
	raw.Args, raw.Env = make([]string, len(l.Args)), make([]string, len(l.Env))
	decode := func(what, text string) string {
		text, e := DecodeText(text)
		if e != nil && err == nil {
			err = fmt.Errorf("%s: %w", what, e)
		}
		return text
	}
	for i := range l.Args {
		raw.Args[i] = decode("arguments", l.Args[i])
	}
	for i := range l.Env {
		raw.Env[i] = decode("environment", l.Env[i])
	}
	raw.Dir, raw.Stdin = decode("working directory", l.Dir), decode("input file", l.Stdin)
	return raw, err
}

// Clip shortens a value that a user wrote, for a message of one line.
func Clip(value string) string {
	const longest = 60
	if len(value) > longest {
		value = value[:longest] + "..."
	}
	return value
}

// ClipList joins names for a message of one line: the first ones, and the number of the others.
func ClipList(names []string, between string) string {
	const most = 8
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:most], between), more)
	}
	return strings.Join(names, between)
}

// ClipLine is Clip for arbitrary text: unprintable characters are escaped.
func ClipLine(text string) string {
	quoted := strconv.Quote(Clip(text))
	return quoted[1 : len(quoted)-1]
}

// NameOf returns the name of one of a few values, such as an EventKind. A value without a name, which is a bug, has its
// kind and number.
func NameOf[V ~uint8](names []string, v V, kind string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", kind, uint8(v))
}

// ParseName sets v to the value of a name, which must not be below least. The error says what the name should be of.
func ParseName[V ~uint8](v *V, names []string, least V, text []byte, kind string) error {
	i := slices.Index(names, string(text))
	if i < int(least) {
		return fmt.Errorf("%s %q: unknown", kind, text)
	}
	*v = V(i)
	return nil
}
