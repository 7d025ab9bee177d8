// Package chart draws pictures of results: lines and points, steps and distributions, grouped bars, Gantt charts and
// tracks, in one style. A picture is a plain value; SVG and PNG are pure functions of it: same value, same bytes.
//
// Numbers that are not finite, or beyond 1e100, are gaps: they are not drawn and do not influence an axis, and a
// picture without numbers says so. Impossible data, such as lists of unequal length, are an error.
//
// Series have colours that colour-blind people can distinguish, and differ in dash or marker too. The legend is above
// the data and never covers them.
package chart

// Picture is a picture that can be drawn. Errors name the series and the lengths that do not match.
type Picture interface {
	// SVG returns a document whose text is text. It names the fonts Liberation Sans and Arial, which have the same widths.
	SVG() ([]byte, error)
	// PNG returns an image with two pixels for each pixel of the size of the picture.
	PNG() ([]byte, error)
}

// Series is a line, or points, through (X[i], Y[i]).
type Series struct {
	Name   string    // in the legend; no entry if empty
	X, Y   []float64 // of the same length
	Step   bool      // a step function: Y[i] holds from X[i] to X[i+1]
	Points bool      // markers without a line
	Dashed bool      // dashed. If no series of the plot is Dashed, dashes distinguish series
	Color  int       // from 1 on, an index in the palette; 0: the index of the series in the plot
}

// Rule is a straight reference line across a plot. The range of the axis includes it, unless the range is given.
type Rule struct {
	At       float64
	Vertical bool   // at x = At, not at y = At
	Label    string // at a line that is not vertical; may be empty
}

// Plot shows series over two axes. A range that is not given is the range of the data; zero is in the range of Y if
// that does not hide the differences of the data.
type Plot struct {
	Title, Subtitle string
	X, Y            string // what the axes show, with the unit
	Series          []Series
	LogX, LogY      bool // logarithmic; values not above zero are gaps
	XMin, XMax      *float64
	YMin, YMax      *float64
	Lines           []Rule
	Width, Height   float64 // pixels; 640 × 400 if 0
}

// BarSeries are the bars of one colour, one per group.
type BarSeries struct {
	Name      string
	Values    []float64 // one per group; NaN is missing
	Low, High []float64 // if given, one per group: ends of error bars
	Color     int       // as Color of Series
}

// Bars shows groups of bars. They begin at zero.
type Bars struct {
	Title, Subtitle string
	Y               string // what the bars show, with the unit
	Groups          []string
	Series          []BarSeries
	Lines           []Rule  // Vertical rules are not drawn
	Width, Height   float64 // pixels; 640 × 400 if 0
}

// Span is a span of time in a row of a Gantt chart.
type Span struct {
	Row      int     // of Gantt.Rows, from 0 on
	From, To float64 // seconds; From <= To
	Label    string  // inside, if it fits
	Color    int     // an index in the palette, from 0 on
	Faint    bool    // light with a hatch: under-sized, say, or suspended
}

// Gantt shows what rows do over time. Spans of a row that overlap are stacked within it.
type Gantt struct {
	Title, Subtitle string
	Rows            []string
	Spans           []Span
	Legend          []string // what the colours mean, in the order of the palette; may be empty
	Faint           string   // what Faint means, in the legend; may be empty
	To              float64  // seconds; minimum end of the axis, so that charts can be compared
	Width, Height   float64  // pixels; if 0: 640, and the height of the rows
}

// Tracks shows rows over one time axis, each with areas stacked on each other, and lines.
type Tracks struct {
	Title, Subtitle string
	X               string // what the time counts from, with the unit
	Rows            []Track
	Shade           string  // what shading means, in the legend; may be empty
	To              float64 // end of the time axis, which begins at 0; nothing is drawn beyond
	Width, Height   float64 // pixels; if 0: 960, and the height of the rows
}

// Track is a row of Tracks.
type Track struct {
	Name   string
	Notes  []string  // small, below the name
	Top    float64   // value at the upper edge; the lower edge is 0
	High   float64   // pixels; 46 if 0
	X      []float64 // times, ascending; what areas and shades have there holds until the next time
	Areas  []Area
	Shaded []bool   // if given, as long as X
	Lines  []Series // with X, Y, Step, Dashed, and Color; the legend has each name once
}

// Area is a step function, filled, on top of the areas before it.
type Area struct {
	Name  string // in the legend, which has each name once
	Y     []float64
	Color int // from 1 on, an index in the palette; 0: that of text. As Color of lines
}
