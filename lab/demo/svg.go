package demo

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// The picture has one row per configuration, all on the same time axis: memory at the top, running programs below.
const (
	pictureWidth = 960
	plotLeft     = 66
	plotRight    = pictureWidth - 18
	rowsTop      = 96
	memoryHigh   = 96
	tasksHigh    = 26
	rowGap       = 8  // between memory and tasks
	rowHead      = 24 // above memory
	rowFoot      = 14 // below tasks
	rowHigh      = rowHead + memoryHigh + rowGap + tasksHigh + rowFoot
	axisHigh     = 40
)

// jobColours distinguish jobs on light and on dark ground, also for the colour-blind; a repeated job has a lighter
// shade of its colour.
var jobColours = []string{"#0072b2", "#d55e00", "#009e73", "#b0588d", "#c79a00", "#f0945a", "#5fb0e0"}

const pictureStyle = `
  text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .ground { fill: #ffffff } .plot { fill: #f3f5f7 }
  .title { font-size: 16px; font-weight: 600 } .name { font-size: 13px; font-weight: 600 }
  .quiet { fill: #57606a } .small { font-size: 11px }
  .grid { stroke: #d0d7de; stroke-width: 1 } .edge { stroke: #8c959f; stroke-width: 1 }
  .end { stroke: #1f2328; stroke-width: 1.5; stroke-dasharray: 2 2 }
  .used { fill: none; stroke: #0b0f14; stroke-width: 1.6; stroke-linejoin: round }
  .halo { fill: none; stroke: #ffffff; stroke-opacity: 0.55; stroke-width: 3.6; stroke-linejoin: round }
  .cut { stroke: #ffffff; stroke-opacity: 0.7; stroke-width: 1 }
  .tasks { fill: #6e7781 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .ground { fill: #0d1117 } .plot { fill: #161b22 } .quiet { fill: #9aa4af }
    .grid { stroke: #30363d } .edge { stroke: #6e7681 } .end { stroke: #e6edf3 }
    .used { stroke: #ffffff } .halo { stroke: #0d1117 } .tasks { fill: #8b949e }
  }
`

// WriteSVG draws memory and tasks over time, one typical run of each configuration.
func WriteSVG(w io.Writer, r *Result) error {
	p := &picture{result: r}
	runs := r.Runs
	if r.Simulated {
		runs = r.Predicted
	}
	for i := range configurations {
		run := typical(of(runs, &configurations[i]))
		p.runs = append(p.runs, run)
		p.until = max(p.until, run.Makespan())
	}
	p.step = tickStep(p.until)
	p.draw()
	_, err := w.Write(p.out.Bytes())
	return err
}

type picture struct {
	result *Result
	runs   []*Run // by configuration
	until  time.Duration
	step   time.Duration // between marks on the time axis
	out    bytes.Buffer
}

// tickStep returns the time between marks so that there are about ten marks.
func tickStep(all time.Duration) time.Duration {
	for _, s := range []time.Duration{1, 2, 5, 10, 20, 30, 60, 120, 300, 600} {
		if all/(s*time.Second) <= 12 {
			return s * time.Second
		}
	}
	return time.Hour
}

func (p *picture) f(format string, operands ...any) { fmt.Fprintf(&p.out, format+"\n", operands...) }

func (p *picture) text(x, y float64, class, anchor, text string) {
	p.f(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, html.EscapeString(text))
}

