package profile

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// readRecorded reads a file of testdata/usage: marks are when the program's own phases began.
func readRecorded(t *testing.T, path string) (series []Stretch, marks []time.Duration) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var ms, cpu, memory, disk int64
		var name string
		if n, _ := fmt.Sscanf(line, "mark %d %s", &ms, &name); n == 2 {
			if name != "end" {
				marks = append(marks, time.Duration(ms)*time.Millisecond)
			}
		} else if n, _ := fmt.Sscan(line, &ms, &cpu, &memory, &disk); n == 4 {
			s := Stretch{Length: time.Duration(ms) * time.Millisecond, Unknown: resource.KindsOf(resource.Network)}
			s.Usage[resource.CPU] = resource.Amount(cpu) * resource.Core / resource.Amount(ms)
			s.Usage[resource.Memory] = resource.Amount(memory) * resource.KiB
			s.Usage[resource.Disk] = resource.Amount(disk) * resource.KiB * 1000 / resource.Amount(ms)
			series = append(series, s)
		}
	}
	return series, marks
}

// Where a real program's script says that a phase begins, a phase begins, within two samples. The programs have further
// phases, such as when sqlite3 writes what it inserted.
func TestRecordedPrograms(t *testing.T) {
	paths, err := filepath.Glob("testdata/usage/*.txt")
	if err != nil || len(paths) < 3 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			series, marks := readRecorded(t, path)
			r, notes := Segment(series)
			checkSegmented(t, series, r)
			if len(notes) > 0 || r.Unknown&^resource.KindsOf(resource.Network) != 0 || len(r.Phases) > 2*len(marks) {
				t.Errorf("%d phases, unknown %v, notes %q", len(r.Phases), r.Unknown, notes)
			}
			for _, mark := range marks {
				at, nearest := time.Duration(0), mark
				for _, p := range r.Phases {
					nearest = min(nearest, (at - mark).Abs())
					at += p.Duration
				}
				if nearest > 1050*time.Millisecond {
					t.Errorf("no phase begins near %v: phases of %s s", mark, lengths(r.Phases))
				}
			}
		})
	}
}

// bitbrains reads the virtual machines of a week of the Bitbrains trace, a sample every 300 s.
func bitbrains(t *testing.T, most int) (all [][]Stretch) {
	f, err := os.Open("../../../shared/data/bitbrains/rnd-2013-08-week1-300s.csv.gz")
	if err != nil {
		t.Skip("needs ../shared/data/bitbrains")
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(z)
	rows := map[string]struct {
		kind  resource.Kind
		scale float64
	}{"cpu_mhz": {resource.CPU, 1000.0 / 2600}, "mem_mb": {resource.Memory, 1e6}, "disk_read_kbps": {resource.Disk, 1000},
		"disk_write_kbps": {resource.Disk, 1000}, "net_rx_kbps": {resource.Network, 1000},
		"net_tx_kbps": {resource.Network, 1000}}
	var series []Stretch
	for vm := ""; len(all) < most; {
		line, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		row, known := rows[line[1]]
		if !known {
			continue
		}
		if line[0] != vm {
			if vm != "" {
				all = append(all, series)
			}
			vm, series = line[0], nil
		}
		for i, text := range strings.Fields(line[2]) {
			if i == len(series) {
				series = append(series, Stretch{Length: 5 * time.Minute})
			}
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			if v < 0 { // missing
				series[i].Unknown |= resource.KindsOf(row.kind)
				v = 0
			}
			series[i].Usage[row.kind] += resource.Amount(v * row.scale)
		}
	}
	return all
}

// Phases of real virtual machines are above what was used nearly all the time, and together far below the peak.
func TestBitbrains(t *testing.T) {
	most := 100
	if testing.Short() {
		most = 15
	}
	var above, samples, demanded, peaks float64
	for _, series := range bitbrains(t, most) {
		r, _ := Segment(series)
		again, _ := Segment(series)
		if !reflect.DeepEqual(r, again) {
			t.Fatal("not the same phases again")
		}
		for i := range series {
			series[i].Usage = series[i].Unknown.In(series[i].Usage, 0)
		}
		checkSegmented(t, series, r)
		at := 0
		for _, p := range r.Phases {
			for end := at + int(p.Duration/(5*time.Minute)); at < end; at++ {
				for k := range resource.NumKinds {
					if r.Peak[k] == 0 || series[at].Unknown.Has(k) {
						continue
					}
					samples++
					if series[at].Usage[k] > p.Demand[k] {
						above++
					}
					demanded += float64(p.Demand[k]) / float64(r.Peak[k])
					peaks++
				}
			}
		}
	}
	t.Logf("%.1f %% of samples above the demand of their phase; demand is %.0f %% of the peak in the mean",
		100*above/samples, 100*demanded/peaks)
	if above > 0.05*samples || demanded > 0.6*peaks {
		t.Error("want at most 5 % of samples above, and at most 60 % of the peak")
	}
}
