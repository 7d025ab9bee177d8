package testterminal

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Cell is a column of a line of the screen. The second column of a wide character has no text.
type Cell struct{ Text, Style string }

// screen is what a terminal shows. It knows the control sequences that the project's programs write, and no others,
// which are in strange.
type screen struct {
	columns, rows int
	lines, other  [][]Cell // other is the screen that is not shown
	alternate     bool
	x, y          int
	style         string
	modes         map[string]bool
	rest          []byte // the beginning of what has not arrived completely
	strange       []string
}

func newScreen(columns, rows int) screen {
	s := screen{modes: map[string]bool{"?25": true, "?7": true}}
	s.resize(columns, rows)
	return s
}

func blank(columns, rows int) [][]Cell {
	lines := make([][]Cell, rows)
	for i := range lines {
		lines[i] = blankLine(columns)
	}
	return lines
}

func blankLine(columns int) []Cell {
	line := make([]Cell, columns)
	for i := range line {
		line[i].Text = " "
	}
	return line
}

// resize changes the size; what was shown is forgotten, as the program has to draw it again.
func (s *screen) resize(columns, rows int) {
	s.columns, s.rows, s.x, s.y = columns, rows, 0, 0
	s.lines, s.other = blank(columns, rows), blank(columns, rows)
}

func (s *screen) text() string {
	var b strings.Builder
	for _, line := range s.lines {
		var text strings.Builder
		for _, c := range line {
			text.WriteString(c.Text)
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	return b.String()
}

func (s *screen) write(p []byte) {
	s.rest = append(s.rest, p...)
	for len(s.rest) > 0 {
		n := s.take(s.rest)
		if n == 0 {
			return
		}
		s.rest = s.rest[n:]
	}
}

var (
	sequence = regexp.MustCompile(`^\x1b\[(\??)([0-9;]*)([A-Za-z])`)
	begun    = regexp.MustCompile(`^\x1b(\[\??[0-9;]*)?$`)
)

// take shows the first character, or carries out the first control sequence; n is its length, 0 if its end has not
// arrived.
func (s *screen) take(p []byte) (n int) {
	switch c := p[0]; {
	case c == '\r':
		s.x = 0
		return 1
	case c == '\n':
		s.down()
		return 1
	case c == '\t':
		s.x = min((s.x/8+1)*8, s.columns-1)
		return 1
	case c == 0x1b && begun.Match(p):
		return 0
	case c == 0x1b:
		if m := sequence.FindSubmatch(p); m != nil {
			if !s.do(string(m[1]), string(m[2]), string(m[3])) {
				s.strange = append(s.strange, string(m[0]))
			}
			return len(m[0])
		}
		fallthrough
	case c < ' ' || c == 0x7f:
		s.strange = append(s.strange, string(p[:1]))
		return 1
	case !utf8.FullRune(p):
		return 0
	}
	r, n := utf8.DecodeRune(p)
	s.put(r)
	return n
}

// do carries out a control sequence; it returns whether it knows it.
func (s *screen) do(private, parameters, end string) bool {
	switch private + end {
	case "H":
		row, column, _ := strings.Cut(parameters, ";")
		s.y, s.x = min(number(row), s.rows)-1, min(number(column), s.columns)-1
	case "J":
		if parameters != "2" {
			return false
		}
		s.lines = blank(s.columns, s.rows)
	case "K":
		switch parameters {
		case "": // from here on
			copy(s.lines[s.y][s.x:], blankLine(s.columns-s.x))
		case "2":
			s.lines[s.y] = blankLine(s.columns)
		default:
			return false
		}
	case "m":
		if s.style = parameters; parameters == "0" {
			s.style = ""
		}
	case "?h", "?l":
		on := end == "h"
		switch parameters {
		case "1049":
			if on != s.alternate {
				s.lines, s.other, s.alternate = s.other, s.lines, on
			}
			if on {
				s.lines = blank(s.columns, s.rows)
			}
		case "7", "25", "2004":
			s.modes["?"+parameters] = on
		default:
			return false
		}
	default:
		return false
	}
	return true
}

// number returns a parameter; 1 if it is left out.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 1
	}
	return max(1, n)
}

func (s *screen) down() {
	if s.y++; s.y >= s.rows {
		s.y = s.rows - 1
		s.lines = append(s.lines[1:], blankLine(s.columns))
	}
}

// put shows a character at the cursor.
func (s *screen) put(r rune) {
	w := 1
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me):
		if s.x > 0 {
			s.lines[s.y][s.x-1].Text += string(r)
		}
		return
	case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
		w = 2
	}
	if s.x+w > s.columns {
		if !s.modes["?7"] {
			s.x = max(0, s.columns-w)
		} else {
			s.x = 0
			s.down()
		}
	}
	s.lines[s.y][s.x] = Cell{string(r), s.style}
	for i := 1; i < w && s.x+i < s.columns; i++ {
		s.lines[s.y][s.x+i] = Cell{"", s.style}
	}
	s.x = min(s.x+w, s.columns)
}
