package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strings"
	"unicode"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// sheet is the drawing area of a picture: pixels from the upper left corner.
type sheet struct {
	canvas        draw.Canvas
	width, height float64
}

// box is a part of a sheet.
type box struct{ left, top, right, bottom float64 }

func (b box) wide() float64 { return b.right - b.left }
func (b box) high() float64 { return b.bottom - b.top }

// largest and smallest are the limits of a side of a picture, in pixels.
const smallest, largest = 80, 8000

func checkSize(width, height float64) error {
	for _, s := range []struct {
		name   string
		pixels float64
	}{{"width", width}, {"height", height}} {
		if !(s.pixels >= smallest && s.pixels <= largest) {
			return fmt.Errorf("%s %v: must be from %d to %d pixels", s.name, s.pixels, smallest, largest)
		}
	}
	return nil
}

// spelledOut replaces the font attributes that the canvas writes with every text, and that the document has once.
var spelledOut = strings.NewReplacer(
	"font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "",
	"font-family:Liberation Sans;font-variant:normal;font-weight:bold;font-style:normal;", "font-weight:bold;",
	"\n\tstyle=", " style=",
)

func svg(width, height float64, paint func(*sheet)) ([]byte, error) {
	if err := checkSize(width, height); err != nil {
		return nil, err
	}
	c := vgsvg.New(vg.Length(width), vg.Length(height))
	paint(&sheet{draw.New(c), width, height})
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	_, body, ok := strings.Cut(b.String(), "<g ")
	if !ok {
		return nil, fmt.Errorf("the canvas wrote no group")
	}
	head := fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" font-family="'Liberation Sans',Arial,Helvetica,sans-serif">`+"\n<g ", width, height, width, height)
	return []byte(head + spelledOut.Replace(body)), nil
}

func png(width, height float64, paint func(*sheet)) ([]byte, error) {
	if err := checkSize(width, height); err != nil {
		return nil, err
	}
	c := vgimg.NewWith(vgimg.UseWH(vg.Length(width), vg.Length(height)), vgimg.UseDPI(144))
	paint(&sheet{draw.New(c), width, height})
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(&b)
	return b.Bytes(), err
}

// at converts pixels from the upper left corner to points of the canvas from the lower left. Rounding to hundredths of
// pixels keeps files small.
func (s *sheet) at(x, y float64) vg.Point {
	return vg.Point{X: vg.Length(math.Round(x*100) / 100), Y: vg.Length(math.Round((s.height-y)*100) / 100)}
}

// anchor is the part of a text that is at the point.
type anchor float64

const (
	left   anchor = 0
	middle anchor = -0.5
	right  anchor = -1
)

// text writes one line whose base line is at y.
func (s *sheet) text(l lettering, x, y float64, a anchor, line string) {
	line = printable(line)
	if line == "" {
		return
	}
	s.canvas.SetColor(l.color)
	s.canvas.FillString(l.face(), s.at(x+float64(a)*l.width(line), y), line)
}

// slanted writes one line upwards to the right, ending at (x, y).
func (s *sheet) slanted(l lettering, x, y, angle float64, line string) {
	line = printable(line)
	if line == "" {
		return
	}
	s.canvas.Push()
	s.canvas.Translate(s.at(x, y))
	s.canvas.Rotate(angle)
	s.canvas.SetColor(l.color)
	s.canvas.FillString(l.face(), vg.Point{X: vg.Length(-l.width(line))}, line)
	s.canvas.Pop()
}

// printable removes characters that fonts cannot show and documents may not have.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, line)
}

// stroke is the style of a line.
type stroke struct {
	color color.NRGBA
	width float64
	dash  []vg.Length
}

func (s *sheet) line(l stroke, x0, y0, x1, y1 float64) {
	s.lines(l, []vg.Point{s.at(x0, y0), s.at(x1, y1)})
}

func (s *sheet) lines(l stroke, path []vg.Point) {
	if len(path) < 2 {
		return
	}
	s.canvas.StrokeLines(draw.LineStyle{Color: l.color, Width: vg.Length(l.width), Dashes: l.dash}, path)
}

func (s *sheet) fill(c color.NRGBA, path []vg.Point) {
	if len(path) < 3 {
		return
	}
	s.canvas.SetColor(c)
	p := make(vg.Path, 0, len(path)+1)
	p.Move(path[0])
	for _, at := range path[1:] {
		p.Line(at)
	}
	p.Close()
	s.canvas.Fill(p)
}

func (s *sheet) rectangle(c color.NRGBA, b box) {
	s.fill(c, []vg.Point{s.at(b.left, b.top), s.at(b.right, b.top), s.at(b.right, b.bottom), s.at(b.left, b.bottom)})
}

