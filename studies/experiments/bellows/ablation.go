package bellows

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// A switch is a stage of the policy with the setting that turns it off.
type stageSwitch struct{ name, setting, off string }

var switches = []stageSwitch{
	{"order", "order", "fifo"}, {"backfill", "backfill", "any"}, {"patience", "patience", "0s"},
	{"size", "size", "ideal"}, {"place", "place", "first"}, {"forecasts of place", "place", "tetris"},
	{"longest", "longest", "off"}, {"renewal", "renew", "off"}, {"level", "level", "off"}, {"back off", "backoff", "off"},
}

// stages are the switches of whole stages: those that can be alone.
var stages = slices.DeleteFunc(slices.Clone(switches), func(s stageSwitch) bool {
	return s.off == "tetris" || s.setting == "longest"
})

// seeds are the policies that the stages are from, and what they are compared with.
var seeds = []string{"yarn-me", "pufferfish", "prophet", "ecs", "tetris", "drf"}

const (
	all  = "bellows"
	none = "nothing"
)

func without(s stageSwitch) string { return "without " + s.name }
func alone(s stageSwitch) string   { return s.name + " alone" }

// contenders are the policy, each stage off, each alone, nothing, and the seeds.
func contenders() []trial.Contender {
	with := func(label string, settings map[string]string) trial.Contender {
		return trial.Contender{Label: label, Policy: "bellows", Settings: settings}
	}
	list := []trial.Contender{with(all, nil)}
	for _, s := range switches {
		list = append(list, with(without(s), map[string]string{"bellows." + s.setting: s.off}))
	}
	off := map[string]string{}
	for _, s := range stages {
		off["bellows."+s.setting] = s.off
	}
	list = append(list, with(none, off))
	for _, s := range stages {
		only := maps.Clone(off)
		delete(only, "bellows."+s.setting)
		list = append(list, with(alone(s), only))
	}
	for _, s := range seeds {
		list = append(list, trial.Contender{Label: s, Policy: s})
	}
	return list
}

