package paging

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/studies/chart"
)

// Heads are the heads of the columns of Rows; numbers begin with ">".
var Heads = []string{">SHARE", ">SPILL", ">FROM", ">TO", ">PAGE", ">FROM", ">TO", ">FAILED", "CHEAPER"}

// Rows returns a table of a curve: per share of the ideal memory, the slowdown in both ways, median, fastest and
// slowest, and which way is cheaper.
func Rows(c *profile.PagingCurve) (rows [][]string) {
	for _, at := range c.Points {
		spill, page := slowdownCells(at.Spill, c.IdealSeconds), slowdownCells(at.Page, c.IdealSeconds)
		rows = append(rows, slices.Concat([]string{fmt.Sprintf("%.0f%%", 100*at.Share)}, spill, page,
			[]string{failures(at.Page), cheaper(at)}))
	}
	return rows
}

// Picture draws medians: paging solid, spilling dashed, stopped runs at their time limit.
func Picture(p *profile.Paging) *chart.Plot {
	plot := &chart.Plot{
		Title:    "Paging (solid) and spilling (dashed)",
		Subtitle: fmt.Sprintf("medians; swap %s on %s; lines end where runs were given up or killed", p.Swap, p.Device),
		X:        "memory (% of ideal)", Y: "run time (times that with ideal memory)", LogY: true,
	}
	for i, c := range p.Curves {
		page := chart.Series{Name: c.Pattern + ", pages", Color: i + 1}
		spill := chart.Series{Name: c.Pattern + ", spills", Color: i + 1, Dashed: true}
		for _, at := range c.Points {
			for _, way := range []struct {
				to    *chart.Series
				times profile.Times
			}{{&page, at.Page}, {&spill, at.Spill}} {
				if way.times.Known() && !way.times.AtLeast() {
					way.to.X, way.to.Y = append(way.to.X, 100*at.Share), append(way.to.Y, way.times.Median()/c.IdealSeconds)
				}
			}
		}
		plot.Series = append(plot.Series, page, spill)
	}
	return plot
}

// slowdownCells prints median, fastest and slowest as multiples of the ideal run time.
func slowdownCells(t profile.Times, ideal float64) []string {
	if !t.Known() {
		return []string{"fails", "", ""}
	}
	mark := ""
	if t.AtLeast() {
		mark = ">"
	}
	fastest, slowest := t.Range()
	return []string{fmt.Sprintf("%s%.2fx", mark, t.Median()/ideal), fmt.Sprintf("%.2fx", fastest/ideal),
		fmt.Sprintf("%s%.2fx", mark, slowest/ideal)}
}

// failures prints how many runs failed of how many.
func failures(t profile.Times) string {
	if t.Failures == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", t.Failures, t.Failures+len(t.Seconds))
}

// cheaper names the way whose slowest repeat was faster than the fastest repeat of the other way.
func cheaper(at profile.PagingPoint) string {
	spillFast, spillSlow := at.Spill.Range()
	pageFast, pageSlow := at.Page.Range()
	switch {
	case at.Page.Failures > 0 && at.Spill.Known():
		return "spill"
	case !at.Spill.Known() && at.Page.Known():
		return "page"
	case !at.Page.Known() && at.Spill.Known():
		return "spill"
	case at.Share == 1:
		return ""
	case spillSlow < pageFast && !at.Spill.AtLeast():
		return "spill"
	case pageSlow < spillFast && !at.Page.AtLeast():
		return "page"
	}
	return "either"
}
