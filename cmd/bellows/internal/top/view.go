package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/jobs"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// view returns the lines of the screen: as many as it has, none wider than it is. If the number of lines is not
// bounded, it returns the head and the whole table.
func (s *state) view() []line {
	if s.lines == 0 {
		return s.within(slices.Concat(s.head(), []line{nil}, s.table(1+max(1, len(s.rows)))))
	}
	return s.layout(s.head(), s.foot(), s.body)
}

// body returns what is between head and foot, in that many lines.
func (s *state) body(lines int) []line {
	switch {
	case lines <= 0:
		return nil
	case s.mode == helping:
		return exactly(lines, s.helpLines(help))
	case s.pane == nil:
		return exactly(lines, s.table(lines))
	}
	const least = 12 // lines, for table and pane beside each other
	upper := 0
	if lines >= least {
		upper = max(4, min(lines*2/5, len(s.rows)+1))
	}
	return slices.Concat(exactly(upper, s.table(upper)), exactly(lines-upper, s.explanation(lines-upper)))
}

// exactly returns that many lines.
func exactly(n int, lines []line) []line {
	lines = lines[:min(n, len(lines))]
	return append(slices.Clone(lines), make([]line, n-len(lines))...)
}

// explanation returns the pane.
func (s *state) explanation(lines int) []line {
	title := "explanation"
	if s.pane.job > 0 {
		title = fmt.Sprintf("explanation of job %d", s.pane.job)
	}
	return s.pane.view(title, s.columns, lines)
}

func (p *pane) view(title string, columns, lines int) []line {
	title = "── " + title + " "
	out := []line{words(title+strings.Repeat("─", max(0, columns-terminal.Cells(title))), accent)}
	if p.lines == nil {
		return append(out, words("asking the daemon ...", faint))
	}
	var text []string
	for _, l := range p.lines {
		text = append(text, wrap(l, columns)...)
	}
	from := max(0, min(p.scroll, len(text)-(lines-1)))
	for _, l := range text[from:] {
		out = append(out, words(l, plain))
	}
	return out
}

// table returns the heads of the columns and as many rows as fit into that many lines, the selected one among them.
func (s *state) table(lines int) (out []line) {
	first := ""
	if s.tasks {
		first = "TASK"
	}
	if len(s.rows) == 0 {
		out = []line{jobTable.heads(jobTable.fit(nil, s.columns, s.now), s.order, first), words(s.nothing(), faint)}
		return out[max(0, 2-lines):]
	}
	return jobTable.view(&s.frame, s.rows, s.at, lines, s.order, first)
}

// nothing says why the table is empty.
func (s *state) nothing() string {
	switch {
	case s.user+s.state+s.text != "" && s.lines == 0:
		return "nothing is of that kind"
	case s.user+s.state+s.text != "":
		return "nothing is of that kind; Esc shows everything"
	case s.tasks && len(s.jobs) > 0:
		return "no task runs"
	}
	return "no jobs"
}

func lookOf(state string) style {
	switch state {
	case "running":
		return good
	case "pending", "starting":
		return plain
	case "failed", "cancelled", "ending", "set-aside":
		return bad
	}
	return warning
}

// head returns the lines about the daemon and the machine, the most important first.
func (s *state) head() []line {
	lines := []line{s.daemon()}
	if s.machine != nil {
		st := &s.machine.Status
		if st.Trouble != "" {
			lines = append(lines, words("trouble: "+st.Trouble, bad))
		}
		if st.Crowded != "" {
			lines = append(lines, words("warning: "+st.Crowded, warning))
		}
	}
	lines = append(lines, s.tally())
	if s.machine == nil {
		return lines
	}
	memory, cpu, swap := s.sums()
	lines = append(lines, memory.line("memory", size, s.columns, size(swap)+" swap"))
	if slack := &s.machine.Status.Slack; !slack.None() {
		lines = append(lines, slackLine(slack, s.columns))
	}
	return append(lines, cpu.line("cores", cores, s.columns))
}

// slackLine compares what was asked for tasks with what is reserved for them and used, now and of runs that have ended.
func slackLine(s *api.Slack, columns int) line {
	out := line{{pad("slack", 6, false), bold}}
	add := func(text string) bool {
		before := len(out)
		out = out.more(columns, text)
		return len(out) > before
	}
	if n := &s.Now; n.Tasks > 0 && !add(jobs.SlackWords(n, size)) {
		add(fmt.Sprintf("asked %s, used %s", jobs.AskedWords(n, size), size(n.Used)))
	}
	if p := &s.Past; p.Tasks > 0 && !add("ended: "+jobs.SlackWords(p, size)) {
		add(fmt.Sprintf("ended: %s, %s, %s", jobs.AskedWords(p, size), size(p.Reserved), size(p.Used)))
	}
	return out
}

// daemon says whether there is a daemon, and which.
func (s *state) daemon() line {
	name := span{"bellows", bold}
	switch {
	case s.lost != nil:
		return s.away(name)
	case s.machine == nil:
		return line{name, {"  waiting for the daemon", faint}}
	}
	st := &s.machine.Status
	health := span{"healthy", good}
	if st.Trouble != "" {
		health = span{"in trouble", bad}
	}
	out := line{name, {"  ", plain}, health}
	for _, text := range []string{"policy " + st.Policy, "up " + terminal.Age(s.now.Sub(st.Since)),
		fmt.Sprintf("process %d", st.PID), "version " + st.Version} {
		out = out.more(s.columns, text)
	}
	return out
}

