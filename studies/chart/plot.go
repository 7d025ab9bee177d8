package chart

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// CDF returns the empirical distribution of values: Y is the share of values that are at most X, from 0 to 1. Values
// that are not finite are ignored.
func CDF(name string, values []float64) Series {
	sorted := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !finite(v) })
	slices.Sort(sorted)
	s := Series{Name: name, Step: true}
	for i, v := range sorted {
		if i == 0 {
			s.X, s.Y = append(s.X, v), append(s.Y, 0)
		}
		if i+1 < len(sorted) && sorted[i+1] == v {
			continue
		}
		s.X, s.Y = append(s.X, v), append(s.Y, float64(i+1)/float64(len(sorted)))
	}
	return s
}

// SVG draws the plot.
func (p *Plot) SVG() ([]byte, error) { return p.draw(svg) }

// PNG draws the plot.
func (p *Plot) PNG() ([]byte, error) { return p.draw(png) }

// renderer is svg or png.
type renderer func(width, height float64, paint func(*sheet)) ([]byte, error)

func size(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}

func (p *Plot) draw(r renderer) ([]byte, error) {
	x, y, err := p.axes()
	if err != nil {
		return nil, err
	}
	return r(size(p.Width, 640), size(p.Height, 400), func(s *sheet) { p.paint(s, x, y) })
}

// frame is the part of a plot for data, with its axes.
type frame struct {
	*sheet
	box
	x, y scale
}

// axes returns the axes, without their pixels.
func (p *Plot) axes() (x, y scale, err error) {
	var xs, ys extent
	loose := false
	xAxis, yAxis := scale{log: p.LogX}, scale{log: p.LogY}
	for i := range p.Series {
		s := &p.Series[i]
		if err := s.check(); err != nil {
			return x, y, err
		}
		loose = loose || s.Points
		for k := range s.X {
			if !xAxis.shows(s.X[k]) || !yAxis.shows(s.Y[k]) {
				continue
			}
			xs.add(s.X[k])
			ys.add(s.Y[k])
		}
	}
	for _, l := range p.Lines {
		if l.Vertical && xAxis.shows(l.At) {
			xs.add(l.At)
		} else if !l.Vertical && yAxis.shows(l.At) {
			ys.add(l.At)
		}
	}
	if x, err = xs.settle("x", p.LogX, !loose && !p.LogX, false, p.XMin, p.XMax); err != nil {
		return x, y, err
	}
	y, err = ys.settle("y", p.LogY, false, false, p.YMin, p.YMax)
	return x, y, err
}

func (s *Series) check() error {
	if len(s.X) != len(s.Y) {
		return fmt.Errorf("series %q: %d values of x, but %d of y", s.Name, len(s.X), len(s.Y))
	}
	return nil
}

// look is how series i of a plot is drawn.
func (p *Plot) look(i int) (stroke, int) {
	s := &p.Series[i]
	place := i
	if s.Color > 0 {
		place = s.Color - 1
	}
	l := stroke{color: colour(place), width: 1.8}
	switch {
	case s.Dashed:
		l.dash = dashed
	case !slices.ContainsFunc(p.Series, func(s Series) bool { return s.Dashed }):
		l.dash = dashes[i%len(dashes)]
	}
	return l, place
}

func (p *Plot) paint(s *sheet, x, y scale) {
	var entries []entry
	for i := range p.Series {
		if p.Series[i].Name == "" {
			continue
		}
		l, place := p.look(i)
		points := p.Series[i].Points
		wide := float64(lineSample)
		if points {
			wide = markSample
		}
		entries = append(entries, entry{p.Series[i].Name, wide, func(s *sheet, b box) {
			middle := (b.top + b.bottom) / 2
			if points {
				s.marker(place, l.color, (b.left+b.right)/2, middle, 3.6)
				return
			}
			s.line(l, b.left, middle, b.right, middle)
		}})
	}
	f := s.frame(s.head(p.Title, p.Subtitle, entries), x, y, p.X, p.Y)
	f.grid()
	f.rules(p.Lines, true)
	empty := true
	for i := range p.Series {
		l, place := p.look(i)
		empty = !f.series(&p.Series[i], l, place) && empty
	}
	if empty {
		f.nothing()
	}
	f.rules(p.Lines, false)
}