func (p *picture) line(x1, y1, x2, y2 float64, class string) {
	p.f(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// x returns the position of a time.
func (p *picture) x(t time.Duration) float64 {
	share := t.Seconds() / max(p.until.Seconds(), 1e-9)
	return plotLeft + share*(plotRight-plotLeft)
}

func (p *picture) draw() {
	high := rowsTop + len(p.runs)*rowHigh + axisHigh
	p.f(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`,
		pictureWidth, high, pictureWidth, high, "Memory and running tasks over time under four ways of allocating memory")
	p.f("<style>%s</style>", pictureStyle)
	p.f(`<rect class="ground" width="%d" height="%d"/>`, pictureWidth, high)
	p.head()
	for i, run := range p.runs {
		p.row(float64(rowsTop+i*rowHigh), &configurations[i], run)
	}
	p.axis(float64(rowsTop + len(p.runs)*rowHigh))
	p.f(`</svg>`)
}

// head writes what the picture shows, and which job has which colour.
func (p *picture) head() {
	memory, cores := resource.FormatMemory(p.result.Node[resource.Memory]), resource.FormatCPU(p.result.Node[resource.CPU])
	title := fmt.Sprintf("Four ways to share %s and %s cores among the same %d jobs with %d tasks", memory, cores, len(p.runs[0].Jobs), len(p.runs[0].Tasks))
	if p.result.Simulated {
		title += " (simulated)"
	}
	p.text(plotLeft, 28, "title", "start", title)
	x := float64(plotLeft)
	p.text(x, 52, "quiet", "start", "memory granted to")
	x += 128
	for i, j := range p.runs[0].Jobs {
		p.f(`<rect x="%.1f" y="42" width="12" height="12" rx="2" fill="%s"/>`, x, colour(i))
		p.text(x+17, 52, "", "start", j.Name)
		x += 34 + 7*float64(len(j.Name))
	}
	x = plotLeft
	if !p.result.Simulated {
		p.line(x, 70, x+22, 70, "used")
		p.text(x+28, 74, "quiet", "start", "memory that the programs fill with data")
		x += 300
	}
	p.f(`<rect x="%.1f" y="64" width="12" height="12" class="tasks"/>`, x)
	p.text(x+18, 74, "quiet", "start", "programs running")
	x += 150
	p.line(x, 70, x+16, 70, "end")
	p.text(x+22, 74, "quiet", "start", "end of the last job")
}

func colour(job int) string { return jobColours[job%len(jobColours)] }

// row draws one configuration below y.
func (p *picture) row(y float64, c *configuration, run *Run) {
	name := c.name
	if run.Simulated {
		name += " (simulated)"
	}
	p.f(`<text x="%d" y="%.1f"><tspan class="name">%s</tspan><tspan class="quiet" dx="8">%s</tspan></text>`, plotLeft, y+14, html.EscapeString(name), html.EscapeString(c.about))
	p.text(plotRight, y+14, "quiet", "end", fmt.Sprintf("average job runtime %.1f s, makespan %.1f s", run.AverageJobRuntime().Seconds(), run.Makespan().Seconds()))
	top := y + rowHead
	bottom := top + memoryHigh
	tasksTop := bottom + rowGap
	tasksBottom := tasksTop + tasksHigh
	for _, box := range [][2]float64{{top, memoryHigh}, {tasksTop, tasksHigh}} {
		p.f(`<rect x="%d" y="%.1f" width="%d" height="%.1f" class="plot"/>`, plotLeft, box[0], plotRight-plotLeft, box[1])
	}
	capacity := p.result.Node[resource.Memory]
	for i := range 5 {
		at := bottom - float64(i)*memoryHigh/4
		p.line(plotLeft, at, plotRight, at, "grid")
		if i%2 == 0 {
			p.text(plotLeft-6, at+4, "quiet small", "end", fmt.Sprintf("%d", int64(capacity)*int64(i)/4/int64(resource.MiB)))
		}
	}
	p.text(14, (top+bottom)/2+4, "quiet small", "start", "MiB")
	p.text(14, (tasksTop+tasksBottom)/2+4, "quiet small", "start", "tasks")
	for t := p.step; t < p.until; t += p.step {
		p.line(p.x(t), top, p.x(t), bottom, "grid")
		p.line(p.x(t), tasksTop, p.x(t), tasksBottom, "grid")
	}
	p.granted(run, bottom, memoryHigh/float64(capacity))
	p.used(run, bottom, memoryHigh/float64(capacity))
	cores := float64(p.result.Node[resource.CPU]) / float64(resource.Core)
	p.tasks(run, tasksBottom, tasksHigh/cores)
	p.text(plotLeft-6, tasksTop+8, "quiet small", "end", fmt.Sprintf("%.0f", cores))
	p.text(plotLeft-6, tasksBottom+1, "quiet small", "end", "0")
	p.line(plotLeft, bottom, plotRight, bottom, "edge")
	p.line(plotLeft, tasksBottom, plotRight, tasksBottom, "edge")
	p.line(p.x(run.Makespan()), top-4, p.x(run.Makespan()), tasksBottom, "end")
}

// axis writes the time below the last row.
func (p *picture) axis(y float64) {
	for t := time.Duration(0); t <= p.until; t += p.step {
		p.text(p.x(t), y+2, "quiet small", "middle", fmt.Sprintf("%.0f", t.Seconds()))
	}
	p.text((plotLeft+plotRight)/2, y+22, "quiet", "middle", "seconds since the first job was submitted")
}

// granted stacks the memory granted to each job, with a fine line where a task begins.
func (p *picture) granted(run *Run, bottom, scale float64) {
	var cuts strings.Builder
	times := changes(run, func(t *TaskRun) time.Duration { return t.Booked })
	paths := make([]strings.Builder, len(run.Jobs))
	for k := 0; k+1 < len(times); k++ {
		held := make([]resource.Amount, len(run.Jobs))
		for _, t := range run.Tasks {
			if t.Booked <= times[k] && times[k] < t.Ended {
				held[t.Job] += t.Memory
			}
		}
		below := resource.Amount(0)
		for j, memory := range held {
			if memory > 0 {
				fmt.Fprintf(&paths[j], "M%.1f %.1fH%.1fV%.1fH%.1fZ", p.x(times[k]), bottom-scale*float64(below), p.x(times[k+1]),
					bottom-scale*float64(below+memory), p.x(times[k]))
			}
			for _, t := range run.Tasks {
				if memory > 0 && t.Job == j && t.Booked == times[k] {
					fmt.Fprintf(&cuts, "M%.1f %.1fV%.1f", p.x(times[k]), bottom-scale*float64(below), bottom-scale*float64(below+memory))
				}
			}
			below += memory
		}
	}
	for j := range paths {
		if paths[j].Len() > 0 {
			p.f(`<path d="%s" fill="%s"/>`, paths[j].String(), colour(j))
		}
	}
	p.f(`<path d="%s" class="cut"/>`, cuts.String())
}

// used draws the memory that programs fill with data: the largest of the samples on the same pixel.
func (p *picture) used(run *Run, bottom, scale float64) {
	var points strings.Builder
	for i := 0; i < len(run.Usage) && run.Usage[i].At <= run.Makespan(); {
		x, most := math.Floor(p.x(run.Usage[i].At)), resource.Amount(0)
		for ; i < len(run.Usage) && math.Floor(p.x(run.Usage[i].At)) == x; i++ {
			most = max(most, run.Usage[i].Anonymous)
		}
		fmt.Fprintf(&points, "%.0f,%.1f ", x, bottom-scale*float64(most))
	}
	if points.Len() == 0 {
		return
	}
	for _, class := range []string{"halo", "used"} {
		p.f(`<polyline class="%s" points="%s"/>`, class, strings.TrimSpace(points.String()))
	}
}

// tasks draws the number of running programs.
func (p *picture) tasks(run *Run, bottom, scale float64) {
	times := changes(run, func(t *TaskRun) time.Duration { return t.Started })
	var path strings.Builder
	for k := 0; k+1 < len(times); k++ {
		n := 0
		for _, t := range run.Tasks {
			if t.Started <= times[k] && times[k] < t.Ended {
				n++
			}
		}
		if n > 0 {
			fmt.Fprintf(&path, "M%.1f %.1fH%.1fV%.1fH%.1fZ", p.x(times[k]), bottom, p.x(times[k+1]), bottom-scale*float64(n), p.x(times[k]))
		}
	}
	p.f(`<path d="%s" class="tasks"/>`, path.String())
}

// changes returns the times at which a task begins or ends, ascending, each once.
func changes(run *Run, begins func(t *TaskRun) time.Duration) []time.Duration {
	var times []time.Duration
	for i := range run.Tasks {
		times = append(times, begins(&run.Tasks[i]), run.Tasks[i].Ended)
	}
	slices.Sort(times)
	return slices.Compact(times)
}
