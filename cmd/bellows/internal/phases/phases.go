// Package phases draws the demand of a task over time, for the commands that explain jobs and applications.
package phases

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// Print prints phases, at least one, one row each, with a bar of when they are. unknown are the kinds of resources
// that were measured in no run.
func Print(w io.Writer, phases []api.ForecastPhase, unknown []string) error {
	const wide = 20 // of a bar
	last := phases[len(phases)-1]
	total := last.FromSeconds + last.LengthSeconds
	t := terminal.NewTable("  PHASE", ">FROM", ">LENGTH", ">CPUS", ">MEMORY", ">DISK", ">NETWORK", "")
	for i := range phases {
		p := &phases[i]
		cell := func(k resource.Kind, a int64) string {
			switch {
			case slices.Contains(unknown, k.Field()):
				return "?"
			case a == 0:
				return "-"
			}
			return k.Format(resource.Amount(a))
		}
		name := p.Name
		if name == "" {
			name = fmt.Sprint(i + 1)
		}
		t.Add("  "+terminal.Cut(name, 16), fmt.Sprintf("%.1fs", p.FromSeconds), fmt.Sprintf("%.1fs", p.LengthSeconds),
			strings.TrimSuffix(strings.TrimSuffix(cell(resource.CPU, p.CPU), " cores"), " core"),
			cell(resource.Memory, roundTo(p.Memory, int64(resource.MiB))),
			cell(resource.Disk, roundTo(p.Disk, 100_000)), cell(resource.Network, roundTo(p.Network, 100_000)),
			bar(p, total, wide))
	}
	return t.Write(w)
}

// roundTo rounds an amount to a multiple of unit, and smaller amounts to thousands; an amount above 0 stays above 0.
func roundTo(a, unit int64) int64 {
	switch {
	case a < 1000:
		return a
	case a < unit:
		unit = 1000
	}
	return (a + unit/2) / unit * unit
}

// bar draws the time of a phase.
func bar(p *api.ForecastPhase, total float64, wide int) string {
	if total <= 0 {
		return ""
	}
	from := min(wide-1, int(p.FromSeconds/total*float64(wide)+0.5))
	to := max(from+1, int((p.FromSeconds+p.LengthSeconds)/total*float64(wide)+0.5))
	return strings.Repeat(".", from) + strings.Repeat("#", to-from) + strings.Repeat(".", max(0, wide-to))
}
