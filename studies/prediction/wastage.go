package prediction

import (
	"fmt"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

const wastageName = "sizey/wastage"

// The names of contenders.
const (
	ours     = "bellows, growth fails"
	oursFree = "bellows, growth is free"
	fromFew  = "bellows, unknown starts with 64 MiB, growth is free"

	less      = 0.8 // a smaller quantile
	lessFails = "bellows, quantile 0.8, growth fails"
	lessFree  = "bellows, quantile 0.8, growth is free"
)

// baselines are the methods that reserve a limit.
var baselines = []contender{
	{name: "requests", make: func() method { return requests{} }},
	{name: "Witt percentile", make: func() method { return &wittPercentile{} }},
	{name: "Witt linear", make: func() method { return &wittLinear{} }},
	{name: "Tovar", make: func() method { return &tovar{} }},
	{name: "Sizey", make: func() method { return &sizey{} }},
	{name: "Autopilot", make: func() method { return &autopilot{} }},
}

// contenders are all: the baselines and bellows for each time of failure, what grows, and bellows with a smaller
// quantile.
func contenders() (all []contender) {
	for _, f := range []failsAfter{aSecond, half, whole} {
		for _, c := range append(slices.Clone(baselines), contender{name: ours, make: oursBy(0, 0)}) {
			c.fails = f
			all = append(all, c)
		}
	}
	all = append(all, contender{name: oursFree, make: oursBy(0, 0), grows: true},
		contender{name: fromFew, make: oursBy(0, startsWith), grows: true},
		contender{name: "64 MiB for all, growth is free", make: func() method { return small{} }, grows: true})
	return append(all, contender{name: lessFails, make: oursBy(less, 0), fails: aSecond},
		contender{name: lessFree, make: oursBy(less, 0), grows: true})
}

func oursBy(quantile float64, unknown resource.Amount) func() method {
	return func() method {
		return &bellows{history: profile.History{Quantile: quantile}, unknown: float64(unknown)}
	}
}

// results are the outcomes by contender and workflow.
type results struct {
	workflows  []workflow
	contenders []contender
	outcomes   [][]outcome
}

// wastage runs the experiment.
func wastage(l *lab.Lab) (*lab.Findings, error) {
	workflows, err := readWorkflows(l.Data)
	if err != nil {
		return nil, fmt.Errorf("read the recorded tasks: %w", err)
	}
	if l.Quick {
		for i := range workflows {
			workflows[i].tasks = workflows[i].tasks[:min(120, len(workflows[i].tasks))]
		}
	}
	r := results{workflows: workflows, contenders: contenders()}
	r.outcomes = make([][]outcome, len(r.contenders))
	n := len(workflows)
	if err := lab.Each(l, "replays", n*len(r.contenders), func(i int) (outcome, error) {
		return r.contenders[i/n].replay(workflows[i%n].tasks), nil
	}, func(i int, o outcome) { r.outcomes[i/n] = append(r.outcomes[i/n], o) }); err != nil {
		return nil, err
	}
	return &lab.Findings{Claims: r.claims(), Tables: r.tables(), Data: r.data(), Notes: r.notes()}, nil
}

// of returns the outcomes of a contender, by workflow.
func (r *results) of(name string, f failsAfter) []outcome {
	i := slices.IndexFunc(r.contenders, func(c contender) bool { return c.name == name && (c.grows || c.fails == f) })
	return r.outcomes[i]
}

// best returns the baseline that wastes least in a workflow, and what it wastes.
func (r *results) best(w int, f failsAfter, of func(*outcome) *score) (name string, least score) {
	least.Wastage = math.Inf(1)
	for _, b := range baselines {
		if s := *of(&r.of(b.name, f)[w]); s.Wastage < least.Wastage {
			name, least = b.name, s
		}
	}
	return name, least
}

func ofAll(o *outcome) *score      { return &o.All }
func ofSelected(o *outcome) *score { return &o.Selected }

// ratios are what a contender wastes over the best baseline of each workflow, and over the best of all together.
func (r *results) ratios(name string, f failsAfter) (each []float64, together float64) {
	all := map[string]float64{}
	for w := range r.workflows {
		_, b := r.best(w, f, ofAll)
		own := r.of(name, f)[w].All.Wastage
		each = append(each, own/b.Wastage)
		all[name] += own
		for _, b := range baselines {
			all[b.name] += r.of(b.name, f)[w].All.Wastage
		}
	}
	least := math.Inf(1)
	for _, b := range baselines {
		least = min(least, all[b.name])
	}
	return each, all[name] / least
}

func (r *results) heads() (heads []string) {
	for _, w := range r.workflows {
		heads = append(heads, w.name)
	}
	return heads
}

// table has a row for each contender that is shown, and a column for each workflow.
func (r *results) table(name string, f failsAfter, of func(*outcome) *score, shown func(c *contender) bool) lab.Table {
	t := lab.NewTable(name, append(append([]string{"method"}, r.heads()...), "all")...)
	for i := range r.contenders {
		c := &r.contenders[i]
		if !c.grows && c.fails != f || !shown(c) {
			continue
		}
		cells := []string{c.name}
		var all score
		print := func(s *score, best float64) {
			cell := lab.Decimals(s.Wastage, digits(s.Wastage)) + ", "
			if c.grows {
				cell += fmt.Sprintf("%d grew by %s", s.Grown, lab.Decimals(s.GrownGBh, digits(s.GrownGBh)))
			} else {
				cell += fmt.Sprintf("%d failed", s.Failures)
			}
			if best > 0 {
				cell += ", " + lab.Decimals(s.Wastage/best, 2) + "x"
			}
			cells = append(cells, cell)
		}
		for w := range r.workflows {
			s := of(&r.outcomes[i][w])
			all.add(*s)
			_, b := r.best(w, f, of)
			print(s, b.Wastage)
		}
		print(&all, 0)
		t.Add(cells...)
	}
	return t
}

func digits(v float64) int {
	if v < 10 {
		return 2
	}
	return 0
}

func (r *results) tables() []lab.Table {
	main := func(c *contender) bool { return !other(c) }
	return []lab.Table{
		r.table("GB·h wasted, attempts failed or tasks that grew and by how many GB·h, and wastage over that of the best "+
			"baseline of the workflow: an attempt that has too little fails after a second", aSecond, ofAll, main),
		r.table("The same if it fails after half of its run time", half, ofAll, func(c *contender) bool { return !c.grows }),
		r.table("The same if it fails at its end", whole, ofAll, func(c *contender) bool { return !c.grows }),
		r.table("The same if it fails at its end, of the tasks that Sizey's authors would evaluate", whole, ofSelected, main),
		r.table("bellows with the quantile 0.8, if an attempt fails after a second", aSecond, ofAll, other),
		r.losses(),
	}
}

// other reports whether c is bellows with another quantile.
func other(c *contender) bool { return c.name == lessFails || c.name == lessFree }

// losses has the processes in which bellows wastes most more than the best baseline of their workflow.
func (r *results) losses() lab.Table {
	t := lab.NewTable("The two processes of each workflow in which bellows, if growth fails, wastes most more than the "+
		"best baseline of the workflow, GB·h (an attempt fails after a second)", "workflow", "process", "best baseline",
		"it wastes", "bellows wastes", "tasks", "median input, GB", "largest peak over median")
	for w := range r.workflows {
		name, _ := r.best(w, aSecond, ofAll)
		theirs, own := r.of(name, aSecond)[w].Processes, r.of(ours, aSecond)[w].Processes
		var all []string
		for p := range own {
			all = append(all, p)
		}
		slices.SortFunc(all, func(a, b string) int {
			x, y := own[a]-theirs[a], own[b]-theirs[b]
			switch {
			case x > y || x == y && a < b:
				return -1
			case x == y && a == b:
				return 0
			}
			return 1
		})
		for _, p := range all[:min(2, len(all))] {
			var peaks, inputs []float64
			for i := range r.workflows[w].tasks {
				if t := &r.workflows[w].tasks[i]; t.process == p {
					peaks, inputs = append(peaks, t.peak), append(inputs, t.input/1e9)
				}
			}
			t.Add(r.workflows[w].name, p, name, lab.Decimals(theirs[p], 2), lab.Decimals(own[p], 2), fmt.Sprint(len(peaks)),
				lab.Decimals(lab.Median(inputs), 2), lab.Decimals(slices.Max(peaks)/lab.Median(peaks), 1))
		}
	}
	return t
}

func (r *results) data() []lab.Table {
	t := lab.NewTable("scores", "method", "fails_after", "workflow", "tasks", "wastage_gbh", "failures", "grown",
		"grown_gbh", "selected_wastage_gbh", "selected_failures")
	for i := range r.contenders {
		for w := range r.workflows {
			c, o := &r.contenders[i], &r.outcomes[i][w]
			after := string(c.fails)
			if c.grows {
				after = "never"
			}
			t.Put(c.name, after, r.workflows[w].name, len(r.workflows[w].tasks), o.All.Wastage, o.All.Failures, o.All.Grown,
				o.All.GrownGBh, o.Selected.Wastage, o.Selected.Failures)
		}
	}
	return []lab.Table{t}
}

func (r *results) notes() []string {
	text := "Tasks that count, and those that do not, because they did not complete, or have no peak or no run time: "
	for i, w := range r.workflows {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %d and %d", w.name, len(w.tasks), w.skipped)
	}
	return []string{text + "."}
}

// byWorkflow prints ratios.
func (r *results) byWorkflow(each []float64) (text string) {
	for w, v := range each {
		if w > 0 {
			text += ", "
		}
		text += r.workflows[w].name + " " + lab.Decimals(v, 2)
	}
	return text
}

func (r *results) claims() []lab.Claim {
	free, freeAll := r.ratios(oursFree, aSecond)
	strict, strictAll := r.ratios(ours, aSecond)
	few, fewAll := r.ratios(fromFew, aSecond)
	smaller, _ := r.ratios(lessFails, aSecond)
	late, _ := r.ratios(ours, whole)
	return []lab.Claim{
		because(judgeFree(r.byWorkflow(free), free, freeAll), r.byWorkflow(few), lab.Decimals(fewAll, 2)),
		because(judgeStrict(r.byWorkflow(strict), strict, strictAll), r.byWorkflow(smaller), r.byWorkflow(late)),
		r.failures(),
		r.sizey(),
	}
}

// because fills numbers into the explanation, if there is one.
func because(c lab.Claim, numbers ...any) lab.Claim {
	if c.Why == "" {
		return c
	}
	return c.Because(numbers...)
}

func stated(id string) lab.Claim { return Paper.Stated(wastageName, id) }

func judgeFree(text string, each []float64, together float64) lab.Claim {
	return stated("free").Judge(fmt.Sprintf("%s; together %s", text, lab.Decimals(together, 2)), slices.Max(each) <= 0.6,
		together <= 0.6)
}

func judgeStrict(text string, each []float64, together float64) lab.Claim {
	won := 0
	for _, v := range each {
		if v <= 1 {
			won++
		}
	}
	return stated("strict").Judge(fmt.Sprintf("%s; together %s", text, lab.Decimals(together, 2)), won == len(each),
		2*won >= len(each))
}

// failures judges whether fewer attempts fail than under every method that predicts.
func (r *results) failures() lab.Claim {
	var own, least []int
	for w := range r.workflows {
		fewest := math.MaxInt
		for _, b := range baselines[1:] {
			fewest = min(fewest, r.of(b.name, aSecond)[w].All.Failures)
		}
		own, least = append(own, r.of(ours, aSecond)[w].All.Failures), append(least, fewest)
	}
	text := ""
	for w := range own {
		if w > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %d (%d)", r.workflows[w].name, own[w], least[w])
	}
	return judgeFailures(text, own, least)
}

func judgeFailures(text string, own, least []int) lab.Claim {
	fewer, ownAll, leastAll := true, 0, 0
	for w := range own {
		fewer = fewer && own[w] <= least[w]
		ownAll, leastAll = ownAll+own[w], leastAll+least[w]
	}
	return stated("failures").Judge(text, fewer, ownAll <= leastAll)
}

// sizey judges what its authors found, as they count.
func (r *results) sizey() lab.Claim {
	var gains []float64
	for w := range r.workflows {
		best := math.Inf(1)
		for _, b := range baselines[1:4] {
			best = min(best, r.of(b.name, whole)[w].Selected.Wastage)
		}
		if best > 0 {
			gains = append(gains, lab.Gain(best, r.of("Sizey", whole)[w].Selected.Wastage))
		}
	}
	if len(gains) == 0 {
		gains = []float64{0}
	}
	gain := lab.Median(gains)
	return stated("sizey").Near(lab.Percent(gain)+" in the median of the workflows", 0.2468, gain)
}