// hatch draws slanted lines in a box.
func (s *sheet) hatch(c color.NRGBA, b box) {
	const gap = 5
	s.canvas.SetLineStyle(draw.LineStyle{Color: c, Width: 0.8})
	var path vg.Path
	// Lines x + y = k, at the same positions on the whole sheet, so that adjacent boxes continue each other.
	for k := math.Ceil((b.left+b.top)/gap) * gap; k < b.right+b.bottom; k += gap {
		x0, x1 := max(b.left, k-b.bottom), min(b.right, k-b.top)
		if x1-x0 > 0.1 {
			path.Move(s.at(x0, k-x0))
			path.Line(s.at(x1, k-x1))
		}
	}
	if len(path) > 0 {
		s.canvas.Stroke(path)
	}
}

func (s *sheet) outline(l stroke, b box) {
	s.lines(l, []vg.Point{s.at(b.left, b.top), s.at(b.right, b.top), s.at(b.right, b.bottom), s.at(b.left, b.bottom),
		s.at(b.left, b.top)})
}

// marker draws the marker of a series around a point.
func (s *sheet) marker(i int, c color.NRGBA, x, y, r float64) {
	p := func(dx, dy float64) vg.Point { return s.at(x+dx*r, y+dy*r) }
	switch i % 6 {
	case 0:
		s.canvas.SetColor(c)
		var path vg.Path
		path.Move(p(1, 0))
		path.Arc(s.at(x, y), vg.Length(r), 0, 2*math.Pi)
		path.Close()
		s.canvas.Fill(path)
	case 1:
		s.fill(c, []vg.Point{p(-0.85, -0.85), p(0.85, -0.85), p(0.85, 0.85), p(-0.85, 0.85)})
	case 2:
		s.fill(c, []vg.Point{p(0, -1.15), p(1.1, 0.85), p(-1.1, 0.85)})
	case 3:
		s.fill(c, []vg.Point{p(0, -1.25), p(1.25, 0), p(0, 1.25), p(-1.25, 0)})
	case 4:
		l := stroke{c, 1.8, nil}
		s.lines(l, []vg.Point{p(-0.9, -0.9), p(0.9, 0.9)})
		s.lines(l, []vg.Point{p(-0.9, 0.9), p(0.9, -0.9)})
	default:
		s.fill(c, []vg.Point{p(0, 1.15), p(1.1, -0.85), p(-1.1, -0.85)})
	}
}

// within clips a path to a box.
func (s *sheet) within(b box) draw.Canvas {
	return draw.Canvas{Canvas: s.canvas.Canvas, Rectangle: vg.Rectangle{Min: s.at(b.left, b.bottom),
		Max: s.at(b.right, b.top)}}
}

// wrap breaks a text between words into lines that are, if possible, not wider than width.
func wrap(l lettering, text string, width float64) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(printable(text)) {
		longer := strings.TrimSpace(line + " " + word)
		if line != "" && l.width(longer) > width {
			lines = append(lines, line)
			longer = word
		}
		line = longer
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// shorten cuts a text that is wider than width, and marks the cut.
func shorten(l lettering, text string, width float64) string {
	text = printable(text)
	if l.width(text) <= width {
		return text
	}
	runes := []rune(text)
	for n := len(runes) - 1; n > 0; n-- {
		if short := string(runes[:n]) + "…"; l.width(short) <= width {
			return short
		}
	}
	return ""
}

// entry is a line of a legend.
type entry struct {
	name string
	wide float64               // of the sample, in pixels
	draw func(s *sheet, b box) // draws the sample into b
}

// Widths in a legend, in pixels.
const lineSample, markSample, sampleGap, entryGap = 26, 11, 6, 18

// head writes title, subtitle and legend, and returns the remaining box below them.
func (s *sheet) head(title, subtitle string, entries []entry) box {
	const margin = 14
	b := box{margin, margin - 4, s.width - margin, s.height - margin + 4}
	s.rectangle(ground, box{0, 0, s.width, s.height})
	for _, t := range []struct {
		l    lettering
		text string
	}{{titleText, title}, {subtitleText, subtitle}} {
		for _, line := range wrap(t.l, t.text, b.wide()) {
			b.top += t.l.height()
			s.text(t.l, b.left, b.top-t.l.size*0.2, left, shorten(t.l, line, b.wide()))
		}
	}
	if len(entries) > 0 {
		b.top += 4
		b.top = s.legend(b, entries)
	}
	b.top += 6
	return b
}

// legend writes the entries in rows and returns where they end.
func (s *sheet) legend(b box, entries []entry) float64 {
	x, y := b.left, b.top+legendText.height()
	for _, e := range entries {
		name := shorten(legendText, e.name, b.wide()-e.wide-sampleGap)
		wide := e.wide + sampleGap + legendText.width(name)
		if x > b.left && x+wide > b.right {
			x, y = b.left, y+legendText.height()+2
		}
		e.draw(s, box{x, y - legendText.size*0.9, x + e.wide, y + 1})
		s.text(legendText, x+e.wide+sampleGap, y, left, name)
		x += wide + entryGap
	}
	return y + 4
}
