package profile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// followed is a run and the forecast that it is compared with.
type followed struct {
	name   string
	phases []cluster.Phase
	series []Stretch
}

// recordedRuns are all recordings of real programs, each with its own phases as its forecast.
func recordedRuns(t *testing.T) (all []followed) {
	for _, pattern := range []string{"testdata/usage/*.txt", "../../studies/experiments/lab/recordings/*.txt"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) < 3 {
			t.Fatal(paths, err)
		}
		for _, path := range paths {
			series, marks := readRecorded(t, path)
			if len(marks) == 0 {
				series = readSpans(t, path)
			}
			r, _ := Segment(series)
			all = append(all, followed{filepath.Base(path), r.Phases, bySecond(series)})
		}
	}
	return all
}

// readSpans reads a file of studies/experiments/lab/recordings.
func readSpans(t *testing.T, path string) (series []Stretch) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		s := Stretch{Unknown: resource.KindsOf(resource.Network)}
		for i, field := range fields {
			v, err := strconv.ParseInt(field, 10, 64)
			kind := [...]resource.Kind{0, resource.CPU, resource.Memory, resource.Disk}[i]
			switch {
			case i == 0:
				s.Length = time.Duration(v) * time.Millisecond
			case err != nil:
				s.Unknown |= resource.KindsOf(kind)
			case kind == resource.CPU:
				s.Usage[kind] = resource.Amount(v)
			default:
				s.Usage[kind] = resource.Amount(v) * resource.KiB
			}
		}
		series = append(series, s)
	}
	return series
}

// bySecond cuts long stretches into seconds.
func bySecond(series []Stretch) (all []Stretch) {
	for _, s := range series {
		for part := s; s.Length >= 1500*time.Millisecond; s.Length -= time.Second {
			part.Length = time.Second
			all = append(all, part)
		}
		all = append(all, s)
	}
	return all
}

// plantedRun is a run of 2 to 8 phases, each of which computes, transfers, does both or nothing, and differs from the
// one before.
func plantedRun(r *rand.Rand) (f followed) {
	kinds := []resource.Vector{{1000, 0, 0}, {150, 0, 80 * resource.MB}, {500, 0, 40 * resource.MB}, {30, 0, 0}}
	last := -1
	for range 2 + r.IntN(7) {
		kind := (last + 1 + r.IntN(3)) % len(kinds)
		last = kind
		p := cluster.Phase{Duration: time.Duration(5+r.IntN(56)) * time.Second, Demand: kinds[kind]}
		p.Demand[resource.Memory] = resource.Amount(50+r.IntN(200)) * resource.MiB
		f.phases = append(f.phases, p)
		f.series = append(f.series,
			slices.Repeat([]Stretch{{Length: time.Second, Usage: p.Demand, Unknown: resource.KindsOf(resource.Network)}},
				int(p.Duration/time.Second))...)
	}
	return f
}

// slowed returns the run, with its rates off by 10 %, in which phases that demand more than a tenth of the largest
// demand of the disk take so many times as long, at rates so much lower. at is how far the run is after each stretch,
// in time of the forecast.
func (f *followed) slowed(r *rand.Rand, times float64) (series []Stretch, at []time.Duration) {
	most := resource.Amount(0)
	for i := range f.phases {
		most = max(most, f.phases[i].Demand[resource.Disk])
	}
	now := time.Duration(0)
	for _, s := range f.series {
		slow := 1.0
		if p, _ := placeAt(f.phases, now+s.Length/2); f.phases[p].Demand[resource.Disk] > most/10 {
			slow = times
		}
		for left := float64(s.Length) * slow; left >= 1; left -= float64(s.Length) {
			part := s
			part.Length = min(s.Length, time.Duration(left))
			for _, k := range []resource.Kind{resource.CPU, resource.Disk} {
				part.Usage[k] = resource.Amount(max(0, float64(s.Usage[k])/slow*(1+0.1*r.NormFloat64())))
			}
			now += time.Duration(float64(part.Length) / slow)
			series, at = append(series, part), append(at, now)
		}
	}
	return series, at
}

// placeAt returns where a run is that has done a given part of its forecast.
func placeAt(phases []cluster.Phase, done time.Duration) (phase int, into time.Duration) {
	for phase < len(phases)-1 && done >= phases[phase].Duration {
		done -= phases[phase].Duration
		phase++
	}
	return phase, done
}

