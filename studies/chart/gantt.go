package chart

import (
	"fmt"
	"image/color"
	"slices"
)

// SVG draws the chart.
func (g *Gantt) SVG() ([]byte, error) { return g.draw(svg) }

// PNG draws the chart.
func (g *Gantt) PNG() ([]byte, error) { return g.draw(png) }

func (g *Gantt) draw(r renderer) ([]byte, error) {
	lanes, err := g.stack()
	if err != nil {
		return nil, err
	}
	all := 0
	for _, n := range lanes.of {
		all += n
	}
	height := size(g.Height, min(1100, max(180, 110+float64(len(g.Rows))*6+float64(all)*14)))
	return r(size(g.Width, 640), height, func(s *sheet) { g.paint(s, lanes) })
}

// lanes are the parallel lines of rows, so that no two spans cover each other.
type lanes struct {
	of   []int // per row, number of lanes; at least 1
	span []int // per span, its lane within the row; -1 for none
}

// stack gives each span the first free lane of its row.
func (g *Gantt) stack() (lanes, error) {
	l := lanes{make([]int, len(g.Rows)), make([]int, len(g.Spans))}
	order := make([]int, 0, len(g.Spans))
	for i, s := range g.Spans {
		l.span[i] = -1
		if s.Row < 0 || s.Row >= len(g.Rows) {
			return l, fmt.Errorf("span %d: row %d, but there are %d rows", i, s.Row, len(g.Rows))
		}
		if finite(s.From) && finite(s.To) {
			if s.From > s.To {
				return l, fmt.Errorf("span %d: from %v to %v", i, s.From, s.To)
			}
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := g.Spans[a], g.Spans[b]; {
		case x.From < y.From:
			return -1
		case x.From > y.From:
			return 1
		}
		return 0
	})
	ends := make([][]float64, len(g.Rows))
	for _, i := range order {
		s := g.Spans[i]
		row := ends[s.Row]
		k := slices.IndexFunc(row, func(end float64) bool { return end <= s.From })
		if k < 0 {
			k, row = len(row), append(row, s.To)
		}
		row[k] = s.To
		ends[s.Row], l.span[i] = row, k
	}
	for i := range l.of {
		l.of[i] = max(1, len(ends[i]))
	}
	return l, nil
}

// clock returns the best unit for a span of seconds, and its length in seconds.
func clock(seconds float64) (string, float64) {
	switch {
	case seconds > 4*86400:
		return "days", 86400
	case seconds > 4*3600:
		return "hours", 3600
	case seconds > 10*60:
		return "minutes", 60
	}
	return "seconds", 1
}

func (g *Gantt) paint(s *sheet, l lanes) {
	var entries []entry
	for i, name := range g.Legend {
		entries = append(entries, swatch(name, colour(i), false))
	}
	if g.Faint != "" {
		entries = append(entries, swatch(g.Faint, palette[len(palette)-1], true))
	}
	area := s.head(g.Title, g.Subtitle, entries)
	var times extent
	for i, span := range g.Spans {
		if l.span[i] >= 0 {
			times.add(span.From)
			times.add(span.To)
		}
	}
	if times.any && finite(g.To) {
		times.high = max(times.high, g.To)
	}
	if times.any && times.low > 0 && times.low < times.high/2 {
		times.low = 0
	}
	unit, per := clock(times.high - times.low)
	times.low, times.high = times.low/per, times.high/per
	x, _ := times.settle("x", false, true, false, nil, nil) // no error without fixed ends
	f := g.frame(s, area, x, "time ("+unit+")")
	f.gridX()
	g.rows(&f, l, per)
	if !times.any {
		f.nothing()
	}
}

// frame leaves space for the names of rows.
func (g *Gantt) frame(s *sheet, b box, x scale, label string) frame {
	f := s.frame(b, x, scale{low: 0, high: 1}, label, "")
	wide := 0.0
	for _, name := range g.Rows {
		wide = max(wide, tickText.width(printable(name)))
	}
	f.left = b.left + min(wide+8, b.wide()/3)
	f.x.from = f.left
	return f
}

// rows draws names and spans, with lanes of equal height.
func (g *Gantt) rows(f *frame, l lanes, per float64) {
	all := 0
	for _, n := range l.of {
		all += n
	}
	gap := min(6, f.high()/float64(max(1, len(g.Rows)))*0.25)
	lane := (f.high() - gap*float64(len(g.Rows))) / float64(max(1, all))
	tops := make([]float64, len(g.Rows))
	y, written := f.top, -100.0
	for i, name := range g.Rows {
		tops[i] = y + gap/2
		next := tops[i] + lane*float64(l.of[i]) + gap/2
		// Names that would overlap are omitted.
		if at := (y+next)/2 + tickText.size*0.35; at-written >= tickText.size {
			f.text(tickText, f.left-7, at, right, shorten(tickText, name, f.left-14))
			written = at
		}
		if i > 0 {
			f.line(stroke{grid, 1, nil}, f.left, y, f.right, y)
		}
		y = next
	}
	for i, span := range g.Spans {
		if l.span[i] < 0 {
			continue
		}
		top := tops[span.Row] + lane*float64(l.span[i])
		b := box{f.x.pixel(span.From / per), top, f.x.pixel(span.To / per), top + lane}
		g.span(f, span, b)
	}
}

// span draws one span, with a light outline that separates neighbours, and its label if it fits.
func (g *Gantt) span(f *frame, span Span, b box) {
	if b.right-b.left < 0.6 {
		b.right = b.left + 0.6 // too short spans stay visible
	}
	if room := min(1, (b.bottom-b.top)*0.15); b.right-b.left > 2 {
		b = box{b.left + 0.25, b.top + room/2, b.right - 0.25, b.bottom - room/2}
	}
	c := colour(span.Color)
	f.block(c, b, span.Faint)
	label := smallText
	if !span.Faint {
		label.color = ground
	}
	if label.size = min(10, b.high()*0.8); label.size >= 6 && label.width(printable(span.Label))+4 <= b.wide() {
		y := (b.top+b.bottom)/2 + label.size*0.35
		if span.Faint {
			f.halo(label, (b.left+b.right)/2, y, middle, span.Label)
		} else {
			f.text(label, (b.left+b.right)/2, y, middle, span.Label)
		}
	}
}

// block fills a box; a faint one is light with a hatch.
func (s *sheet) block(c color.NRGBA, b box, faint bool) {
	if !faint {
		s.rectangle(c, b)
		return
	}
	s.rectangle(pale(c, 0.25), b)
	if b.wide() > 2 {
		s.hatch(pale(c, 0.8), b)
		s.outline(stroke{c, 0.6, nil}, b)
	}
}
