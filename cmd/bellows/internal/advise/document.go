package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/terminal"
)

// document is the output of `bellows advise --json`.
type document struct {
	Source    string      `json:"source" doc:"what was read"`
	Headline  string      `json:"headline" doc:"what was asked and used, in a sentence"`
	Tasks     int         `json:"tasks" doc:"tasks in the record that ended well"`
	Asked     *float64    `json:"asked_gbh,omitempty" doc:"memory asked for × run time, 1e9 bytes × hours; omitted if the record does not have it"`
	Used      float64     `json:"used_gbh" doc:"memory used × run time"`
	Apps      []appJSON   `json:"applications" doc:"by application, the one that wastes most first"`
	Machine   machineJSON `json:"machine" doc:"the simulated cluster"`
	Policy    string      `json:"policy" doc:"the simulated policy"`
	Simulated bool        `json:"simulated" doc:"always true: what the ways would have done is"`
	Ways      []way       `json:"ways" doc:"how it would have gone, by the way in which memory is reserved"`
	Premises  []string    `json:"premises" doc:"what the simulation takes for granted, in a sentence each"`
	Paste     []string    `json:"paste" doc:"commands to paste"`
	Boxes     []string    `json:"boxes,omitempty" doc:"requests that would have sufficed, for who stays with boxes, in the words of what was recorded; omitted if that has none"`
	Notes     []string    `json:"notes" doc:"what of the record was left out or repaired"`
}

// appJSON is what is known of an application. Amounts are bytes.
type appJSON struct {
	Owner   string           `json:"owner,omitempty" doc:"whose runs these are; omitted if the record does not have it"`
	App     string           `json:"app" doc:"what recurs"`
	Stage   string           `json:"stage,omitempty" doc:"the stage; omitted if there is one"`
	Runs    int              `json:"runs" doc:"tasks that ended well"`
	Asked   *resource.Amount `json:"asked_bytes,omitempty" doc:"most that a task asked for; omitted if the record does not have it"`
	Median  resource.Amount  `json:"used_median_bytes" doc:"median of their peaks"`
	Most    resource.Amount  `json:"used_most_bytes" doc:"largest of their peaks"`
	Reserve resource.Amount  `json:"reserve_bytes" doc:"what bellows would reserve for the next run"`
	Because string           `json:"because" doc:"why"`
	Limit   *resource.Amount `json:"limit_bytes,omitempty" doc:"what the next run may grow to; omitted if that is the memory of its node"`
	CPUs    resource.Amount  `json:"cpu_millicores" doc:"most that a task asked for"`
	Ended   int              `json:"failed" doc:"tasks in the record that ended without success"`
	Killed  int              `json:"failed_for_memory" doc:"those for want of memory, as far as the record says so"`
	Wasted  float64          `json:"wasted_gbh" doc:"memory asked for and not used × time"`
}

// machineJSON is the simulated cluster.
type machineJSON struct {
	Nodes  int             `json:"nodes" doc:"number of nodes"`
	CPUs   resource.Amount `json:"node_cpu_millicores" doc:"cores of a node"`
	Memory resource.Amount `json:"node_memory_bytes" doc:"memory of a node"`
	Swap   resource.Amount `json:"node_swap_bytes" doc:"swap of a node"`
	From   string          `json:"from" doc:"where these numbers are from"`
}

// document says what a record tells, without what is simulated.
func (r *record) document() *document {
	d := &document{Source: r.source, Tasks: len(r.tasks), Simulated: true, Apps: r.apps(), Premises: r.premises(),
		Notes: append([]string{}, r.notes...)}
	asked := 0.0
	for i := range r.tasks {
		t := &r.tasks[i]
		asked += float64(t.asked) * t.ran.Seconds() / gigabyteHours
		d.Used += float64(t.peak)*t.ran.Seconds()/gigabyteHours - wasted(t, t.peak, t.ran)
	}
	if !r.askless {
		d.Asked = &asked
	}
	d.Headline = d.headline()
	if d.paste(r.box); r.teach != "" {
		d.Paste = []string{r.teach} // its stages are no commands
	}
	return d
}

// apps returns what is known of each application, the one that wastes most first.
func (r *record) apps() []appJSON {
	type runs struct {
		appJSON
		app   profile.App
		tasks []*task
	}
	known := map[profile.App]*runs{}
	var order []*runs
	of := func(app profile.App) *runs {
		a := known[app]
		if a == nil {
			a = &runs{app: app, appJSON: appJSON{Owner: app.Owner, App: app.Name, Stage: app.Stage}}
			known[app] = a
			order = append(order, a)
		}
		return a
	}
	for i := range r.tasks {
		a := of(r.tasks[i].app)
		a.tasks = append(a.tasks, &r.tasks[i])
	}
	for app, ends := range r.ends {
		a := of(app)
		a.Ended, a.Killed = ends.All, ends.ForMemory
	}
	for _, a := range order {
		a.judge(a.app, a.tasks, r.askless)
	}
	slices.SortStableFunc(order, func(a, b *runs) int {
		return cmp.Or(cmp.Compare(b.Wasted, a.Wasted), cmp.Compare(b.Runs, a.Runs), cmp.Compare(b.Ended, a.Ended),
			cmp.Compare(a.App, b.App), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Owner, b.Owner))
	})
	all := make([]appJSON, len(order))
	for i, a := range order {
		all[i] = a.appJSON
	}
	return all
}

