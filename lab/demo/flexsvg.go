package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// The picture of the FLEX part has a row for the node, one row per container, and one row for all short jobs. All rows
// have the same time axis; the rows of containers have the same scale of memory.
const (
	flexTop     = 104
	flexHigh    = 46 // of a row's memory
	flexRowHigh = flexHigh + 14
	flexLeft    = 132
	flexStill   = 4 // of the bar above a suspended container
)

const flexStyle = `
  .swap { fill: #eb9f66 } .held { fill: #3f95c6 } .stream { fill: #3fb594 }
  .limit { fill: none; stroke: #1f2328; stroke-width: 1.2 }
  .suspended { fill: #f5e3a3 } .still { fill: #c79a00 }
  .waits { stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 1 3 }
  @media (prefers-color-scheme: dark) { .limit { stroke: #e6edf3 } .suspended { fill: #4d431c } }
`

// WriteFlexSVG draws the memory of each container over time, of the FLEX run whose makespan is the median.
func WriteFlexSVG(w io.Writer, r *FlexResult) error {
	run := typicalFlex(r.Runs)
	p := &flexPicture{run: run, node: r.Node[resource.Memory]}
	p.until = run.Makespan()
	p.step = tickStep(p.until)
	for _, s := range run.samples {
		for _, c := range s.containers {
			p.most = max(p.most, c.limit, c.anonymous+c.swap)
		}
	}
	p.most = max(p.most, resource.MiB)
	p.draw()
	_, err := w.Write(p.out.Bytes())
	return err
}

// typicalFlex returns the FLEX run whose makespan is the median; for an even number of runs, the faster of the middle
// two.
func typicalFlex(runs []FlexRun) *FlexRun {
	var flex []*FlexRun
	for i := range runs {
		if runs[i].Allocation == breathing.name {
			flex = append(flex, &runs[i])
		}
	}
	return byMakespan(flex)[(len(flex)-1)/2]
}

type flexPicture struct {
	picture
	run  *FlexRun
	node resource.Amount
	most resource.Amount // peak use of a container
}

func (p *flexPicture) at(t time.Duration) float64 {
	return flexLeft + min(1, t.Seconds()/max(p.until.Seconds(), 1e-9))*(plotRight-flexLeft)
}

