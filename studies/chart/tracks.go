package chart

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
)

// SVG draws the tracks.
func (t *Tracks) SVG() ([]byte, error) { return t.draw(svg) }

// PNG draws the tracks.
func (t *Tracks) PNG() ([]byte, error) { return t.draw(png) }

// Between tracks, and the default height of one; pixels.
const trackGap, trackHigh = 14, 46

func (t *Tracks) draw(r renderer) ([]byte, error) {
	height := 130.0
	for i := range t.Rows {
		row := &t.Rows[i]
		if err := row.check(); err != nil {
			return nil, err
		}
		height += size(row.High, trackHigh) + trackGap
	}
	return r(size(t.Width, 960), size(t.Height, height), t.paint)
}

func (t *Track) check() error {
	if !(t.Top > 0) || !finite(t.Top) {
		return fmt.Errorf("track %q: upper edge %v: must be above 0", t.Name, t.Top)
	}
	if t.Shaded != nil && len(t.Shaded) != len(t.X) {
		return fmt.Errorf("track %q: %d shades, but %d times", t.Name, len(t.Shaded), len(t.X))
	}
	for _, a := range t.Areas {
		if len(a.Y) != len(t.X) {
			return fmt.Errorf("track %q: %d values of %q, but %d times", t.Name, len(a.Y), a.Name, len(t.X))
		}
	}
	for i := range t.Lines {
		if err := t.Lines[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tracks) paint(s *sheet) {
	var times extent
	times.add(0)
	times.add(max(t.To, 1e-9))
	x, _ := times.settle("x", false, true, true, nil, nil) // no error without fixed ends
	area := s.head(t.Title, t.Subtitle, t.legend())
	f := s.frame(area, x, scale{low: 0, high: 1}, t.X, "")
	wide := 0.0
	for i := range t.Rows {
		wide = max(wide, legendText.width(t.Rows[i].Name))
		for _, note := range t.Rows[i].Notes {
			wide = max(wide, smallText.width(note))
		}
	}
	f.left = area.left + min(wide+10, area.wide()/3)
	f.x.from = f.left
	f.gridX()
	all := 0.0
	for i := range t.Rows {
		all += size(t.Rows[i].High, trackHigh) + trackGap
	}
	scaled := f.high() / max(1, all)
	top := f.top
	for i := range t.Rows {
		r := &t.Rows[i]
		row := f
		row.top = top + trackGap*scaled
		row.bottom = row.top + size(r.High, trackHigh)*scaled
		row.y = scale{low: 0, high: r.Top, from: row.bottom, to: row.top}
		r.paint(&row, area.left, t.To)
		top = row.bottom
	}
}

// legend has each name of an area and of a line once.
func (t *Tracks) legend() (entries []entry) {
	add := func(e entry) {
		if e.name != "" && !slices.ContainsFunc(entries, func(o entry) bool { return o.name == e.name }) {
			entries = append(entries, e)
		}
	}
	for i := range t.Rows {
		for _, a := range t.Rows[i].Areas {
			add(swatch(a.Name, inkOr(a.Color), false))
		}
	}
	add(swatch(t.Shade, axis, true))
	for i := range t.Rows {
		for k := range t.Rows[i].Lines {
			l := &t.Rows[i].Lines[k]
			add(entry{l.Name, lineSample, func(s *sheet, b box) {
				s.line(l.trackLook(), b.left, (b.top+b.bottom)/2, b.right, (b.top+b.bottom)/2)
			}})
		}
	}
	return entries
}

// inkOr returns a colour of the palette by its number, which is from 1 on; 0 is that of text.
func inkOr(color int) color.NRGBA {
	if color > 0 {
		return colour(color - 1)
	}
	return ink
}

func (s *Series) trackLook() stroke {
	l := stroke{color: inkOr(s.Color), width: 1.2}
	if s.Dashed {
		l.dash = dashed
	}
	return l
}

// paint draws one track, with its name from left on.
func (t *Track) paint(f *frame, from, to float64) {
	f.text(legendText, from, f.top+legendText.size, left, t.Name)
	for i, note := range t.Notes {
		f.text(smallText, from, f.top+legendText.size+float64(i+1)*smallText.height(), left, note)
	}
	f.line(stroke{axis, 1, nil}, f.left, f.bottom, f.right, f.bottom)
	t.spans(to, func(i int) bool { return t.Shaded != nil && t.Shaded[i] }, func(first, end int, until float64) {
		f.block(axis, box{f.x.pixel(t.X[first]), f.top, f.x.pixel(until), f.bottom}, true)
	})
	below := make([]float64, len(t.X))
	for _, a := range t.Areas {
		t.spans(to, func(i int) bool { return finite(a.Y[i]) && a.Y[i] > 0 }, func(first, end int, until float64) {
			f.area(t.X[first:end], below[first:end], a.Y[first:end], until, inkOr(a.Color))
		})
		for i, y := range a.Y {
			if finite(y) {
				below[i] += max(0, y)
			}
		}
	}
	for i := range t.Lines {
		f.series(&t.Lines[i], t.Lines[i].trackLook(), 0)
	}
}

// spans calls each for every stretch of times from first to end, exclusive, that are before to and are meant; until is
// where the stretch ends.
func (t *Track) spans(to float64, meant func(i int) bool, each func(first, end int, until float64)) {
	first := -1
	for i := 0; i <= len(t.X); i++ {
		if i < len(t.X) && t.X[i] < to && meant(i) {
			if first < 0 {
				first = i
			}
			continue
		}
		if first >= 0 {
			until := to
			if i < len(t.X) {
				until = min(to, t.X[i])
			}
			each(first, i, until)
			first = -1
		}
	}
}

// area fills what is between the step functions below and below + y.
func (f *frame) area(x, below, y []float64, until float64, c color.NRGBA) {
	var up, down []vg.Point
	for i := range x {
		end := until
		if i+1 < len(x) {
			end = x[i+1]
		}
		from, to := f.x.pixel(x[i]), f.x.pixel(end)
		low, high := f.y.pixel(below[i]), f.y.pixel(below[i]+y[i])
		up = append(up, f.at(from, high), f.at(to, high))
		down = append(down, f.at(from, low), f.at(to, low))
	}
	slices.Reverse(down)
	f.fill(c, slices.Compact(append(up, down...)))
}