// more returns a line with another part if that fits.
func (l line) more(columns int, text string) line {
	if terminal.Cells(l.text())+2+terminal.Cells(text) > columns {
		return l
	}
	return append(l, span{"  " + text, plain})
}

// tally says how many jobs are in each state, and how many tasks run and wait.
func (s *state) tally() line {
	var parts []string
	for _, name := range states {
		if n := s.counts[name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	text := terminal.Count(len(s.jobs), "job")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	out := words(text, plain)
	if s.machine != nil {
		st := &s.machine.Status
		out = out.more(s.columns, fmt.Sprintf("%s running, %d waiting", terminal.Count(st.Running, "task"), st.Pending))
	}
	return out
}

// amounts are how much of a resource the machine has: bytes or millicores. grown is what its containers hold.
type amounts struct{ all, used, reserved, grown, left, still int64 }

// sums adds up what nodes and containers have. What tasks hold that stand still is a part of it: their memory, and
// the cores that they do not lend.
func (s *state) sums() (memory, cpu amounts, swap int64) {
	for _, n := range s.machine.Status.Nodes {
		memory.all, memory.used, memory.left = memory.all+n.Memory, memory.used+n.UsedAnonymous, memory.left+n.LeftMemory
		memory.reserved, memory.grown = memory.reserved+n.Reserved(), memory.grown+n.Holds()
		cpu.all, cpu.left = cpu.all+n.CPU, cpu.left+n.FreeCPU
		cpu.reserved += n.CPU - n.FreeCPU + n.OverdrawnCPU
	}
	cpu.used = unknown
	for _, j := range s.jobs {
		for _, t := range s.measured(j.Tasks) {
			if u, ok := s.use[container(&t)]; ok && u.cpu != unknown {
				sum(&cpu.used, &u.cpu)
			}
			if t.Usage != nil {
				sum(&swap, t.Usage.Swap)
			}
			if t.Suspended != nil && t.Usage != nil {
				sum(&memory.still, t.Usage.Anonymous)
			}
			if t.Suspended != nil && !t.Suspended.Lends {
				cpu.still += t.CPUMillicores
			}
		}
	}
	return memory, cpu, swap
}

// line returns a line with a bar and the amounts, and what comes after them, as far as they fit.
func (a *amounts) line(name string, print func(int64) string, columns int, after ...string) line {
	width := max(6, min(24, columns/8))
	out := line{{pad(name, 7, false), bold}, {bar(a.used, max(a.reserved, a.grown), a.all, width), accent}}
	parts := []string{print(a.used) + " used of " + print(a.all), print(a.reserved) + " reserved"}
	if a.grown > a.reserved {
		parts = append(parts, "grown to "+print(a.grown))
	}
	for _, text := range slices.Concat(parts, []string{print(a.left) + " left", print(a.still) + " still"}, after) {
		out = out.more(columns, text)
	}
	return out
}

// foot returns the last lines: what the user types or is asked, else what happened, else why the selected row is in
// its state; and what is shown and how to get help.
func (s *state) foot() []line {
	const roomy = 12 // lines
	switch {
	case s.mode == typing:
		return []line{{{"show what contains: ", bold}, {s.text, plain}, {"▏", accent}}}
	case s.mode == confirming:
		return []line{words(s.question(), bad)}
	case s.mode == helping:
		return []line{words("any key goes back", faint)}
	}
	first := s.news()
	if s.lines >= roomy {
		return []line{first, s.shown()}
	}
	if len(first) == 0 || s.user+s.state+s.text != "" && !s.talks() {
		return []line{s.shown()}
	}
	return []line{first}
}

// question asks whether to kill a job.
func (s *state) question() string {
	what := s.doomed.subject.String()
	if s.doomed.named {
		what += " (" + terminal.Cut(s.doomed.name, 30) + ")"
	}
	return fmt.Sprintf("kill %s of %s? y kills it, any other key does not", what, s.doomed.user)
}

// news says what happened or, after a while, why the selected row is in its state.
func (s *state) news() line {
	if s.talks() {
		return words(s.message.text, s.message.style)
	}
	r := s.current()
	if r == nil {
		return nil
	}
	text := fmt.Sprintf("%s is %s", r.subject, r.state)
	if r.why != "" {
		text += ": " + r.why
	}
	return words(text, plain)
}

// shown says what the table shows.
func (s *state) shown() line {
	out := words("h help  q quit", faint)
	what := "jobs"
	if s.tasks {
		what = "tasks"
	}
	if len(s.rows) > 0 {
		out = out.more(s.columns, fmt.Sprintf("%d of %d %s", s.at+1, len(s.rows), what))
	}
	for _, part := range [][2]string{{"of user ", s.user}, {"only ", s.state}, {"with /", s.text}} {
		if part[1] != "" {
			out = out.more(s.columns, part[0]+part[1])
		}
	}
	return out.more(s.columns, "by "+jobTable.columns[s.by].name)
}
