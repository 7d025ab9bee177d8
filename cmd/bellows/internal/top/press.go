package top

import (
	"slices"
	"unicode"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/terminal"
)

// help says what the keys do.
var help = []string{
	"↑ ↓ j k, page keys, Home End   select a job",
	"Enter e   explain the selected job, or stop that;  [ ]   scroll",
	"p r       pause, resume what is selected",
	"K         kill the selected job; y confirms",
	"s S       sort by the next column; the other way round",
	"/         show only what contains a text; Enter keeps it",
	"u         show only the jobs of the selected user, or all",
	"f         show only jobs in one state, the next one, or all",
	"Esc       show everything again",
	"t         tasks instead of jobs, or jobs",
	"h ?       help;  Ctrl-L  draw anew;  Ctrl-Z  stop;  q  quit",
}

// longestText bounds the text of the filter, in characters.
const longestText = 40

// press takes in a key. It returns whether the user wants to quit.
func (s *state) press(k terminal.Key) (quit bool) {
	if k == terminal.KeyInterrupt {
		return true
	}
	switch s.mode {
	case typing:
		s.typed(k)
	case confirming:
		if s.mode = browsing; k == 'y' || k == 'Y' {
			s.ask(killing, s.doomed.subject)
		} else {
			s.say(plain, "%s: not killed", s.doomed.subject)
		}
	case helping:
		s.inHelp(k, help)
	default:
		return s.browse(k)
	}
	return false
}

// typed takes in a key while the text of the filter is typed.
func (s *state) typed(k terminal.Key) {
	text := []rune(s.text)
	switch {
	case k == terminal.KeyEnter:
		s.mode = browsing
	case k == terminal.KeyEscape:
		s.mode, s.text = browsing, ""
	case k == terminal.KeyBackspace && len(text) > 0:
		s.text = string(text[:len(text)-1])
	case k > 0 && unicode.IsPrint(rune(k)) && len(text) < longestText:
		s.text += string(rune(k))
	}
}

// browse takes in a key while the table is shown.
func (s *state) browse(k terminal.Key) (quit bool) {
	if to, ok := moved(k, s.at, len(s.rows), s.lines-len(s.head())-3); ok {
		s.choose(to)
		return false
	}
	switch k {
	case 'q':
		return true
	case 'e', terminal.KeyEnter:
		s.pane = s.pane.toggled()
	case '[', ']':
		s.pane.scrollBy(k == ']')
	case 'p', 'r', 'K':
		s.command(k)
	case 'h', '?':
		s.mode, s.scroll = helping, 0
	default:
		s.filter(k)
	}
	return false
}

// command takes in a key that orders something about the selected row. Only jobs are killed, never single tasks.
func (s *state) command(k terminal.Key) {
	r := s.current()
	switch {
	case r == nil:
	case k == 'p':
		s.ask(pausing, r.subject)
	case k == 'r':
		s.ask(resuming, r.subject)
	default:
		s.mode, s.doomed = confirming, *r
		s.doomed.task = cluster.TaskID{}
	}
}

// filter takes in a key that changes which rows are shown, or their order.
func (s *state) filter(k terminal.Key) {
	switch k {
	case 's':
		s.order = jobTable.next(s.order)
	case 'S':
		s.reversed = !s.reversed
	case '/':
		s.mode, s.text = typing, ""
	case 'u':
		if r := s.current(); s.user == "" && r != nil {
			s.user = r.user
		} else {
			s.user = ""
		}
	case 'f':
		s.state = s.nextState()
	case 't':
		s.tasks = !s.tasks
	case terminal.KeyEscape:
		s.user, s.state, s.text = "", "", ""
		s.pane = nil
	}
}

// nextState returns the state after the one that is shown, of those that there are; empty after the last.
func (s *state) nextState() string {
	rows, _ := s.all()
	for _, next := range states[rankOf(s.state)%len(states):] {
		if next != s.state && slices.ContainsFunc(rows, func(r row) bool { return r.state == next }) {
			return next
		}
	}
	return ""
}

// toggled returns the pane that is shown instead: one that is empty yet, or none.
func (p *pane) toggled() *pane {
	if p != nil {
		return nil
	}
	return &pane{}
}

// scrollBy scrolls an explanation by some lines.
func (p *pane) scrollBy(down bool) {
	const by = 5
	switch {
	case p == nil:
	case down:
		p.scroll = min(p.scroll+by, len(p.lines))
	default:
		p.scroll = max(0, p.scroll-by)
	}
}