// frame leaves space for numbers and labels, and writes the labels. The label of y is a horizontal line above the axis,
// which is easier to read.
func (s *sheet) frame(b box, x, y scale, xLabel, yLabel string) frame {
	if yLabel != "" {
		for _, line := range wrap(labelText, yLabel, b.wide()) {
			b.top += labelText.height()
			s.text(labelText, b.left, b.top-3, left, line)
		}
	}
	b.top += 8
	if xLabel != "" {
		s.text(labelText, b.right, b.bottom-2, right, shorten(labelText, xLabel, b.wide()))
		b.bottom -= labelText.height() + 1
	}
	b.bottom -= tickText.height() + 3
	y.from, y.to = b.bottom, b.top
	wide := 0.0
	for _, m := range y.marks(45) {
		wide = max(wide, tickText.width(m.label))
	}
	b.left += min(wide+7, b.wide()/2)
	x.from, x.to = b.left, b.right
	if m := x.marks(90); len(m) > 0 {
		// The last number is centred below its mark, and must end on the sheet.
		last := m[len(m)-1]
		b.right -= max(0, x.pixel(last.at)+tickText.width(last.label)/2-(s.width-4))
		x.to = b.right
	}
	return frame{s, b, x, y}
}

// grid draws the numbers of the axes and lines at the numbers.
func (f *frame) grid() {
	f.gridY()
	f.gridX()
}

func (f *frame) gridX() {
	light := stroke{grid, 1, nil}
	for _, m := range f.x.marks(90) {
		at := f.x.pixel(m.at)
		f.line(light, at, f.top, at, f.bottom)
		f.text(tickText, at, f.bottom+tickText.height(), middle, m.label)
	}
	f.line(stroke{axis, 1, nil}, f.left, f.bottom, f.right, f.bottom)
}

func (f *frame) gridY() {
	for _, m := range f.y.marks(45) {
		at := f.y.pixel(m.at)
		f.line(stroke{grid, 1, nil}, f.left, at, f.right, at)
		f.text(tickText, f.left-7, at+tickText.size*0.35, right, m.label)
	}
}

// rules draws the reference lines, or their labels, which are above the data.
func (f *frame) rules(lines []Rule, line bool) {
	l := stroke{quiet, 1.2, []vg.Length{3, 2}}
	label := lettering{11, false, ink}
	for _, r := range lines {
		a := f.y
		if r.Vertical {
			a = f.x
		}
		if !a.shows(r.At) || r.At < a.low || r.At > a.high {
			continue
		}
		at := a.pixel(r.At)
		switch {
		case r.Vertical && line:
			f.line(l, at, f.top, at, f.bottom)
		case line:
			f.line(l, f.left, at, f.right, at)
		case !r.Vertical:
			y := at - 4
			if y-label.size < f.top-6 {
				y = at + label.size + 2
			}
			f.halo(label, f.right-2, y, right, shorten(label, r.Label, f.wide()-8))
		}
	}
}

// halo writes a text on a light ground, so that lines do not cross its letters.
func (f *frame) halo(l lettering, x, y float64, a anchor, text string) {
	if text = printable(text); text == "" {
		return
	}
	wide := l.width(text)
	from := x + float64(a)*wide
	c := ground
	c.A = 0xd0
	f.rectangle(c, box{from - 2, y - l.size*0.85, from + wide + 2, y + l.size*0.25})
	f.text(l, x, y, a, text)
}

func (f *frame) nothing() {
	f.text(labelText, (f.left+f.right)/2, (f.top+f.bottom)/2, middle, "no data")
}

// runs calls each for every stretch of points that both axes show; the rest are gaps.
func (f *frame) runs(s *Series, each func(from, to int)) {
	from := 0
	for i := 0; i <= len(s.X); i++ {
		if i < len(s.X) && f.x.shows(s.X[i]) && f.y.shows(s.Y[i]) {
			continue
		}
		if i > from {
			each(from, i)
		}
		from = i + 1
	}
}

// path returns positions of points, with steps if the series has them.
func (f *frame) path(s *Series, from, to int) []vg.Point {
	path := make([]vg.Point, 0, to-from)
	for i := from; i < to; i++ {
		at := f.at(f.x.pixel(s.X[i]), f.y.pixel(s.Y[i]))
		if s.Step && len(path) > 0 {
			path = append(path, vg.Point{X: at.X, Y: path[len(path)-1].Y})
		}
		path = append(path, at)
	}
	return slices.Compact(path)
}

// series draws one series and reports whether it had anything to draw.
func (f *frame) series(s *Series, l stroke, place int) (drew bool) {
	clip := f.within(f.box)
	f.runs(s, func(from, to int) {
		drew = true
		path := f.path(s, from, to)
		if s.Points || len(path) == 1 {
			f.points(s, l, place, from, to)
			return
		}
		// A line at the very edge must not lose half of its width.
		edge := draw.Crop(clip, -1, 1, -1, 1)
		for _, part := range edge.ClipLinesXY(path) {
			f.lines(l, part)
		}
	})
	return drew
}

// points draws markers.
func (f *frame) points(s *Series, l stroke, place, from, to int) {
	for i := from; i < to; i++ {
		if s.X[i] < f.x.low || s.X[i] > f.x.high {
			continue
		}
		if s.Y[i] >= f.y.low && s.Y[i] <= f.y.high {
			f.marker(place, l.color, f.x.pixel(s.X[i]), f.y.pixel(s.Y[i]), 3.2)
		}
	}
}
