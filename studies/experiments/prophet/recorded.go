package prophet

import (
	"fmt"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// recordedFindings are the recordings that Fig. 1 shows in addition to models.
func recordedFindings() (*lab.Findings, error) {
	all, err := lab.Recorded()
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Recorded programs (peaks of half a second or more)", "program", "what it does", "run time",
		"phases found", "CPU, mean of peak", "memory, mean of peak", "disk, peak", "disk, mean of peak",
		"time below a tenth of its disk peak", "demand of its phases on disks, of peak")
	p := &chart.Tracks{Title: "Disk bandwidth of real programs",
		Subtitle: "recorded; each to its own scale, the first 70 s", X: "time, s", To: 70}
	wasted, idle := 0, 0
	for i := range all {
		r := &all[i]
		run, _ := profile.Segment(r.Spans)
		cpu, _ := r.Share(resource.CPU)
		memory, _ := r.Share(resource.Memory)
		disk, low := r.Share(resource.Disk)
		peak, phases := r.Peak(resource.Disk), lab.UsageOf(run.Phases)
		table.Add(r.Name, r.What, lab.Decimals(run.Duration.Seconds(), 0)+" s", strconv.Itoa(len(run.Phases)),
			lab.Percent(cpu),
			lab.Percent(memory), lab.Megabytes(peak), lab.Percent(disk), lab.Percent(low),
			lab.Percent(float64(phases.Mean[resource.Disk])/float64(peak)))
		if disk <= 0.5 {
			wasted++
		}
		if low > 0.5 {
			idle++
		}
		p.Rows = append(p.Rows, trackOf(r, resource.Disk, run.Phases))
	}
	return &lab.Findings{Tables: []lab.Table{table},
		Pictures: []lab.Picture{{Name: "recorded",
			Caption: "Disk bandwidth of real programs over time, and the demand of the phases found (recorded)", Picture: p}},
		Claims: recordedClaims(wasted, idle, len(all))}, nil
}

// recordedClaims judges how many of all programs use at most half of their disk peak in the mean, and how many use
// next to nothing for more than half of their time.
func recordedClaims(wasted, idle, all int) []lab.Claim {
	return []lab.Claim{
		Paper.Stated("prophet/fig1", "wasted").Judge(fmt.Sprintf("%d of %d programs", wasted, all), wasted == all,
			2*wasted > all),
		Paper.Stated("prophet/fig1", "low").Judge(fmt.Sprintf("%d of %d programs", idle, all), 2*idle > all, idle > 0),
	}
}

// trackOf draws what was used of a resource, and what the phases demand of it.
func trackOf(r *lab.Recording, k resource.Kind, phases []cluster.Phase) chart.Track {
	peak := r.Peak(k)
	t := chart.Track{Name: r.Name, Notes: []string{"peak " + lab.Megabytes(peak)}, Top: 1.05 * float64(peak) / 1e6,
		High: 60}
	used, at := chart.Area{Name: "used", Color: 1}, 0.0
	for i := range r.Spans {
		t.X, used.Y = append(t.X, at), append(used.Y, min(t.Top, float64(r.Spans[i].Usage[k])/1e6))
		at += r.Spans[i].Length.Seconds()
	}
	t.X, used.Y = append(t.X, at), append(used.Y, 0)
	demand := lab.StepsOf("demand of the phases found", phases, k)
	demand.Color = 2
	t.Areas, t.Lines = []chart.Area{used}, []chart.Series{demand}
	return t
}
