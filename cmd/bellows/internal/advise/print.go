package advise

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
)

// mostApps is for how many applications the page has a row.
const mostApps = 15

func (d *document) print(w io.Writer, html string) error {
	say := func(text string) { fmt.Fprintln(w, terminal.Fold(cluster.Printable(text), terminal.Width-2, "  ")) }
	say(d.Headline + ".")
	fmt.Fprintln(w)
	heads, rows := d.appTable()
	if err := write(w, heads, rows, 0); err != nil {
		return err
	}
	if more := len(d.Apps) - mostApps; more > 0 {
		fmt.Fprintf(w, "%s more: --json has all.\n", terminal.Count(more, "application"))
	}
	fmt.Fprintln(w)
	say("Simulated " + d.where() + ":")
	fmt.Fprintln(w)
	heads, rows = d.wayTable()
	if err := write(w, heads, rows, -1); err != nil {
		return err
	}
	for _, text := range d.conclusions() {
		say(text)
	}
	d.list(w, "What this takes for granted:", d.Premises)
	lines(w, toPaste, d.Paste)
	lines(w, toBox, d.Boxes)
	d.list(w, "Of the record:", d.Notes)
	if html != "" {
		fmt.Fprintf(w, "\nThe page with its picture: %s\n", html)
	}
	return nil
}

// What is above lines to paste.
const (
	toPaste = "To paste (the memory is the limit, what is reserved is learned)"
	toBox   = "Or, for who stays with boxes, what would have sufficed"
)

// lines prints lines as they are below a title, if there are any.
func lines(w io.Writer, title string, all []string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, line := range all {
		fmt.Fprintln(w, "  "+line)
	}
}

// list prints sentences below a title, if there are any.
func (d *document) list(w io.Writer, title string, sentences []string) {
	if len(sentences) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for _, s := range sentences {
		fmt.Fprintln(w, terminal.Fold("- "+cluster.Printable(s), terminal.Width-2, "  "))
	}
}

func write(w io.Writer, heads []string, rows [][]string, shrinks int) error {
	t := terminal.NewTable(heads...)
	t.Shrinks = shrinks
	for _, row := range rows {
		t.Add(row...)
	}
	return t.Write(w)
}

// where says on what, and under which policy, the tasks are simulated.
func (d *document) where() string {
	m := &d.Machine
	swap := "without swap"
	if m.Swap > 0 {
		swap = "each with " + resource.FormatMemory(m.Swap) + " of swap"
	}
	return fmt.Sprintf("on %s of %s and %s, %s (%s), under the policy %s", terminal.Count(m.Nodes, "node"),
		resource.CPU.Format(m.CPUs), resource.FormatMemory(m.Memory), swap, m.From, d.Policy)
}

func (d *document) appTable() (heads []string, rows [][]string) {
	heads = []string{"APPLICATION", ">RUNS", ">ASKED", ">USED", ">AT MOST", ">RESERVE", ">WASTED", ">FAILED"}
	size := func(a *resource.Amount) string {
		if a == nil {
			return "?"
		}
		return resource.FormatMemory(*a)
	}
	for i := range d.Apps[:min(mostApps, len(d.Apps))] {
		a := &d.Apps[i]
		failed := strconv.Itoa(a.Ended)
		if a.Killed > 0 {
			failed += fmt.Sprintf(" (%d memory)", a.Killed)
		}
		if a.Runs == 0 {
			rows = append(rows, []string{a.short(), "0", "-", "-", "-", "-", "-", failed})
			continue
		}
		rows = append(rows, []string{a.short(), strconv.Itoa(a.Runs), size(a.Asked), resource.FormatMemory(a.Median),
			resource.FormatMemory(a.Most), resource.FormatMemory(a.Reserve), number(a.Wasted), failed})
	}
	return heads, rows
}

func (d *document) wayTable() (heads []string, rows [][]string) {
	heads = []string{"MEMORY", ">MAKESPAN", ">MEAN WAIT", ">AT ONCE", ">FAILED", ">STOOD", ">LOST", ">WASTED"}
	for i := range d.Ways {
		y := &d.Ways[i]
		if y.Error != "" {
			rows = append(rows, []string{y.Name, "-", "-", "-", "-", "-", "-", "-"})
			continue
		}
		rows = append(rows, []string{y.Name, span(y.Makespan), span(y.Wait), number(y.AtOnce), strconv.Itoa(y.Failures),
			strconv.Itoa(y.Stood), strconv.Itoa(y.Lost), number(y.Wasted)})
	}
	return heads, rows
}

// span prints a time, from a second on in tenths.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d >= time.Second {
		d = d.Round(100 * time.Millisecond)
	}
	return terminal.Span(d)
}

// conclusions compare what is learned with the first way, and say which way cannot be simulated.
func (d *document) conclusions() (all []string) {
	for i := range d.Ways {
		if y := &d.Ways[i]; y.Error != "" {
			all = append(all, fmt.Sprintf("%s: %s.", y.Name, strings.TrimSuffix(y.Error, ".")))
		}
	}
	first, peaks, last := &d.Ways[0], &d.Ways[len(d.Ways)-2], &d.Ways[len(d.Ways)-1]
	if first.Error != "" || last.Error != "" || first.Makespan <= 0 || first.AtOnce <= 0 {
		return all
	}
	text := fmt.Sprintf("Learned against %s: %s times as many at once, ", first.Name, number(last.AtOnce/first.AtOnce))
	switch change := 100 * (1 - last.Makespan/first.Makespan); {
	case change >= 0.5:
		text += fmt.Sprintf("done %.0f %% earlier", change)
	case change <= -0.5:
		text += fmt.Sprintf("done %.0f %% later", -change)
	default:
		text += "done at the same time"
	}
	all = append(all, fmt.Sprintf("%s, %s.", text, failures(last)))
	if first != peaks && peaks.Error == "" && peaks.Makespan > little*first.Makespan && peaks.Wait > little*first.Wait {
		all = append(all, "Memory is not what is short here: nothing would be gained even if each peak were known before.")
	}
	return all
}

// little is the share of a time from which on nothing is gained.
const little = 0.98

// failures says which failures are to be expected.
func failures(y *way) string {
	text := "and no failure is expected"
	if y.Failures > 0 {
		text = fmt.Sprintf("and %s expected, after which %s lost", countAre(y.Failures, "failed attempt"),
			countAre(y.Lost, "task"))
	}
	if y.Stood > 0 {
		text += fmt.Sprintf("; %s to stand still for more than a tenth of the time", countAre(y.Stood, "task"))
	}
	return text
}

func countAre(n int, what string) string {
	return terminal.Count(n, what) + " " + terminal.IsOrAre(n)
}
