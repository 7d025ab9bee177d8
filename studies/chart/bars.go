package chart

import (
	"fmt"
	"image/color"
	"math"
)

// SVG draws the bars.
func (b *Bars) SVG() ([]byte, error) { return b.draw(svg) }

// PNG draws the bars.
func (b *Bars) PNG() ([]byte, error) { return b.draw(png) }

func (b *Bars) draw(r renderer) ([]byte, error) {
	y, err := b.axis()
	if err != nil {
		return nil, err
	}
	return r(size(b.Width, 640), size(b.Height, 400), func(s *sheet) { b.paint(s, y) })
}

// axis returns the axis of values, without its pixels.
func (b *Bars) axis() (scale, error) {
	var shown scale
	var ys extent
	for i := range b.Series {
		s := &b.Series[i]
		for _, list := range []struct {
			what   string
			values []float64
		}{{"values", s.Values}, {"lower ends of error bars", s.Low}, {"upper ends of error bars", s.High}} {
			if len(list.values) != len(b.Groups) && (list.values != nil || list.what == "values") {
				return shown, fmt.Errorf("series %q: %d %s, but %d groups", s.Name, len(list.values), list.what, len(b.Groups))
			}
			for k, v := range list.values {
				if shown.shows(v) && shown.shows(s.Values[k]) {
					ys.add(v)
				}
			}
		}
		if (s.Low == nil) != (s.High == nil) {
			return shown, fmt.Errorf("series %q: error bars have only one end", s.Name)
		}
	}
	for _, l := range b.Lines {
		if !l.Vertical && shown.shows(l.At) {
			ys.add(l.At)
		}
	}
	return ys.settle("y", false, false, true, nil, nil)
}

func (b *Bars) place(i int) int {
	if c := b.Series[i].Color; c > 0 {
		return c - 1
	}
	return i
}

func (b *Bars) paint(s *sheet, y scale) {
	var entries []entry
	for i := range b.Series {
		if b.Series[i].Name != "" {
			entries = append(entries, swatch(b.Series[i].Name, colour(b.place(i)), false))
		}
	}
	area := s.head(b.Title, b.Subtitle, entries)
	names := layNames(b.Groups, area.wide()-50)
	area.bottom -= names.height - tickText.height() + 2
	f := s.frame(area, scale{low: 0, high: 1}, y, "", b.Y)
	f.gridY()
	b.bars(&f)
	f.line(stroke{axis, 1, nil}, f.left, f.zero(), f.right, f.zero())
	for k := range b.Groups {
		names.write(&f, k, f.left+(float64(k)+0.5)*f.wide()/float64(len(b.Groups)))
	}
	rules := make([]Rule, 0, len(b.Lines))
	for _, l := range b.Lines {
		if !l.Vertical {
			rules = append(rules, l)
		}
	}
	f.rules(rules, true)
	f.rules(rules, false)
}

// swatch returns the legend entry of a colour.
func swatch(name string, c color.NRGBA, faint bool) entry {
	return entry{name, markSample, func(s *sheet, b box) {
		s.block(c, box{b.left, b.top + 0.5, b.right, b.top + 0.5 + markSample}, faint)
	}}
}

// zero returns the pixel at which bars begin.
func (f *frame) zero() float64 {
	return f.y.pixel(max(f.y.low, min(f.y.high, 0)))
}

func (b *Bars) bars(f *frame) {
	group := f.wide() / float64(max(1, len(b.Groups)))
	wide := min(group*0.8/float64(max(1, len(b.Series))), 56)
	empty := true
	for i := range b.Series {
		s := &b.Series[i]
		for k, v := range s.Values {
			if !f.y.shows(v) {
				continue
			}
			empty = false
			x := f.left + group*(float64(k)+0.5) + wide*(float64(i)-float64(len(b.Series))/2)
			from, to := f.zero(), f.y.pixel(max(f.y.low, min(f.y.high, v)))
			gap := min(1, wide*0.1)
			f.rectangle(colour(b.place(i)), box{x + gap, min(from, to), x + wide - gap, max(from, to)})
			if s.Low != nil && f.y.shows(s.Low[k]) && f.y.shows(s.High[k]) {
				f.whisker(stroke{ink, 1.1, nil}, x+wide/2, s.Low[k], s.High[k])
			}
		}
	}
	if empty {
		f.nothing()
	}
}

// whisker draws an error bar; an end outside the axis has no cap.
func (f *frame) whisker(l stroke, x, low, high float64) {
	const cap = 3
	from, to := f.y.pixel(max(low, f.y.low)), f.y.pixel(min(high, f.y.high))
	if from < to {
		return
	}
	f.line(l, x, from, x, to)
	for _, end := range []float64{low, high} {
		if end >= f.y.low && end <= f.y.high {
			f.line(l, x-cap, f.y.pixel(end), x+cap, f.y.pixel(end))
		}
	}
}

// names are the texts below an axis of words: side by side if they fit, in lines if that helps, otherwise slanted.
type names struct {
	texts  []string
	lines  [][]string
	slant  bool
	height float64
}

const slantAngle = math.Pi / 5

func layNames(texts []string, wide float64) names {
	n := names{texts: texts, height: tickText.height()}
	room := wide/float64(max(1, len(texts))) - 6
	most := 1
	for _, t := range texts {
		lines := wrap(tickText, t, room)
		for _, line := range lines {
			n.slant = n.slant || tickText.width(line) > room
		}
		most = max(most, len(lines))
		n.lines = append(n.lines, lines)
	}
	n.slant = n.slant || most > 3
	if !n.slant {
		n.height = float64(most) * tickText.height()
		return n
	}
	for i, t := range texts {
		n.texts = texts
		n.lines[i] = []string{shorten(tickText, t, 130)}
		n.height = max(n.height, tickText.width(n.lines[i][0])*math.Sin(slantAngle)+tickText.size)
	}
	return n
}

func (n names) write(f *frame, k int, x float64) {
	if n.slant {
		f.slanted(tickText, x+4, f.bottom+tickText.height(), slantAngle, n.lines[k][0])
		return
	}
	for i, line := range n.lines[k] {
		f.text(tickText, x, f.bottom+float64(i+1)*tickText.height(), middle, line)
	}
}
