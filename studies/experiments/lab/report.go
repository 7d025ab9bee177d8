package lab

import (
	_ "embed"
	"fmt"
	"strings"
)

// reportHead begins docs/results.md.
//
//go:embed results-head.md
var reportHead string

// Report renders summaries as docs/results.md: a table of verdicts, with links to the pages of the experiments in
// folder, which is relative to the document.
func Report(all []Summary, folder string) []byte {
	text := new(strings.Builder)
	text.WriteString(reportHead)
	text.WriteString("| experiment | what | runs | claims that hold | in part | not |\n|---|---|---|---|---|---|\n")
	for i := range all {
		m := &all[i]
		count := map[Verdict]int{}
		for _, c := range m.Claims {
			count[c.Holds]++
		}
		fmt.Fprintf(text, "| [%s](%s/%s) | %s | %s | %d of %d | %d | %d |\n", m.Experiment, folder, m.PageName(), m.Title,
			m.scale(), count[Holds], len(m.Claims), count[Partly], count[Fails])
	}
	return []byte(text.String())
}

// PageName is the name of the file with the Page of an experiment, beside its stored summary and pictures.
func (m *Summary) PageName() string { return FileName(m.Experiment) + ".md" }

// scale says how many runs were made.
func (m *Summary) scale() string {
	if m.Unit == "" {
		return "1"
	}
	s := fmt.Sprintf("%d %s", m.Runs, m.Unit)
	if m.Runs < m.FullRuns {
		s += fmt.Sprintf(" (of %d)", m.FullRuns)
	}
	return s
}

// command returns the command that reproduces the result.
func (m *Summary) command() string {
	c := "bellows-lab experiment run " + m.Experiment
	if m.Full {
		c += " --full"
	}
	if m.Unit != "" && (!m.Full || m.Runs != m.FullRuns) {
		c += fmt.Sprintf(" --runs %d", m.Runs)
	}
	if m.Seed != defaultSeed {
		c += fmt.Sprintf(" --seed %d", m.Seed)
	}
	if len(m.Needs) > 0 {
		c += " --data FOLDER"
	}
	return c
}

// defaultSeed is the seed of the command line.
const defaultSeed = 1

// Page renders a summary as a document beside its pictures: claims with verdicts and reasons, tables, pictures and
// notes.
func (m *Summary) Page() []byte {
	text := new(strings.Builder)
	fmt.Fprintf(text, "# %s: %s\n\n%s. Runs: %s; seed %d: `%s`", m.Experiment, m.Title, m.Paper, m.scale(), m.Seed,
		m.command())
	if len(m.Needs) > 0 {
		fmt.Fprintf(text, ", where FOLDER has %s", strings.Join(m.Needs, ", "))
	}
	text.WriteString(".\n")
	for _, s := range m.Setup {
		fmt.Fprintf(text, "\n- %s", s)
	}
	if len(m.Setup) > 0 {
		text.WriteString("\n")
	}
	if len(m.Claims) > 0 {
		text.WriteString("\n| the paper | its number | ours | holds | counted as holding if |\n|---|---|---|---|---|\n")
	}
	for _, c := range m.Claims {
		holds := "**" + string(c.Holds) + "**"
		fmt.Fprintf(text, "| %s (%s) | %s | %s | %s | %s |\n", cell(c.Says), cell(c.Where), cell(c.Paper), cell(c.Ours),
			holds, cell(c.Criterion))
	}
	for _, c := range m.Claims {
		if c.Why != "" {
			fmt.Fprintf(text, "\n**Why not: \"%s\"** %s\n", strings.Trim(c.Says, "“”\""), c.Why)
		}
	}
	for _, t := range m.Tables {
		fmt.Fprintf(text, "\n%s:\n\n%s", t.Name, t.markdown())
	}
	for _, p := range m.Pictures {
		fmt.Fprintf(text, "\n![%s](%s)\n", p.Caption, p.File)
	}
	for _, n := range m.Notes {
		fmt.Fprintf(text, "\n%s\n", n)
	}
	return []byte(text.String())
}

// cell makes text fit into a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

func (t *Table) markdown() string {
	var text strings.Builder
	row := func(cells []string) {
		for _, c := range cells {
			text.WriteString("| " + cell(c) + " ")
		}
		text.WriteString("|\n")
	}
	row(t.Heads)
	text.WriteString(strings.Repeat("|---", len(t.Heads)) + "|\n")
	for _, r := range t.Rows {
		row(r)
	}
	return text.String()
}
