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

// Report renders summaries as docs/results.md: tables of verdicts, of each paper and of each experiment, with links to
// the pages of the experiments in folder, which is relative to the document.
func Report(all []Summary, folder string) []byte {
	const heads, rule = "| yes | partly | no | not tested | one-sided | put in |\n", "|---|---|---|---|---|---|---|"
	papers, rows, whole := new(strings.Builder), new(strings.Builder), tally{}
	for i := 0; i < len(all); {
		of := tally{}
		name, _, _ := strings.Cut(all[i].Experiment, "/")
		for ; i < len(all) && strings.HasPrefix(all[i].Experiment, name+"/"); i++ {
			m, each := &all[i], tally{}
			each.add(m.Claims)
			of.add(m.Claims)
			fmt.Fprintf(rows, "| [%s](%s/%s) | %s | %s %s\n", m.Experiment, folder, m.PageName(), m.Title, m.scale(), each.row())
		}
		fmt.Fprintf(papers, "| %s %s\n", name, of.row())
		for what, count := range of {
			whole[what] += count
		}
	}
	return fmt.Appendf(nil, "%s| paper %s%s\n%s| together %s\n\n| experiment | what | runs %s%s---|---|\n%s", reportHead,
		heads, rule, papers, whole.row(), heads, rule, rows)
}

// tally counts claims by their label and verdict.
type tally map[labelled]int

// labelled is the label and the verdict of a claim.
type labelled struct {
	label   Label
	verdict Verdict
}

func (t tally) add(claims []Claim) {
	for i := range claims {
		t[labelled{claims[i].Label, claims[i].Holds}]++
	}
}

// row is the cells of a table: verdicts that count, those of claims that are one-sided, and how many are put in.
func (t tally) row() string {
	of := func(l Label, v Verdict) int { return t[labelled{l, v}] }
	sided := "–"
	if yes, half, no := of(OneSided, Holds), of(OneSided, Partly), of(OneSided, Fails); yes+half+no > 0 {
		sided = fmt.Sprintf("%d/%d/%d", yes, half, no)
	}
	put := of(PutIn, Holds) + of(PutIn, Partly) + of(PutIn, Fails) + of(PutIn, Untested)
	return fmt.Sprintf("| %d | %d | %d | %d | %s | %d |", of(CanFail, Holds), of(CanFail, Partly), of(CanFail, Fails),
		of(CanFail, Untested), sided, put)
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
		text.WriteString("\n| the paper | its number | ours | holds | counted as holding if | the verdict |\n" +
			"|---|---|---|---|---|---|\n")
	}
	for _, c := range m.Claims {
		holds := "**" + string(c.Holds) + "**"
		fmt.Fprintf(text, "| %s (%s) | %s | %s | %s | %s | %s |\n", cell(c.Says), cell(c.Where), cell(c.Paper), cell(c.Ours),
			holds, cell(c.Criterion), cell(c.LabelText()))
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