// byWork is where a run is that goes on as it does its work: the mean of its shares of all CPU time and of all bytes.
func byWork(phases []cluster.Phase, series []Stretch) (phase int, into time.Duration) {
	var all, done resource.Vector
	for i := range phases {
		all = all.Add(amounts(&phases[i].Demand, phases[i].Duration))
	}
	for i := range series {
		done = done.Add(amounts(&series[i].Usage, series[i].Length))
	}
	share := func(v *resource.Vector) float64 {
		return (float64(v[resource.CPU])/max(1, float64(all[resource.CPU])) +
			float64(v[resource.Disk])/max(1, float64(all[resource.Disk]))) / 2
	}
	is, before := share(&done), 0.0
	for ; phase < len(phases)-1; phase++ {
		of := amounts(&phases[phase].Demand, phases[phase].Duration)
		if is < before+share(&of) {
			break
		}
		before += share(&of)
	}
	of := amounts(&phases[phase].Demand, phases[phase].Duration)
	return phase, time.Duration(min(1, max(0, is-before)/max(1e-9, share(&of))) * float64(phases[phase].Duration))
}

func amounts(rates *resource.Vector, length time.Duration) (v resource.Vector) {
	for k := range v {
		v[k] = resource.Amount(float64(rates[k]) * length.Seconds())
	}
	return v
}

// misses are shares of the looks at a run: those at which it was taken to be in a wrong phase, and those at which
// nothing was found; and the mean error of the remaining time, as a share of the forecast's length.
type misses struct{ wrong, late, abstained float64 }

// follow compares where a run is taken to be with where it is, after each third stretch.
func (f *followed) follow(r *rand.Rand, times float64, place func([]cluster.Phase, []Stretch) (int, time.Duration,
	bool)) (m misses) {
	series, at := f.slowed(r, times)
	looks := 0.0
	for i := 2; i < len(series); i += 3 {
		looks++
		phase, into, ok := place(f.phases, series[:i+1])
		if !ok {
			m.abstained++
			phase, into = placeAt(f.phases, length(series[:i+1]))
		}
		if is, _ := placeAt(f.phases, at[i]-series[i].Length/4); phase != is {
			m.wrong++
		}
		m.late += (sum(f.phases[:phase]) + min(into, f.phases[phase].Duration) - at[i]).Abs().Seconds() / sum(
			f.phases).Seconds()
	}
	return misses{m.wrong / looks, m.late / looks, m.abstained / looks}
}

func length(series []Stretch) (d time.Duration) {
	for i := range series {
		d += series[i].Length
	}
	return d
}

// Recorded and planted runs whose phases at the disk are slower than forecast are followed better by their samples
// than by time or by work. This is the table of decision 31.
func TestFollowsSlowedRuns(t *testing.T) {
	var planted []followed
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		planted = append(planted, plantedRun(r))
	}
	ways := []struct {
		name  string
		place func([]cluster.Phase, []Stretch) (int, time.Duration, bool)
	}{
		{"time", func(phases []cluster.Phase, series []Stretch) (int, time.Duration, bool) {
			phase, into := placeAt(phases, length(series))
			return phase, into, true
		}},
		{"work", func(phases []cluster.Phase, series []Stretch) (int, time.Duration, bool) {
			phase, into := byWork(phases, series)
			return phase, into, true
		}},
		{"samples", Follow},
	}
	for _, group := range []struct {
		name string
		runs []followed
		most misses // by samples
	}{{"recorded", recordedRuns(t), misses{0.14, 0.06, 0.12}}, {"planted", planted, misses{0.02, 0.03, 0}}} {
		for _, way := range ways {
			for _, times := range []float64{1, 1.5, 2, 3} {
				var m misses
				for i := range group.runs {
					one := group.runs[i].follow(r, times, way.place)
					m.wrong, m.late, m.abstained = m.wrong+one.wrong, m.late+one.late, m.abstained+one.abstained
				}
				n := float64(len(group.runs))
				m = misses{m.wrong / n, m.late / n, m.abstained / n}
				t.Logf("%-8s %.1f times as long, by %-7s: in a wrong phase %4.1f %%, remaining time off by %4.1f %%, "+
					"abstained %4.1f %%", group.name, times, way.name, 100*m.wrong, 100*m.late, 100*m.abstained)
				if way.name == "samples" && (m.wrong > group.most.wrong || m.late > group.most.late ||
					m.abstained > group.most.abstained) {
					t.Errorf("want at most %+v", group.most)
				}
			}
		}
	}
}

// A run of another program contradicts a forecast more often than not.
func TestFollowKnowsOtherPrograms(t *testing.T) {
	runs := recordedRuns(t)
	looks, followed := 0, 0
	for i := range runs {
		for j := range runs {
			for n := 3; i != j && n <= len(runs[j].series); n += 3 {
				looks++
				if _, _, ok := Follow(runs[i].phases, runs[j].series[:n]); ok {
					followed++
				}
			}
		}
	}
	t.Logf("%d of %d looks at a run with the forecast of another program", followed, looks)
	if followed*3 > looks {
		t.Error("want at most a third")
	}
}

