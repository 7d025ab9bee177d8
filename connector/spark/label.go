package spark

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode"
)

// label is what lines of an application begin with, in brackets: its name, the end of the id that Spark has for it, and
// the id that Spark has for the executor. a is the attachment for which the JVM is attached to the application anew.
func label(a *attachment) string {
	return fmt.Sprintf("%s %s %d", shown(cmp.Or(a.name, "application")), a.key[:min(len(a.key), idEnd)],
		a.number%math.MaxInt32)
}

// idEnd is how much of the key of an application its id ends with, bytes: see BellowsSchedulerBackend.
const idEnd = 8

// shown is the name of an application in a label: in one line, and without what ends the label.
func shown(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '[':
			return '('
		case c == ']':
			return ')'
		case unicode.IsControl(c):
			return ' '
		}
		return c
	}, name)
}

// Belongs returns a function that reports whether a line of the log of an executor belongs to an application, by its
// name or by the id that Spark has for it.
func Belongs(application string) func(line []byte) bool {
	is := regexp.QuoteMeta(shown(application)) + ` \S+`
	if at := strings.LastIndexByte(application, '-') + 1; at > 0 && len(application)-at == idEnd {
		is += `|[^]]* ` + regexp.QuoteMeta(application[at:])
	}
	return regexp.MustCompile(`^\[(?:` + is + `) [0-9]+\] `).Match
}
