package chart

import (
	"fmt"
	"image/color"
	"strings"
)

// roles are the colours that a page may choose itself, by the name of a CSS variable, with their values on dark ground.
var roles = []struct {
	name  string
	light color.NRGBA
	dark  color.NRGBA
}{
	{"ground", ground, rgb(0x161b22)},
	{"ink", ink, rgb(0xe6edf3)},
	{"quiet", quiet, rgb(0xa5b1bd)},
	{"axis", axis, rgb(0x6b7683)},
	{"grid", grid, rgb(0x2b323b)},
	{"series1", palette[0], rgb(0x3f8efc)},
	{"series2", palette[1], rgb(0xf0803c)},
	{"series3", palette[2], rgb(0x2bc196)},
	{"series7", palette[6], rgb(0xa48ad4)},
}

// Inline returns a picture's SVG for an HTML page that includes Style: its colours follow the page's, light or dark,
// and its width follows its container. description says what it shows, for people who cannot see it.
func Inline(svg []byte, description string) string {
	var pairs []string
	for _, r := range roles {
		for _, of := range []string{"fill", "stroke"} {
			pairs = append(pairs, of+":"+hex(r.light), of+":var(--chart-"+r.name+")")
		}
	}
	text := strings.NewReplacer(pairs...).Replace(string(svg))
	label := strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;").Replace(printable(description))
	return strings.Replace(text, "<svg ", `<svg role="img" aria-label="`+label+`" class="chart" `, 1)
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }

// Style is the CSS that pages with inline pictures need.
func Style() string {
	var light, dark strings.Builder
	for _, r := range roles {
		fmt.Fprintf(&light, "--chart-%s:%s;", r.name, hex(r.light))
		fmt.Fprintf(&dark, "--chart-%s:%s;", r.name, hex(r.dark))
	}
	return ":root{color-scheme:light dark;" + light.String() + "}\n" +
		"@media (prefers-color-scheme:dark){:root{" + dark.String() + "}}\n" +
		".chart{display:block;width:100%;height:auto}\n"
}
