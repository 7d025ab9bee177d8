package experiments

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
)

// recordings are what real programs used; their README explains the lines.
//
//go:embed recordings/*.txt
var recordings embed.FS

// recording is what a real program used over time.
type recording struct {
	name, what string
	spans      []profile.Stretch
}

func recorded() (all []recording, err error) {
	for _, name := range []string{"sort", "sqlite", "tar-xz", "zip", "go"} {
		text, err := recordings.ReadFile("recordings/" + name + ".txt")
		if err != nil {
			return nil, err
		}
		r := recording{name: name}
		for line := range strings.Lines(string(text)) {
			if what, ok := strings.CutPrefix(line, "# "); ok {
				r.what = strings.TrimSpace(what)
				continue
			}
			s, err := spanOf(strings.Fields(line))
			if err != nil {
				return nil, fmt.Errorf("recordings/%s.txt: %q: %w", name, line, err)
			}
			r.spans = append(r.spans, s)
		}
		all = append(all, r)
	}
	return all, nil
}

func spanOf(cells []string) (s profile.Stretch, err error) {
	units := []struct {
		kind resource.Kind
		unit resource.Amount
	}{{resource.CPU, resource.Core / 1000}, {resource.Memory, resource.KiB}, {resource.Disk, resource.KiB}}
	if len(cells) != 1+len(units) {
		return s, fmt.Errorf("%d numbers: must be %d", len(cells), 1+len(units))
	}
	ms, err := strconv.Atoi(cells[0])
	s.Length, s.Unknown = time.Duration(ms)*time.Millisecond, resource.KindsOf(resource.Network)
	for i, u := range units {
		if cells[i+1] == "-" {
			s.Unknown |= resource.KindsOf(u.kind)
			continue
		}
		n, wrong := strconv.ParseInt(cells[i+1], 10, 64)
		if err = wrong; err != nil {
			return s, err
		}
		s.Usage[u.kind] = resource.Amount(n) * u.unit
	}
	return s, err
}

// briefest is the length of the shortest span that counts for a peak: a program that starts reads for a moment as
// fast as the disk can.
const briefest = 500 * time.Millisecond

func (r *recording) peak(k resource.Kind) (most resource.Amount) {
	for i := range r.spans {
		if r.spans[i].Length >= briefest {
			most = max(most, r.spans[i].Usage[k])
		}
	}
	return most
}

// share returns the mean use of a resource as a share of its peak, and the share of the time with at most a tenth of
// the peak.
func (r *recording) share(k resource.Kind) (used, low float64) {
	whole, peak := 0.0, r.peak(k)
	for i := range r.spans {
		s := &r.spans[i]
		if s.Unknown.Has(k) {
			continue
		}
		whole += s.Length.Seconds()
		used += float64(s.Usage[k]) / float64(peak) * s.Length.Seconds()
		if s.Usage[k] <= peak/10 {
			low += s.Length.Seconds()
		}
	}
	return used / whole, low / whole
}

// recordedFindings are the recordings that Fig. 1 shows in addition to models.
func recordedFindings() (*Findings, error) {
	all, err := recorded()
	if err != nil {
		return nil, err
	}
	table := newTable("Recorded programs (peaks of half a second or more)", "program", "what it does", "run time",
		"phases found", "CPU, mean of peak", "memory, mean of peak", "disk, peak", "disk, mean of peak",
		"time below a tenth of its disk peak", "demand of its phases on disks, of peak")
	p := &chart.Tracks{Title: "Disk bandwidth of real programs",
		Subtitle: "recorded; each to its own scale, the first 70 s", X: "time, s", To: 70}
	wasted, idle := 0, 0
	for i := range all {
		r := &all[i]
		run, _ := profile.Segment(r.spans)
		cpu, _ := r.share(resource.CPU)
		memory, _ := r.share(resource.Memory)
		disk, low := r.share(resource.Disk)
		peak, phases := r.peak(resource.Disk), usageOf(run.Phases)
		table.add(r.name, r.what, decimals(run.Duration.Seconds(), 0)+" s", strconv.Itoa(len(run.Phases)), percent(cpu),
			percent(memory), megabytes(peak), percent(disk), percent(low),
			percent(float64(phases.mean[resource.Disk])/float64(peak)))
		if disk <= 0.5 {
			wasted++
		}
		if low > 0.5 {
			idle++
		}
		p.Rows = append(p.Rows, r.track(resource.Disk, run.Phases))
	}
	return &Findings{Tables: []Table{table},
		Pictures: []Picture{{"recorded",
			"Disk bandwidth of real programs over time, and the demand of the phases found (recorded)", p}},
		Claims: recordedClaims(wasted, idle, len(all))}, nil
}

// recordedClaims judges how many of all programs use at most half of their disk peak in the mean, and how many use
// next to nothing for more than half of their time.
func recordedClaims(wasted, idle, all int) []Claim {
	return []Claim{
		stated("prophet/fig1", "wasted").judge(fmt.Sprintf("%d of %d programs", wasted, all), wasted == all, 2*wasted > all),
		stated("prophet/fig1", "low").judge(fmt.Sprintf("%d of %d programs", idle, all), 2*idle > all, idle > 0),
	}
}

// track draws what was used of a resource, and what the phases demand of it.
func (r *recording) track(k resource.Kind, phases []cluster.Phase) chart.Track {
	peak := r.peak(k)
	t := chart.Track{Name: r.name, Notes: []string{"peak " + megabytes(peak)}, Top: 1.05 * float64(peak) / 1e6, High: 60}
	used, at := chart.Area{Name: "used", Color: 1}, 0.0
	for i := range r.spans {
		t.X, used.Y = append(t.X, at), append(used.Y, min(t.Top, float64(r.spans[i].Usage[k])/1e6))
		at += r.spans[i].Length.Seconds()
	}
	t.X, used.Y = append(t.X, at), append(used.Y, 0)
	demand := stepsOf("demand of the phases found", phases, k)
	demand.Color = 2
	t.Areas, t.Lines = []chart.Area{used}, []chart.Series{demand}
	return t
}
