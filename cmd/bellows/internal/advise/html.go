package advise

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

//go:embed page.html
var pageText string

// writePage writes the page as one HTML file that needs no other file.
func (o *options) writePage(d *document, all []course) error {
	heads := func(list []string) (plain []string) {
		for _, h := range list {
			plain = append(plain, strings.ToLower(strings.TrimPrefix(h, ">")))
		}
		return plain
	}
	type titled struct {
		Title string
		All   []string
	}
	listed := []titled{{toPaste, d.Paste}, {toBox, d.Boxes}}
	listed = slices.DeleteFunc(listed, func(l titled) bool { return len(l.All) == 0 })
	appHeads, apps := d.appTable()
	wayHeads, ways := d.wayTable()
	data := struct {
		*document
		Conclusions        []string
		Picture            template.HTML
		Where              string
		WayHeads, AppHeads []string
		Ways, Apps         [][]string
		Lines              []titled
		More               int
	}{d, d.conclusions(), template.HTML(picture(d, all)), d.where(), heads(wayHeads), heads(appHeads), ways, apps, listed,
		max(0, len(d.Apps)-mostApps)}
	page := template.Must(template.New("page").Parse(pageText))
	return workload.SaveFile(o.html, workload.Plain, func(out io.Writer) error { return page.Execute(out, data) })
}

// The picture has a strip for each way, one below the other, with the same scales.
const (
	columns = 440 // values over time, two units wide each
	left    = 70
	strip   = 120
	below   = 46 // a strip: its title and a gap
	width   = left + 2*columns + 20
)

// picture draws what was reserved and used over time in each way, as SVG.
func picture(d *document, all []course) string {
	var out strings.Builder
	height := len(all)*(strip+below) + 30
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" `+
		`aria-label="Memory reserved and used over time, for each way to reserve it">`, width, height)
	begin, end := timeline.Never, timeline.Time(0)
	for i := range all {
		for k := range all[i].runs {
			begin, end = min(begin, all[i].runs[k].submitted), max(end, all[i].runs[k].ended)
		}
	}
	capacity := float64(d.Machine.Memory) * float64(d.Machine.Nodes)
	top := capacity
	booked, used := make([][]float64, len(all)), make([][]float64, len(all))
	for i := range all {
		booked[i], used[i] = all[i].columns(begin, end)
		top = max(top, slices.Max(booked[i]), slices.Max(used[i]))
	}
	for i := range all {
		y := i*(strip+below) + 30
		text(&out, "", left, y-8, "start", all[i].way.Name)
		text(&out, "quiet", left+2*columns, y-8, "end", all[i].way.about())
		area(&out, "booked", booked[i], y, top)
		area(&out, "used", used[i], y, top)
		at := float64(y) + strip*(1-capacity/top)
		fmt.Fprintf(&out, `<path class="edge" d="M%d %.1fH%d"/>`, left, at, left+2*columns)
		fmt.Fprintf(&out, `<path class="line" d="M%d %dH%d"/>`, left, y+strip, left+2*columns)
		text(&out, "quiet", left-8, int(at)+4, "end", resource.FormatMemory(resource.Amount(capacity)))
		text(&out, "quiet", left-8, y+strip, "end", "0")
	}
	foot := len(all)*(strip+below) + 20
	text(&out, "quiet", left, foot, "start", "0s")
	if end > begin {
		text(&out, "quiet", left+2*columns, foot, "end", span(end.Sub(begin).Seconds()))
	}
	text(&out, "quiet", left+columns, foot, "middle", "light: reserved, dark: used, dashed: all nodes together")
	return out.String() + "</svg>"
}

func text(out io.Writer, class string, x, y int, anchor, what string) {
	fmt.Fprintf(out, `<text class="%s" x="%d" y="%d" text-anchor="%s">%s</text>`, class, x, y, anchor,
		html.EscapeString(what))
}

// area draws values as an area above the lower border of a strip.
func area(out io.Writer, class string, values []float64, y int, top float64) {
	fmt.Fprintf(out, `<path class="%s" d="M%d %d`, class, left, y+strip)
	for _, v := range values {
		fmt.Fprintf(out, "V%.1fh2", float64(y)+strip*(1-v/top))
	}
	fmt.Fprintf(out, `V%dz"/>`, y+strip)
}

// about says in a few words how a way went.
func (y *way) about() string {
	if y.Error != "" {
		return "cannot be simulated"
	}
	return fmt.Sprintf("%s, %s at once, %d failed, %d stood still", span(y.Makespan), number(y.AtOnce), y.Failures,
		y.Stood)
}

// columns returns the means of what was reserved and used in equal parts of the time from begin to end, bytes.
func (c *course) columns(begin, end timeline.Time) (booked, used []float64) {
	booked, used = make([]float64, columns), make([]float64, columns)
	each := float64(end.Sub(begin)) / columns
	if each <= 0 {
		return booked, used
	}
	add := func(to []float64, from, lasts time.Duration, bytes resource.Amount) {
		first, last := float64(from)/each, float64(from+lasts)/each
		for i := int(first); i < columns && float64(i) < last; i++ {
			to[i] += float64(bytes) * (min(last, float64(i+1)) - max(first, float64(i)))
		}
	}
	for i := range c.runs {
		r := &c.runs[i]
		from := r.started.Sub(begin)
		add(booked, from, r.ended.Sub(r.started), r.reserved)
		for _, p := range profile.Lasting(r.task.phasesWith(0), r.ended.Sub(r.started)) {
			add(used, from, p.Duration, p.Demand[resource.Memory])
			from += p.Duration
		}
	}
	return booked, used
}
