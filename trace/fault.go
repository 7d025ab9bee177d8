package trace

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Fault is a mistake in a file: what is wrong, where. Its text is one sentence that begins with FILE:LINE.
type Fault struct {
	File string
	Line int // counted from 1; 0 is the file as a whole
	What string
}

func (f *Fault) Error() string {
	if f.Line == 0 {
		return oneLine(f.File + ": " + f.What)
	}
	return oneLine(fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What))
}

// oneLine writes characters that would break a line, or not show, as escapes: a message may quote whatever a file holds.
func oneLine(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// IsFault reports whether err says that a file is wrong, as opposed to that it could not be read.
func IsFault(err error) bool {
	var f *Fault
	return errors.As(err, &f)
}

// clip shortens a value that a user wrote, for a message of one line.
func clip(value string) string {
	const longest = 60
	if len(value) > longest {
		value = value[:longest] + "..."
	}
	return value
}