func (p *flexPicture) draw() {
	rows := len(p.run.Jobs) + 2
	high := flexTop + rows*flexRowHigh + axisHigh
	p.f(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`,
		pictureWidth, high, pictureWidth, high, "The memory of each FLEX container over time, and when it was suspended")
	p.f("<style>%s%s</style>", pictureStyle, flexStyle)
	p.f(`<rect class="ground" width="%d" height="%d"/>`, pictureWidth, high)
	p.head()
	p.together(flexTop)
	for i := range p.run.Jobs {
		p.container(float64(flexTop+(i+1)*flexRowHigh), &p.run.Jobs[i])
	}
	p.streamed(float64(flexTop + (rows-1)*flexRowHigh))
	bottom := float64(flexTop + rows*flexRowHigh)
	for t := time.Duration(0); t <= p.until; t += p.step {
		p.text(p.at(t), bottom+6, "quiet small", "middle", fmt.Sprintf("%.0f", t.Seconds()))
	}
	p.text((flexLeft+plotRight)/2, bottom+26, "quiet", "middle", "seconds since the first job was submitted")
	p.f(`</svg>`)
}

// head writes what the picture shows and what the colours mean.
func (p *flexPicture) head() {
	p.text(20, 28, "title", "start", fmt.Sprintf("%d programs in FLEX containers share %s with short REGULAR jobs", len(p.run.Jobs), resource.FormatMemory(p.node)))
	p.text(20, 48, "quiet", "start", fmt.Sprintf("A real run: %d of %d finished, %d killed, makespan %.1f s. The row of the node is %s high, others %s. Times are from submission to end.",
		p.run.Finished(), len(p.run.Jobs), p.run.Kills(), p.run.Makespan().Seconds(), resource.FormatMemory(p.node), wholeMiB(p.most)))
	x := 20.0
	for _, e := range []struct{ class, label string }{{"held", "in memory"}, {"swap", "in swap"}, {"suspended", "suspended"}, {"limit", "limit"}, {"waits", "waits to start"}, {"stream", "short REGULAR jobs, all together"}} {
		switch e.class {
		case "limit", "waits":
			p.line(x, 72, x+20, 72, e.class)
		default:
			p.f(`<rect x="%.1f" y="66" width="20" height="12" class="%s"/>`, x, e.class)
		}
		if e.class == "suspended" {
			p.f(`<rect x="%.1f" y="66" width="20" height="%d" class="still"/>`, x, flexStill)
		}
		p.text(x+26, 76, "", "start", e.label)
		x += 52 + 6.6*float64(len(e.label))
	}
}

// ground draws the empty plot of a row, and returns its bottom.
func (p *flexPicture) ground(y float64, name string, notes ...string) (bottom float64) {
	bottom = y + flexHigh
	line := y + 20 - 7*float64(len(notes)-1)
	p.text(20, line, "name", "start", name)
	for i, note := range notes {
		p.text(20, line+16+14*float64(i), "quiet small", "start", note)
	}
	p.f(`<rect x="%d" y="%.1f" width="%d" height="%d" class="plot"/>`, flexLeft, y, plotRight-flexLeft, flexHigh)
	for t := p.step; t < p.until; t += p.step {
		p.line(p.at(t), y, p.at(t), bottom, "grid")
	}
	return bottom
}

// together draws the row of the node: the use of all containers, and their limits.
func (p *flexPicture) together(y float64) {
	bottom := p.ground(y, "node", fmt.Sprintf("%.0f %% used", 100*p.run.Used()/float64(p.node)))
	var memory, limit strings.Builder
	scale := flexHigh / float64(p.node)
	p.each(func(*held) bool { return true }, func(from, to float64, all []held) {
		var anonymous, limits resource.Amount
		for _, c := range all {
			anonymous, limits = anonymous+c.anonymous, limits+c.limit
		}
		fmt.Fprintf(&memory, "M%.1f %.1fV%.1fH%.1fV%.1fZ", from, bottom, bottom-scale*float64(anonymous), to, bottom)
		step(&limit, from, bottom-scale*float64(limits), to)
	})
	p.f(`<path class="held" d="%s"/><path class="limit" d="%s"/>`, memory.String(), limit.String())
	p.line(flexLeft, bottom, plotRight, bottom, "edge")
}

// container draws the row of one job.
func (p *flexPicture) container(y float64, j *FlexJob) {
	notes := []string{fmt.Sprintf("%.1f s", (j.Ended - j.Submitted).Seconds())}
	if still := p.run.standstill(j.ID); still > 0 {
		notes = append(notes, fmt.Sprintf("%.1f s suspended", still.Seconds()))
	}
	bottom := p.ground(y, j.Name, notes...)
	var stopped, still, memory, swapped, limit strings.Builder
	scale := flexHigh / float64(p.most)
	p.each(func(c *held) bool { return c.id.Task.Job == j.ID }, func(from, to float64, all []held) {
		c := &all[0]
		if c.suspended {
			fmt.Fprintf(&stopped, "M%.1f %.1fV%.1fH%.1fV%.1fZ", from, bottom, y, to, bottom)
			fmt.Fprintf(&still, "M%.1f %.1fV%.1fH%.1fV%.1fZ", from, y+flexStill, y, to, y+flexStill)
		}
		inMemory := bottom - scale*float64(c.anonymous)
		fmt.Fprintf(&memory, "M%.1f %.1fV%.1fH%.1fV%.1fZ", from, bottom, inMemory, to, bottom)
		if c.swap > 0 {
			fmt.Fprintf(&swapped, "M%.1f %.1fV%.1fH%.1fV%.1fZ", from, inMemory, inMemory-scale*float64(c.swap), to, inMemory)
		}
		step(&limit, from, bottom-scale*float64(c.limit), to)
	})
	for _, path := range []struct {
		class string
		d     *strings.Builder
	}{{"suspended", &stopped}, {"still", &still}, {"held", &memory}, {"swap", &swapped}, {"limit", &limit}} {
		if path.d.Len() > 0 {
			p.f(`<path class="%s" d="%s"/>`, path.class, path.d.String())
		}
	}
	if j.Started > j.Submitted {
		p.line(p.at(j.Submitted), bottom-2, p.at(j.Started), bottom-2, "waits")
	}
	p.line(flexLeft, bottom, plotRight, bottom, "edge")
}

// step extends a path at height y.
func step(path *strings.Builder, from, y, to float64) {
	command := "L"
	if path.Len() == 0 {
		command = "M"
	}
	fmt.Fprintf(path, "%s%.1f %.1fH%.1f", command, from, y, to)
}

// streamed draws the row of the short jobs.
func (p *flexPicture) streamed(y float64) {
	bottom := p.ground(y, "short jobs", fmt.Sprintf("%d of them", len(p.run.Stream)))
	of := map[cluster.JobID]bool{}
	for _, j := range p.run.Stream {
		of[j.ID] = true
	}
	var path strings.Builder
	scale := flexHigh / float64(p.most)
	p.each(func(c *held) bool { return of[c.id.Task.Job] }, func(from, to float64, all []held) {
		var memory resource.Amount
		for _, c := range all {
			memory += c.anonymous
		}
		fmt.Fprintf(&path, "M%.1f %.1fV%.1fH%.1fV%.1fZ", from, bottom, bottom-scale*float64(memory), to, bottom)
	})
	if path.Len() > 0 {
		p.f(`<path class="stream" d="%s"/>`, path.String())
	}
	p.line(flexLeft, bottom, plotRight, bottom, "edge")
}

// each calls draw for every sample of the makespan with containers for which meant is true, with these containers and
// the positions of the sample and of the next one.
func (p *flexPicture) each(meant func(c *held) bool, draw func(from, to float64, all []held)) {
	for i, s := range p.run.samples {
		if s.at > p.until {
			return
		}
		var all []held
		for _, c := range s.containers {
			if meant(&c) {
				all = append(all, c)
			}
		}
		until := p.until
		if i+1 < len(p.run.samples) {
			until = p.run.samples[i+1].at
		}
		if len(all) > 0 {
			draw(p.at(s.at), p.at(until), all)
		}
	}
}
