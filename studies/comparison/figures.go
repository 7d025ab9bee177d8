package comparison

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
)

// Figures returns the pictures that the runs allow, in the order in which they are shown.
func (c *Comparison) Figures() []Figure {
	figures := []Figure{{"bounds", c.overBounds()}, {"runtimes", c.distribution()}}
	if len(c.Contenders) > 1 {
		figures = append(figures, Figure{"ratios", c.sortedRatios()})
	}
	figures = append(figures, c.utilisation()...)
	for p, s := range c.pictures {
		if s != nil {
			figures = append(figures, Figure{"gantt-" + fileName(c.Contenders[p].Label),
				gantt(c.Contenders[p].Label, s, c.end())})
		}
	}
	return figures
}

// fileName turns a label into a part of a file's name.
func fileName(label string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '=' ||
			r == '@' {
			return r
		}
		return '_'
	}, label)
}

func (c *Comparison) overBounds() chart.Picture {
	b := &chart.Bars{Title: "How far from the best possible",
		Subtitle: "result over the bound for policies of its kind, elastic or not; 1 cannot be beaten; " + c.Seeds(),
		Y:        "result ÷ lower bound",
		Groups:   []string{"mean job runtime", "makespan"}, Lines: []chart.Rule{{At: 1, Label: ""}}}
	for p, s := range c.Summaries() {
		bars := chart.BarSeries{Name: c.Contenders[p].Label}
		for _, e := range []trial.Estimate{s.AverageOver, s.MakespanOver} {
			bars.Values = append(bars.Values, e.Mean)
			bars.Low, bars.High = append(bars.Low, e.Low), append(bars.High, e.High)
		}
		b.Series = append(b.Series, bars)
	}
	if len(c.Outcomes) > len(c.Contenders) {
		b.Subtitle += ", bars: 95 % confidence"
	}
	return b
}

// pooled says which jobs a picture shows.
func (c *Comparison) pooled() string {
	if c.dropped {
		return "the jobs of the first seeds"
	}
	return "all jobs of " + c.Seeds()
}

// most is the largest number of points of a line: more cannot be distinguished.
const most = 500

func (c *Comparison) distribution() chart.Picture {
	p := &chart.Plot{Title: "Job runtimes", Subtitle: c.pooled() + "; further left is better",
		X: "time from submission to end (s)", Y: "share of jobs"}
	least, largest := math.Inf(1), 0.0
	for i, values := range c.runtimes {
		s := thin(chart.CDF(c.Contenders[i].Label, values))
		p.Series = append(p.Series, s)
		if len(s.X) > 0 {
			least, largest = min(least, s.X[0]), max(largest, s.X[len(s.X)-1])
		}
	}
	p.LogX = least > 0 && largest > 200*least
	return p
}

// thin keeps the ends of a line and every n-th point between them.
func thin(s chart.Series) chart.Series {
	n := len(s.X)
	if n <= most {
		return s
	}
	var x, y []float64
	for i := range most {
		k := i * (n - 1) / (most - 1)
		x, y = append(x, s.X[k]), append(y, s.Y[k])
	}
	s.X, s.Y = x, y
	return s
}

// sortedRatios shows, for each policy, which share of jobs gains how much.
func (c *Comparison) sortedRatios() chart.Picture {
	p := &chart.Plot{Title: "Job by job against " + c.Contenders[0].Label, Subtitle: c.pooled() +
		", sorted; below 1 a job ends sooner", X: "jobs (%)", Y: "runtime ÷ runtime under " + c.Contenders[0].Label,
		LogY: true, Lines: []chart.Rule{{At: 1}}}
	for i := 1; i < len(c.Contenders); i++ {
		values := slices.Clone(c.ratios[i])
		slices.Sort(values)
		s := chart.Series{Name: c.Contenders[i].Label, Color: i + 1}
		for k, v := range values {
			s.X, s.Y = append(s.X, 100*(float64(k)+0.5)/float64(len(values))), append(s.Y, v)
		}
		p.Series = append(p.Series, thin(s))
	}
	return p
}

// bins is the number of time spans of the utilisation.
const bins = 240

// end returns the end of the last drawn run, in seconds.
func (c *Comparison) end() float64 {
	end := 0.0
	for _, s := range c.pictures {
		if s != nil {
			end = max(end, s.End)
		}
	}
	return end
}