// A change between phases that differ is found within a few samples of it, even if each phase is much slower, and
// nothing that Follow returns is out of range.
func TestFollowFindsChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var lags []float64
	for range 20 {
		f := plantedRun(r)
		series, at := f.slowed(r, 1+2*r.Float64())
		found, is := 0, 0
		changed := 0
		for i := range series {
			phase, into, ok := Follow(f.phases, series[:i+1])
			if again, same, _ := Follow(f.phases, series[:i+1]); again != phase || same != into {
				t.Fatal("not the same again")
			}
			if !ok || into < 0 || into > f.phases[phase].Duration {
				t.Fatalf("in phase %d since %v (%v)", phase, into, ok)
			}
			if now, _ := placeAt(f.phases, at[i]-series[i].Length/4); now != is {
				is, changed = now, i
			}
			if phase == is && found < is {
				found = is
				lags = append(lags, float64(i-changed))
			}
		}
	}
	slices.Sort(lags)
	nearly := lags[len(lags)*95/100]
	t.Logf("samples until a change is found: median %g, 95 %% %g, most %g, of %d", lags[len(lags)/2], nearly,
		lags[len(lags)-1], len(lags))
	if nearly > 4 {
		t.Error("want at most 4 for 95 %")
	}
}

// Follow finds nothing where samples say nothing.
func TestFollowAbstains(t *testing.T) {
	phase := func(cpu, disk resource.Amount) cluster.Phase {
		return cluster.Phase{Duration: 20 * time.Second, Demand: resource.Vector{cpu, 100 * resource.MiB, disk * resource.MB}}
	}
	used := func(n int, cpu, disk resource.Amount, unknown ...resource.Kind) []Stretch {
		return slices.Repeat(
			[]Stretch{{Length: time.Second, Usage: resource.Vector{cpu, 100 * resource.MiB, disk * resource.MB},
				Unknown: resource.KindsOf(append(unknown, resource.Network)...)}}, n)
	}
	nothing := []resource.Kind{resource.CPU, resource.Memory, resource.Disk}
	two := []cluster.Phase{phase(100, 40), phase(1000, 0)}
	for _, c := range []struct {
		name   string
		phases []cluster.Phase
		series []Stretch
		phase  int
		into   float64 // seconds
		ok     bool
	}{
		{"in its first phase", two, used(10, 90, 35), 0, 10, true},
		{"in its first phase, slow", two, used(15, 40, 16), 0, 7.5, true},
		{"still in its first phase", two, used(60, 90, 35), 0, 19, true},
		{"in its second phase", two, append(used(20, 90, 35), used(5, 900, 0)...), 1, 5, true},
		{"in its second phase after half a minute", two, append(used(30, 50, 20), used(5, 900, 0)...), 1, 5, true},
		{"in its second phase at once", two, used(8, 900, 0), 1, 8, true},
		{"one long stretch", two, append(used(20, 90, 35), Stretch{Length: 10 * time.Second, Usage: two[1].Demand}), 1, 10,
			true},
		{"a spike", two, append(used(10, 90, 35), used(1, 1000, 0)...), 0, 10, true},
		{"the disk is unknown", two, append(used(20, 90, 0, resource.Disk), used(5, 900, 0, resource.Disk)...), 1, 5, true},
		{"the disk is unknown at times", two, append(used(10, 90, 0, resource.Disk), used(5, 90, 35)...), 0, 15, true},
		{"a gap", two, append(append(used(10, 90, 35), used(5, 0, 0, nothing...)...), used(5, 90, 35)...), 0, 15, true},
		{"a phase of no length", []cluster.Phase{two[0], {}, two[1]}, append(used(20, 90, 35), used(5, 900, 0)...), 2, 5,
			true},
		{"less memory than stated",
			[]cluster.Phase{{Duration: 5 * time.Second, Demand: resource.Vector{1000, 800 * resource.MiB}},
				{Duration: time.Minute, Demand: resource.Vector{5, 800 * resource.MiB}}}, used(10, 490, 0), 0, 5, true},
		{"no phases", nil, used(10, 90, 35), 0, 0, false},
		{"one phase", two[:1], used(10, 90, 35), 0, 0, false},
		{"no samples", two, nil, 0, 0, false},
		{"nothing was measured", two, used(10, 0, 0, nothing...), 0, 0, false},
		{"mostly unknown", two, append(used(5, 90, 35), used(6, 0, 0, nothing...)...), 0, 0, false},
		{"alike in what was measured", []cluster.Phase{phase(500, 40), phase(500, 0)}, used(10, 400, 0, resource.Disk), 0,
			0, false},
		{"alike", []cluster.Phase{phase(500, 40), phase(480, 40)}, used(10, 400, 40), 0, 0, false},
		{"phases without demand", []cluster.Phase{{Duration: time.Second}, {Duration: time.Second}}, used(10, 400, 40), 0,
			0, false},
		{"another program", two, used(10, 1000, 80), 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			phase, into, ok := Follow(c.phases, c.series)
			if phase != c.phase || math.Abs(into.Seconds()-c.into) > 0.15*c.into || ok != c.ok {
				t.Errorf("in phase %d for %v (%v), want %d for %gs (%v)", phase, into, ok, c.phase, c.into, c.ok)
			}
		})
	}
}