// on is a contender with the settings of a ground, unless it turns that stage off.
func on(g *lab.Ground, c trial.Contender) trial.Contender {
	settings := maps.Clone(g.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	maps.Copy(settings, c.Settings)
	c.Settings = settings
	return c
}

// results are the outcomes on a ground, by contender and run.
type results struct {
	*lab.Ground
	of map[string][]outcome
}

// metric is what counts on the ground.
func (r *results) metric(o outcome) float64 {
	if r.Makespan {
		return o.Makespan
	}
	return o.Runtime
}

// ratio compares two contenders on the same workloads.
func (r *results) ratio(over, under string, number func(outcome) float64) trial.Estimate {
	return trial.GeometricMean(lab.Ratios(lab.Values(r.of[over], number), lab.Values(r.of[under], number)))
}

func runtime(o outcome) float64       { return o.Runtime }
func makespan(o outcome) float64      { return o.Makespan }
func leastRuntime(o outcome) float64  { return o.LeastRuntime }
func leastMakespan(o outcome) float64 { return o.LeastMakespan }

// above compares a contender with a lower bound.
func (r *results) above(label string, number, bound func(outcome) float64) trial.Estimate {
	return trial.GeometricMean(lab.Ratios(lab.Values(r.of[label], number), lab.Values(r.of[all], bound)))
}

// best is the seed with the least geometric mean of a number.
func (r *results) best(number func(outcome) float64) string {
	return slices.MinFunc(seeds, func(a, b string) int {
		return int(math.Copysign(1, r.ratio(a, b, number).Mean-1))
	})
}

func ablation(l *lab.Lab) (*lab.Findings, error) {
	grounds, list := grounds(), contenders()
	if l.Part {
		grounds = []lab.Ground{grounds[0], grounds[len(grounds)-1]}
	}
	if l.Quick {
		grounds = grounds[:1]
	}
	var found []results
	for i := range grounds {
		g := &grounds[i]
		t, err := lab.EachRun(l, g.Name, len(list), func(point, run int) (outcome, error) {
			config, w, err := g.Make(l, run)
			if err != nil {
				return outcome{}, err
			}
			c := on(g, list[point])
			if c.Policy != "prophet" {
				lab.Apart(w)
			}
			o, err := measure(lab.Contender{Contender: c, Flex: config.Flex}, config, w)
			if c.Label == all && err == nil {
				o.bounded(&config, w)
			}
			return o, err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.Name, err)
		}
		r := results{g, map[string][]outcome{}}
		for k, c := range list {
			r.of[c.Label] = t[k]
		}
		found = append(found, r)
	}
	v := judge(found)
	return &lab.Findings{Tables: append(tables(found), v.table()), Data: []lab.Table{data(found, list)},
		Claims: v.claims()}, nil
}

func tables(found []results) []lab.Table {
	own := lab.NewTable("bellows over each policy: mean run time of jobs; in italics on the policy's own ground "+
		"("+lab.InPairs+")", append([]string{"ground"}, seeds...)...)
	ends := lab.NewTable("bellows over each policy: the end of the last job ("+lab.InPairs+")",
		append([]string{"ground"}, seeds...)...)
	heads := []string{"ground"}
	for _, s := range switches {
		heads = append(heads, s.name)
	}
	off := lab.NewTable("What turning a stage off costs: the metric of the ground without it, over bellows ("+
		lab.InPairs+")", heads...)
	heads = []string{"ground", "all"}
	for _, s := range stages {
		heads = append(heads, s.name)
	}
	only := lab.NewTable("What a stage brings alone: the metric of the ground over that of nothing (geometric mean of "+
		"the pairs)", heads...)
	acts := lab.NewTable("What the stages did, mean of the runs", "ground", "nodes kept (order)", "under-sized (size)",
		"chosen among several (place)", "by phase (level)", "of these stops", "throttled (back off)",
		"reservations changed (renewal)", "jobs failed")
	above := lab.NewTable("Distance to the lower bound of every policy ("+lab.InPairs+")", "ground",
		"bellows: mean run time", "best other policy: mean run time", "bellows: end of the last job")
	for i := range found {
		r := &found[i]
		above.Add(r.Name, lab.Interval(r.above(all, runtime, leastRuntime), 2),
			lab.Interval(r.above(r.best(runtime), runtime, leastRuntime), 2),
			lab.Interval(r.above(all, makespan, leastMakespan), 2))
		row, last := []string{r.Name}, []string{r.Name}
		for _, s := range seeds {
			text := lab.Interval(r.ratio(all, s, runtime), 2)
			if slices.Contains(r.Seeds, s) {
				text = "*" + text + "*"
			}
			row, last = append(row, text), append(last, lab.Interval(r.ratio(all, s, makespan), 2))
		}
		own.Add(row...)
		ends.Add(last...)
		row = []string{r.Name}
		for _, s := range switches {
			row = append(row, lab.Interval(r.ratio(without(s), all, r.metric), 2))
		}
		off.Add(row...)
		row = []string{r.Name, lab.Decimals(r.ratio(all, none, r.metric).Mean, 2)}
		for _, s := range stages {
			row = append(row, lab.Decimals(r.ratio(alone(s), none, r.metric).Mean, 2))
		}
		only.Add(row...)
		row = []string{r.Name}
		for _, number := range numbers {
			row = append(row, lab.Decimals(lab.Mean(lab.Values(r.of[all], number)), 0))
		}
		acts.Add(row...)
	}
	return []lab.Table{own, ends, above, off, only, acts}
}

// numbers are what the stages did, and how many jobs failed.
var numbers = []func(outcome) float64{
	func(o outcome) float64 { return float64(o.Actions.Order) },
	func(o outcome) float64 { return float64(o.Actions.Size) },
	func(o outcome) float64 { return float64(o.Actions.Place) },
	func(o outcome) float64 { return float64(o.Actions.Level) },
	func(o outcome) float64 { return float64(o.Actions.Stops) },
	func(o outcome) float64 { return float64(o.Actions.BackOff) },
	func(o outcome) float64 { return float64(o.Actions.Renew) },
	func(o outcome) float64 { return float64(o.Failed) },
}

func data(found []results, list []trial.Contender) lab.Table {
	t := lab.NewTable("outcomes", "ground", "contender", "run", "job_runtime_s", "makespan_s", "failed", "order", "size",
		"place", "level", "stops", "backoff", "renewals", "bound_job_runtime_s", "bound_makespan_s")
	for i := range found {
		for _, c := range list {
			for run, o := range found[i].of[c.Label] {
				a := o.Actions
				t.Put(found[i].Name, c.Label, run, o.Runtime, o.Makespan, o.Failed, a.Order, a.Size, a.Place, a.Level, a.Stops,
					a.BackOff, a.Renew, o.LeastRuntime, o.LeastMakespan)
			}
		}
	}
	return t
}

// within is the factor up to which bellows counts as no slower.
const within = 1.02

// verdict is what the claims are judged by, and what speaks against each.
type verdict struct {
	own, held           int      // policies on grounds of their own, and how many of them bellows is no slower than
	slower              []string // the others
	meet                int      // grounds where mechanisms meet and bellows is better
	met                 []string
	useless, harms      []string
	idle                []string // stages without an action in some run
	switched, switching int      // switches, and those on all grounds
}

func judge(found []results) (v verdict) {
	v.switched, v.switching = len(switches), len(switches)*len(found)
	for i := range found {
		r := &found[i]
		for _, s := range r.Seeds {
			v.own++
			if e := r.ratio(all, s, r.metric); e.Mean <= within {
				v.held++
			} else {
				v.slower = append(v.slower, fmt.Sprintf("than %s on %s: %s", s, r.Name, lab.Interval(e, 2)))
			}
		}
		if r.together() || r.Name == "Pufferfish, mixed" {
			e := r.ratio(all, r.best(r.metric), r.metric)
			v.met = append(v.met, fmt.Sprintf("%s, against %s: %s", r.Name, r.best(r.metric), lab.Interval(e, 2)))
			if e.High < 1 {
				v.meet++
			}
		}
		for k, number := range numbers[:6] {
			if r.together() && slices.Min(lab.Values(r.of[all], number)) == 0 {
				v.idle = append(v.idle, fmt.Sprintf("%s on %s",
					[]string{"order", "size", "place", "level", "stops", "back off"}[k], r.Name))
			}
		}
		for _, s := range switches {
			if e := r.ratio(without(s), all, r.metric); e.High < 1 && e.Mean < 1/within {
				v.harms = append(v.harms, fmt.Sprintf("%s on %s: %s", s.name, r.Name, lab.Interval(e, 2)))
			}
		}
	}
	for _, s := range switches {
		if !slices.ContainsFunc(found, func(r results) bool {
			e := r.ratio(without(s), all, r.metric)
			return e.Low > 1 && e.Mean > within
		}) {
			v.useless = append(v.useless, s.name)
		}
	}
	return v
}

// together reports whether all papers have a part in the ground.
func (r *results) together() bool { return strings.HasPrefix(r.Name, "all together") }

func (v *verdict) claims() []lab.Claim {
	return []lab.Claim{OwnGround(v.held, v.own), Meet(v.meet, len(v.met)), Counts(v.switched-len(v.useless), v.switched),
		Harmless(len(v.harms), v.switching), Acts(len(v.idle))}
}

// table lists what speaks for and against the claims.
func (v *verdict) table() lab.Table {
	t := lab.NewTable("What the verdicts are from", "", "which")
	for _, row := range []struct {
		what  string
		which []string
	}{{"slower on the policy's own ground", v.slower}, {"where mechanisms meet, over the best policy", v.met},
		{"switches of no use on any ground", v.useless}, {"faster without a stage", v.harms},
		{"all together, without an action in some run", v.idle}} {
		text := "none"
		if len(row.which) > 0 {
			text = strings.Join(row.which, "; ")
		}
		t.Add(row.what, text)
	}
	return t
}

// OwnGround judges for how many policies, on grounds of their own, bellows is no slower.
func OwnGround(held, of int) lab.Claim {
	return Paper.Stated(name, "own-ground").Judge(fmt.Sprintf("%d of %d", held, of), held == of, 4*held >= 3*of)
}

// Meet judges on how many grounds bellows is better than the best policy.
func Meet(better, of int) lab.Claim {
	return Paper.Stated(name, "meet").Judge(fmt.Sprintf("%d of %d", better, of), better >= 2, better >= 1)
}

// Counts judges how many switches make a difference.
func Counts(useful, of int) lab.Claim {
	return Paper.Stated(name, "counts").Judge(fmt.Sprintf("%d of %d", useful, of), useful == of, 2*useful >= of)
}

// Harmless judges how often bellows is faster without a stage.
func Harmless(harms, of int) lab.Claim {
	return Paper.Stated(name, "harmless").Judge(fmt.Sprintf("%d of %d", harms, of), harms == 0, harms <= 4)
}

// Acts judges how many stages do nothing in some run.
func Acts(idle int) lab.Claim {
	return Paper.Stated(name, "acts").Judge(fmt.Sprintf("%d of 12", idle), idle == 0, idle <= 2)
}
