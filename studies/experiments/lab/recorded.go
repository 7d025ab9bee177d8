package lab

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
)

// recordings are what real programs used; their README explains the lines.
//
//go:embed recordings/*.txt
var recordings embed.FS

// Recording is what a real program used over time.
type Recording struct {
	Name, What string
	Spans      []profile.Stretch
}

// Recorded returns what real programs used.
func Recorded() (all []Recording, err error) {
	for _, name := range []string{"sort", "sqlite", "tar-xz", "zip", "go"} {
		text, err := recordings.ReadFile("recordings/" + name + ".txt")
		if err != nil {
			return nil, err
		}
		r := Recording{Name: name}
		for line := range strings.Lines(string(text)) {
			if what, ok := strings.CutPrefix(line, "# "); ok {
				r.What = strings.TrimSpace(what)
				continue
			}
			s, err := spanOf(strings.Fields(line))
			if err != nil {
				return nil, fmt.Errorf("recordings/%s.txt: %q: %w", name, line, err)
			}
			r.Spans = append(r.Spans, s)
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

// Peak returns the most that was used of a resource for some time.
func (r *Recording) Peak(k resource.Kind) (most resource.Amount) {
	for i := range r.Spans {
		if r.Spans[i].Length >= briefest {
			most = max(most, r.Spans[i].Usage[k])
		}
	}
	return most
}

// Share returns the mean use of a resource as a share of its peak, and the share of the time with at most a tenth of
// the peak.
func (r *Recording) Share(k resource.Kind) (used, low float64) {
	whole, peak := 0.0, r.Peak(k)
	for i := range r.Spans {
		s := &r.Spans[i]
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

// ReadRecorded imports one file.
func ReadRecorded(f importer.Format, path string) ([]workload.Job, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := importer.Import(f, []importer.Source{{Name: filepath.Base(path), Data: file}}, importer.Options{})
	if err != nil {
		return nil, err
	}
	return r.Workload.Jobs, nil
}
