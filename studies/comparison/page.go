package comparison

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// Setting is a line of the settings of a comparison: a flag, a version.
type Setting struct{ Name, Value string }

// WritePage writes one HTML file that needs no other file: table, pictures, settings.
func (c *Comparison) WritePage(to io.Writer, title string, about []Setting, figures []Figure) error {
	type figure struct {
		Name string
		SVG  template.HTML
		Wide bool
	}
	heads, rows := c.Table()
	data := struct {
		Title, Method string
		Style         template.CSS
		Heads         []string
		Rows          [][]string
		Figures       []figure
		About         []Setting
		Policies      []trial.Contender
		Notes, Errors []string
	}{Title: title, Method: c.Method(), Style: template.CSS(chart.Style()), Rows: rows, About: about,
		Policies: c.Contenders, Notes: c.Notes(), Errors: c.Errors()}
	for _, h := range heads {
		if h[0] == '>' {
			h = h[1:]
		}
		data.Heads = append(data.Heads, h)
	}
	for _, f := range figures {
		svg, err := f.Picture.SVG()
		if err != nil {
			return fmt.Errorf("draw %s: %w", f.Name, err)
		}
		_, wide := f.Picture.(*chart.Gantt)
		// The chart escapes what it writes.
		data.Figures = append(data.Figures, figure{f.Name, template.HTML(chart.Inline(svg, f.Name)), wide})
	}
	return page.Execute(to, data)
}
