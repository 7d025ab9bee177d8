package chart

import (
	"image/color"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	stdfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// palette is colours that people with any colour vision can distinguish on white and on dark ground (after Okabe and
// Ito, "Color Universal Design", 2008; the yellow, too light for lines, is replaced).
var palette = []color.NRGBA{
	rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7), rgb(0xe69f00), rgb(0x56b4e9), rgb(0x6b4c9a), rgb(0x7f7f7f),
}

// Colours of everything except data.
var (
	ink    = rgb(0x1f2933) // titles
	quiet  = rgb(0x52606d) // numbers and labels
	axis   = rgb(0x9aa5b1)
	grid   = rgb(0xe4e7eb)
	ground = rgb(0xffffff)
)

// dashes distinguish lines without colour.
var dashes = [][]vg.Length{nil, {7, 3}, {2, 2}, {8, 3, 2, 3}, {12, 3}, {4, 2, 1, 2}, {1, 3}, {5, 5}}

// dashed is the dash of series that are Dashed.
var dashed = []vg.Length{5, 3}

func rgb(v uint32) color.NRGBA { return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }

// colour returns the i-th colour of the palette, which repeats.
func colour(i int) color.NRGBA { return palette[((i%len(palette))+len(palette))%len(palette)] }

// pale returns c mixed with white; part is the share of c.
func pale(c color.NRGBA, part float64) color.NRGBA {
	mix := func(v uint8) uint8 { return uint8(255 - part*(255-float64(v)) + 0.5) }
	return color.NRGBA{mix(c.R), mix(c.G), mix(c.B), c.A}
}

// lettering is a size and weight of text.
type lettering struct {
	size  float64 // pixels
	bold  bool
	color color.NRGBA
}

var (
	titleText    = lettering{15, true, ink}
	subtitleText = lettering{12, false, quiet}
	labelText    = lettering{12, false, quiet}
	tickText     = lettering{11, false, quiet}
	legendText   = lettering{12, false, ink}
	smallText    = lettering{10, false, ink}
)

// faces are parsed once; drawing from several goroutines is safe.
var faces = sync.OnceValue(func() [2]*opentype.Font {
	var both [2]*opentype.Font
	for i, ttf := range [][]byte{liberationsansregular.TTF, liberationsansbold.TTF} {
		f, err := opentype.Parse(ttf)
		if err != nil {
			panic(err) // the fonts are part of the program
		}
		both[i] = f
	}
	return both
})

func (l lettering) face() font.Face {
	f := font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(l.size)}, Face: faces()[0]}
	if l.bold {
		f.Font.Weight, f.Face = stdfont.WeightBold, faces()[1]
	}
	return f
}

// width returns how wide s is, in pixels.
func (l lettering) width(s string) float64 {
	f := l.face()
	return float64(f.Width(s))
}

// height is the distance between lines, in pixels.
func (l lettering) height() float64 { return l.size * 1.3 }
