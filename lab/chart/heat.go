package chart

import (
	"fmt"
	"image/color"
	"math"
)

// SVG draws the map.
func (h *Heat) SVG() ([]byte, error) { return h.draw(svg) }

// PNG draws the map.
func (h *Heat) PNG() ([]byte, error) { return h.draw(png) }

// warmth is colours from low to high with decreasing lightness, so that they can be distinguished in grey too.
var warmth = []color.NRGBA{rgb(0xf7fbff), rgb(0xc6dbef), rgb(0x6baed6), rgb(0x2171b5), rgb(0x08306b)}

func (h *Heat) draw(r renderer) ([]byte, error) {
	if len(h.Values) != len(h.Rows) {
		return nil, fmt.Errorf("heat map: %d rows of values, but %d rows", len(h.Values), len(h.Rows))
	}
	var seen extent
	for i, row := range h.Values {
		if len(row) != len(h.Columns) {
			return nil, fmt.Errorf("heat map: row %q has %d values, but there are %d columns", h.Rows[i], len(row), len(h.Columns))
		}
		for _, v := range row {
			if finite(v) {
				seen.add(v)
			}
		}
	}
	colours, err := seen.settle("colours", false, true, false, h.Low, h.High)
	if err != nil {
		return nil, err
	}
	colours.from, colours.to = 0, 1
	height := size(h.Height, min(1600, max(160, 120+float64(len(h.Rows))*26)))
	return r(size(h.Width, 640), height, func(s *sheet) { h.paint(s, colours) })
}

// warm returns the colour at part, from 0 to 1, of the scale.
func warm(part float64) color.NRGBA {
	part = max(0, min(1, part)) * float64(len(warmth)-1)
	i := min(int(part), len(warmth)-2)
	part -= float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + part*(float64(b)-float64(a)))) }
	a, b := warmth[i], warmth[i+1]
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xff}
}

func (h *Heat) paint(s *sheet, colours scale) {
	b := s.head(h.Title, h.Subtitle, nil)
	if h.Y != "" {
		b.top += labelText.height()
		s.text(labelText, b.left, b.top-3, left, shorten(labelText, h.Y, b.wide()))
	}
	if h.X != "" {
		s.text(labelText, b.right, b.bottom-2, right, shorten(labelText, h.X, b.wide()))
		b.bottom -= labelText.height() + 1
	}
	wide := 0.0
	for _, name := range h.Rows {
		wide = max(wide, tickText.width(printable(name)))
	}
	wide = min(wide+7, b.wide()/3)
	b.left += wide
	names := layNames(h.Columns, b.wide())
	b.bottom -= names.height + 3
	f := frame{sheet: s, box: b}
	if len(h.Rows) == 0 || len(h.Columns) == 0 {
		f.nothing()
		return
	}
	cell := box{0, 0, b.wide() / float64(len(h.Columns)), b.high() / float64(len(h.Rows))}
	for i, row := range h.Values {
		top := b.top + float64(i)*cell.bottom
		if cell.bottom >= tickText.size*0.9 || i == 0 || i == len(h.Rows)-1 {
			s.text(tickText, b.left-7, top+cell.bottom/2+tickText.size*0.35, right, shorten(tickText, h.Rows[i], wide-7))
		}
		for k, v := range row {
			at := b.left + float64(k)*cell.right
			h.cell(s, box{at, top, at + cell.right, top + cell.bottom}, v, colours)
		}
	}
	for k := range h.Columns {
		names.write(&f, k, b.left+(float64(k)+0.5)*cell.right)
	}
}

func (h *Heat) cell(s *sheet, b box, v float64, colours scale) {
	gap := min(0.75, b.wide()*0.1)
	inner := box{b.left + gap, b.top + gap, b.right - gap, b.bottom - gap}
	if !finite(v) {
		s.rectangle(grid, inner)
		s.hatch(axis, inner)
		return
	}
	part := colours.pixel(v)
	s.rectangle(warm(part), inner)
	l := smallText
	if part > 0.5 {
		l.color = ground
	}
	// Three digits distinguish neighbouring values.
	step := math.Pow(10, math.Floor(math.Log10(max(math.Abs(v), 1e-9)))-2)
	if text := number(math.Round(v/step)*step, min(step, 1)); l.width(text)+2 <= inner.wide() && l.size <= inner.high() {
		s.text(l, (b.left+b.right)/2, (b.top+b.bottom)/2+l.size*0.35, middle, text)
	}
}