// judge sums up the runs of an application, and what they teach together.
func (a *appJSON) judge(app profile.App, tasks []*task, askless bool) {
	h := &profile.History{}
	var peaks []resource.Amount
	var asked resource.Amount
	slices.SortStableFunc(tasks, func(a, b *task) int { return cmp.Compare(a.ends(), b.ends()) })
	for _, t := range tasks {
		a.Runs++
		peaks = append(peaks, t.peak)
		a.CPUs, asked = max(a.CPUs, t.cpus), max(asked, t.asked)
		a.Wasted += wasted(t, t.asked, t.ran)
		run := profile.Run{Features: profile.Features{Cores: t.cpus, Input: t.input}, Ended: t.ends(), Duration: t.ran,
			Phases: t.phasesWith(t.cpus)}
		_, _ = h.Observe(app, run) // a run that is not sound teaches nothing
	}
	if len(tasks) == 0 {
		return
	}
	slices.Sort(peaks)
	a.Median, a.Most = peaks[len(peaks)/2], peaks[len(peaks)-1]
	limit := resource.Amount(0)
	if !askless && asked > 0 {
		limit = max(asked, a.Most)
		a.Asked, a.Limit = &asked, &limit
	}
	last := tasks[len(tasks)-1]
	if next, ok := h.Reserve(app, profile.Features{Cores: last.cpus, Input: last.input}, limit); ok {
		a.Reserve, a.Because = next.Bytes, next.String()
	}
}

// ends is when the task ends if it never waits; within an application that is an order of its runs.
func (t *task) ends() timeline.Time { return t.submitted.Add(t.ran) }

// premises are what the simulation takes for granted.
func (r *record) premises() (all []string) {
	if r.onePeak {
		all = append(all, "A task uses its peak from its first second on: the record has one peak for each task.")
	}
	inputs := 0
	for i := range r.tasks {
		if r.tasks[i].input > 0 {
			inputs++
		}
	}
	by := "whatever it read"
	switch {
	case inputs == len(r.tasks):
		by = "and by how much it read"
	case inputs > 0:
		by = "and by how much it read, where the record has that"
	}
	return append(all,
		"Each task runs as long as it did, beside whatever others; it keeps the cores busy that it asked for.",
		"Growth costs no time while the node has room; without room tasks stand still and their memory goes to swap or, "+
			"where there is none, start again later.",
		"FAILED are attempts that end for want of memory, STOOD tasks that stand still for more than a tenth of their time, "+
			"WASTED is what is reserved and not used, in GB·h.",
		"What a run taught counts from its end on, by its program, "+by+".")
}

// clearly is the share of a request up to which a peak is clearly below it.
const clearly = 0.9

// headline says in a sentence what was asked and used.
func (d *document) headline() string {
	if d.Asked == nil {
		return fmt.Sprintf("%s used %s; the record does not say what they asked for", terminal.Count(d.Tasks, "task"),
			gbh(d.Used))
	}
	text := fmt.Sprintf("%s asked for %s and used %s: %s", terminal.Count(d.Tasks, "task"), gbh(*d.Asked), gbh(d.Used),
		times(*d.Asked, d.Used))
	if a := &d.Apps[0]; a.Asked != nil {
		used, how := a.Most, "at most"
		if float64(used) > clearly*float64(*a.Asked) {
			used, how = a.Median, "in the median"
		}
		text += fmt.Sprintf("; %s asked for %s and used %s %s: %s", a.short(), resource.FormatMemory(*a.Asked),
			resource.FormatMemory(used), how, times(float64(*a.Asked), float64(used)))
	}
	return text
}

// label is the name of an application in tables and sentences.
func (a *appJSON) label() string {
	name := a.App
	if a.Stage != "" {
		name += " " + a.Stage
	}
	return cluster.Printable(name)
}

// short is label with what tells most in front: the stage, or the process without the workflows around it.
func (a *appJSON) short() string {
	name := a.label()
	if a.Stage != "" {
		return cluster.Printable(a.Stage + ", " + a.App)
	}
	if i := strings.LastIndex(name, ":"); i >= 0 && i+1 < len(name) {
		return name[i+1:]
	}
	return name
}

// gbh prints an area of memory over time.
func gbh(v float64) string { return number(v) + " GB·h" }

// number prints a number with two digits that mean something, at least.
func number(v float64) string {
	switch {
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	case v >= 1:
		return fmt.Sprintf("%.1f", v)
	case v == 0:
		return "0"
	}
	return fmt.Sprintf("%.*f", min(6, 1-int(math.Floor(math.Log10(v)))), v)
}

// times says how often b is in a.
func times(a, b float64) string {
	if b <= 0 {
		return "-"
	}
	return number(a/b) + " times as much"
}

// mostPasted is for how many applications there are lines to paste.
const mostPasted = 5

// paste sets the lines to paste: commands, and for who stays with boxes what would have sufficed.
func (d *document) paste(box func(a *appJSON, most resource.Amount) string) {
	for i := range d.Apps {
		a := &d.Apps[i]
		if a.Runs == 0 || i == mostPasted {
			break
		}
		app := "--app " + terminal.Quote(a.label())
		if a.Limit != nil {
			app += " --memory " + roundedUp(*a.Limit)
		}
		d.Paste = append(d.Paste, fmt.Sprintf("bellows run %s --cpus %s -- COMMAND", app, resource.FormatCPU(a.CPUs)))
		if box != nil {
			d.Boxes = append(d.Boxes, box(a, max(a.Reserve, a.Most)))
		}
	}
}

func roundUp(a, unit resource.Amount) resource.Amount { return (a + unit - 1) / unit }

// roundedUp prints an amount of memory in whole MiB, or whole GiB if it is large.
func roundedUp(a resource.Amount) string {
	unit := resource.MiB
	if a >= 10*resource.GiB {
		unit = resource.GiB
	}
	return resource.FormatMemoryExact(roundUp(a, unit) * unit)
}