// utilisation returns a picture per resource that tasks were granted: the granted share over time on the first seed, as
// means over short spans.
func (c *Comparison) utilisation() []Figure {
	var any *Schedule
	for _, s := range c.pictures {
		if s != nil {
			any = s
		}
	}
	end := c.end()
	if any == nil || end <= 0 {
		return nil
	}
	unit, per := clock(end)
	low, high := 0.0, 100.0
	var figures []Figure
	for k, name := range any.Resources {
		demanded := false
		p := &chart.Plot{Title: strings.ToUpper(name[:1]) + name[1:] + " granted over time", Subtitle: "first seed",
			X: "time (" + unit + ")", Y: name + " granted (% of all nodes)", YMin: &low, YMax: &high}
		for i, s := range c.pictures {
			if s == nil {
				continue
			}
			line := s.used(k, end, per, c.Contenders[i].Label, i+1)
			demanded = demanded || slices.Max(line.Y) > 0
			p.Series = append(p.Series, line)
		}
		if demanded {
			figures = append(figures, Figure{name, p})
		}
	}
	return figures
}

// clock returns the unit in which times up to end are shown, and its length in seconds.
func clock(end float64) (string, float64) {
	switch {
	case end > 4*3600:
		return "h", 3600
	case end > 20*60:
		return "min", 60
	}
	return "s", 1
}

// used returns the granted share of resource k, in percent, up to the end of the run.
func (s *Schedule) used(k int, end, per float64, label string, color int) chart.Series {
	line := chart.Series{Name: label, Step: true, Color: color}
	held := make([]float64, bins)
	width := end / bins
	for _, t := range s.Tasks {
		for b := int(t.From / width); b < bins && float64(b)*width < t.To; b++ {
			from, to := max(t.From, float64(b)*width), min(t.To, float64(b+1)*width)
			held[b] += max(0, to-from) * t.Held[k]
		}
	}
	for b, v := range held {
		if at := float64(b) * width; at < s.End {
			line.X, line.Y = append(line.X, at/per), append(line.Y, min(100, 100*v/width/s.Capacity[k]))
		}
	}
	line.X, line.Y = append(line.X, s.End/per), append(line.Y, 0)
	return line
}

// The most that a Gantt chart shows, so that each task is visible.
const mostLanes, mostSpans = 60, 3000

// gantt draws the first nodes, as many as fit, on an axis that is the same for all policies.
func gantt(label string, s *Schedule, end float64) chart.Picture {
	g := &chart.Gantt{Title: "Tasks on nodes, " + label, To: end, Width: 960}
	nodes := s.visible()
	g.Rows = s.Nodes[:nodes]
	for _, t := range s.Tasks {
		if t.Node < nodes {
			// The last colour of the palette is grey, which is reserved for the legend.
			g.Spans = append(g.Spans, chart.Span{Row: t.Node, From: t.From, To: t.To, Color: t.Job % 7, Faint: t.Faint})
		}
	}
	if slices.ContainsFunc(g.Spans, func(s chart.Span) bool { return s.Faint }) {
		g.Faint = "under-sized"
	}
	g.Subtitle = "first seed; a colour is a job, and returns after seven"
	if nodes < len(s.Nodes) {
		g.Subtitle += fmt.Sprintf("; the first %d of %d nodes", nodes, len(s.Nodes))
	}
	return g
}

// visible returns for how many nodes the chart has space for all tasks that ran side by side.
func (s *Schedule) visible() (nodes int) {
	perNode, peak := make([]int, len(s.Nodes)), s.peaks()
	for _, t := range s.Tasks {
		perNode[t.Node]++
	}
	lanes, spans := 0, 0
	for nodes < len(s.Nodes) && (nodes == 0 || lanes+peak[nodes] <= mostLanes && spans+perNode[nodes] <= mostSpans) {
		lanes, spans = lanes+max(1, peak[nodes]), spans+perNode[nodes]
		nodes++
	}
	return nodes
}

// peaks returns, per node, the largest number of tasks that ran at once.
func (s *Schedule) peaks() []int {
	type change struct {
		at   float64
		by   int
		node int
	}
	var changes []change
	for _, t := range s.Tasks {
		changes = append(changes, change{t.From, 1, t.Node}, change{t.To, -1, t.Node})
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		switch {
		case a.at < b.at || a.at == b.at && a.by < b.by:
			return -1
		case a.at > b.at || a.at == b.at && a.by > b.by:
			return 1
		}
		return 0
	})
	now, peak := make([]int, len(s.Nodes)), make([]int, len(s.Nodes))
	for _, c := range changes {
		now[c.node] += c.by
		peak[c.node] = max(peak[c.node], now[c.node])
	}
	return peak
}