// What a program does not use while others hinder it, it uses later: the phase lasts longer. Time in which nothing
// hinders it passes as forecast, and if it is idle for much of that, the run contradicts the forecast.
func TestFollowWaits(t *testing.T) {
	phase := func(seconds time.Duration, cpu, network resource.Amount) cluster.Phase {
		demand := resource.Vector{cpu, 100 * resource.MiB, 0, network * resource.MB}
		return cluster.Phase{Duration: seconds * time.Second, Demand: demand}
	}
	type part struct {
		seconds      int
		cpu, network resource.Amount
		idle         float64
	}
	two := []cluster.Phase{phase(15, 500, 0), phase(35, 1500, 0)}
	pause := []cluster.Phase{phase(20, 1000, 0), phase(20, 5, 0), phase(20, 1000, 0)}
	remote := []cluster.Phase{phase(20, 5, 10), phase(20, 1000, 0)}
	first, second := part{15, 450, 0, 0}, part{25, 1400, 0, 0}
	for _, c := range []struct {
		name   string
		phases []cluster.Phase
		run    []part
		phase  int
		into   float64 // seconds
		ok     bool
	}{
		{"kept from everything", two, []part{{45, 0, 0, 0}}, 0, 0, true},
		{"kept from nearly everything", two, []part{{45, 5, 0, 0}}, 0, 0.5, true},
		{"waits", two, []part{{45, 0, 0, 1}}, 0, 0, false},
		{"waits, and looks around now and then", two, []part{{45, 5, 0, 1}}, 0, 0, false},
		{"waits half of the time", two, []part{{45, 5, 0, 0.5}}, 0, 0, false},
		{"kept from everything later", two, []part{first, second, {60, 0, 0, 0}}, 1, 25, true},
		{"waits for long later", two, []part{first, second, {60, 0, 0, 1}}, 0, 0, false},
		{"waits briefly later", two, []part{first, second, {8, 0, 0, 1}}, 1, 33, true},
		{"waits briefly", two, []part{{7, 450, 0, 0}, {3, 0, 0, 1}, {5, 450, 0, 0}}, 0, 15, true},
		{"waits between its phases", two, []part{first, {6, 0, 0, 1}, {10, 1400, 0, 0}}, 1, 10, true},
		{"waits as forecast", pause, []part{{20, 950, 0, 0}, {10, 0, 0, 1}}, 1, 10, true},
		{"waits for longer than forecast", pause, []part{{20, 950, 0, 0}, {90, 0, 0, 1}}, 1, 20, true},
		{"waits for a slow network", remote, []part{{20, 2, 4, 1}}, 0, 10, true},
		{"waits for a dead network", remote, []part{{20, 2, 0, 1}}, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var series []Stretch
			for _, p := range c.run {
				used := resource.Vector{p.cpu, 100 * resource.MiB, 0, p.network * resource.MB}
				series = append(series, slices.Repeat([]Stretch{{Length: time.Second, Usage: used, Idle: p.idle}}, p.seconds)...)
			}
			phase, into, ok := Follow(c.phases, series)
			if phase != c.phase || math.Abs(into.Seconds()-c.into) > max(0.2, 0.15*c.into) || ok != c.ok {
				t.Errorf("in phase %d for %v (%v), want %d for %gs (%v)", phase, into, ok, c.phase, c.into, c.ok)
			}
		})
	}
}

func BenchmarkFollow(b *testing.B) {
	for _, n := range []int{60, 600, 3600} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := plantedRun(rand.New(rand.NewPCG(5, 6)))
			series := slices.Repeat(f.series, 1+n/len(f.series))[:n]
			for b.Loop() {
				Follow(f.phases, series)
			}
		})
	}
}
