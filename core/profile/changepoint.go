package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Stretch is a part of a run with what was used in it: CPU, disk and network as a mean rate, memory as the largest
// amount.
type Stretch struct {
	Length time.Duration // above 0
	Usage  resource.Vector
	// Unknown has the kinds that were not measured in it. If these are all kinds, the stretch is a gap.
	Unknown resource.Kinds
	// Idle is the share of its time, from 0 to 1, in which its programs used next to nothing although nothing kept them
	// from more; 0 also if that is unknown.
	Idle float64
}

// How phases are found.
const (
	// MostPhases is the most phases that Segment finds.
	MostPhases = 12
	// shortestPhase is the length of the shortest phase, in samples: what is shorter is a spike in a phase.
	shortestPhase = 3
	// demandQuantile is the share of a phase's time in which at most its demand of CPU, disk or network is used. Demand of
	// memory is the largest amount, because a task cannot do with less for a moment.
	demandQuantile = 0.95
	// leastNoise is the least noise of a kind, as a share of its largest amount: smaller changes are no phases.
	leastNoise = 0.1
	// penalty is what a further phase costs, in units of the Bayesian information criterion for independent samples. It is
	// above 1 because samples of programs are not independent.
	penalty = 2
	// mostPieces is the number of pieces to which a series is reduced before the best phases are searched.
	mostPieces = 400
)

// trifles are amounts of noise below which no usage matters.
var trifles = [resource.NumKinds]float64{
	resource.CPU: 10, resource.Memory: float64(resource.MiB), resource.Disk: 100e3, resource.Network: 100e3}

// Segment returns what a series of stretches says about a run: its phases, duration, peak, and the kinds that were
// never measured. Features and end are the caller's to fill in. notes say, in a sentence each, what of the series is
// not sound or was filled in. Without any sound stretch, r is empty.
//
// Phases are the spans between change points of the mean usage of all kinds together. The change points minimise the
// squared deviations from the means of the phases, in units of the noise of each kind, plus a penalty per phase
// (optimal partitioning: B. Jackson and others, 2005): among 1 to MostPhases phases the best partition is found for
// each number. Noise is what neighbouring samples differ by, without the largest differences, which are the changes.
// A series of more than mostPieces stretches is reduced first: the neighbours that differ least are joined. The
// effort is O(n log n).
func Segment(series []Stretch) (r Run, notes []string) {
	s, notes := soundSeries(series)
	if len(s) == 0 {
		return Run{}, notes
	}
	unit := sampleLength(s)
	r.Unknown = ^resource.Kinds(0)
	for i := range s {
		r.Unknown &= s[i].Unknown
		r.Duration += s[i].Length
		r.Peak = r.Peak.Max(s[i].peak(unit))
	}
	r.CPU = meanCPU(s)
	pieces := reduce(piecesOf(s, unit))
	from := 0
	for _, end := range partition(pieces) {
		r.Phases = append(r.Phases, phaseOf(s[from:end], unit))
		from = end
	}
	return r, append(notes, fillIn(s, r.Phases, r.Unknown)...)
}

// meanCPU returns the mean use of CPU of the stretches in which it is known, at least 1; 0 if there are none.
func meanCPU(s []Stretch) resource.Amount {
	used, seconds := 0.0, 0.0
	for i := range s {
		if !s[i].Unknown.Has(resource.CPU) {
			used += float64(s[i].Usage[resource.CPU]) * s[i].Length.Seconds()
			seconds += s[i].Length.Seconds()
		}
	}
	if seconds == 0 {
		return 0
	}
	return max(1, asAmount(used/seconds, resource.CPU))
}

// soundSeries returns a copy of the stretches that have a length, with kinds unknown where their amount is out of
// range.
func soundSeries(series []Stretch) (s []Stretch, notes []string) {
	bad, wrong, gaps, gap := 0, [resource.NumKinds]int{}, 0, time.Duration(0)
	total := time.Duration(0)
	for _, x := range series {
		if x.Length <= 0 || x.Length > cluster.LongestTime-total {
			bad++
			continue
		}
		total += x.Length
		for k, a := range x.Usage {
			kind := resource.Kind(k)
			if (a < 0 || a > kind.Most()) && !x.Unknown.Has(kind) {
				wrong[k]++
				x.Unknown |= resource.KindsOf(kind)
			}
		}
		x.Usage = x.Unknown.In(x.Usage, 0)
		if x.known() == 0 {
			gaps++
			gap += x.Length
		}
		s = append(s, x)
	}
	if bad > 0 {
		notes = append(notes, fmt.Sprintf("samples %d: must have a length above 0s and at most %v together, left out", bad,
			cluster.LongestTime))
	}
	for k, n := range wrong {
		if n > 0 {
			kind := resource.Kind(k)
			notes = append(notes, fmt.Sprintf("samples %d: %v must be 0 to %s, taken as unknown", n, kind,
				kind.Format(kind.Most())))
		}
	}
	if gaps > 0 {
		notes = append(notes, fmt.Sprintf("gaps %d: nothing was measured for %v of %v", gaps, gap, total))
	}
	return s, notes
}

// known returns how many kinds were measured.
func (s *Stretch) known() (n int) {
	for k := range resource.NumKinds {
		if !s.Unknown.Has(k) {
			n++
		}
	}
	return n
}

// peak returns the usage, without rates if the stretch is so short that its rate says nothing.
func (s *Stretch) peak(unit time.Duration) resource.Vector {
	if s.Length*2 >= unit {
		return s.Usage
	}
	var v resource.Vector
	v[resource.Memory] = s.Usage[resource.Memory]
	return v
}

// sampleLength returns how far apart samples are: the length that a tenth of all measured stretches do not exceed.
// Longer ones are several samples that were joined. The last one does not count: it ends with the run.
func sampleLength(s []Stretch) time.Duration {
	var lengths []time.Duration
	for i := range s {
		if s[i].known() > 0 && (i < len(s)-1 || len(lengths) == 0) {
			lengths = append(lengths, s[i].Length)
		}
	}
	if len(lengths) == 0 {
		return s[0].Length
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/10]
}

// piece is a part of a series that is in one phase.
type piece struct {
	end    int     // index after its last stretch
	length float64 // in samples, of what was measured
	// weight is in samples in which the kind is known; sum and square are of its usage in units of its noise.
	weight, sum, square [resource.NumKinds]float64
}

// piecesOf returns a piece per stretch.
func piecesOf(s []Stretch, unit time.Duration) []piece {
	pieces := make([]piece, len(s))
	for i := range s {
		pieces[i].end = i + 1
	}
	for k := range resource.NumKinds {
		sd := levelNoise(s, k, unit)
		for i := range s {
			if s[i].Unknown.Has(k) {
				continue
			}
			w, v := float64(s[i].Length)/float64(unit), float64(smooth(s, i, k, unit))/sd
			p := &pieces[i]
			p.length = w
			p.weight[k], p.sum[k], p.square[k] = w, w*v, w*v*v
		}
	}
	return pieces
}

// smooth returns the usage of stretch i. For a single sample it is the median with its two neighbours, so that a
// spike of one sample makes no phase; steps of two samples and more stay where they are.
func smooth(s []Stretch, i int, k resource.Kind, unit time.Duration) resource.Amount {
	b := s[i].Usage[k]
	if i == 0 || i == len(s)-1 || s[i].Length >= 2*unit || s[i-1].Unknown.Has(k) || s[i+1].Unknown.Has(k) {
		return b
	}
	a, c := s[i-1].Usage[k], s[i+1].Usage[k]
	return max(min(a, b), min(max(a, b), c))
}

// levelNoise returns the standard deviation of samples of kind k around the level of their phase, above 0. It is half
// the mean square of the differences of neighbours, without the largest ones: two for each change that may be found.
// A stretch of several samples counts as equal samples without a difference.
func levelNoise(s []Stretch, k resource.Kind, unit time.Duration) float64 {
	var largest squares
	samples, most, last, total, pairs := 0.0, 0.0, -1, 0.0, 0
	for i := range s {
		if s[i].Unknown.Has(k) {
			continue
		}
		samples += max(1, float64(s[i].Length)/float64(unit))
		most = max(most, float64(s[i].Usage[k]))
		if last >= 0 {
			d := float64(s[i].Usage[k] - s[last].Usage[k])
			total += d * d
			largest.add(d * d)
			pairs++
		}
		last = i
	}
	changes := min(len(largest), (pairs+2)/3)
	for _, q := range largest[:changes] {
		total -= q
	}
	sd := 0.0
	if rest := samples - float64(changes); rest > 0 {
		sd = math.Sqrt(max(0, total) / 2 / rest)
	}
	return max(sd, leastNoise*most, trifles[k])
}

// squares are the largest squares, the largest first: two per change.
type squares [2 * MostPhases]float64

func (l *squares) add(q float64) {
	if q <= l[len(l)-1] {
		return
	}
	i := len(l) - 1
	for ; i > 0 && l[i-1] < q; i-- {
		l[i] = l[i-1]
	}
	l[i] = q
}

// apart returns by how much the squared deviations grow if a and b are joined.
func (p *piece) apart(b *piece) (cost float64) {
	for k := range resource.NumKinds {
		if wa, wb := p.weight[k], b.weight[k]; wa > 0 && wb > 0 {
			d := p.sum[k]/wa - b.sum[k]/wb
			cost += wa * wb / (wa + wb) * d * d
		}
	}
	return cost
}

func (p *piece) join(b *piece) {
	p.end = b.end
	p.length += b.length
	for k := range resource.NumKinds {
		p.weight[k] += b.weight[k]
		p.sum[k] += b.sum[k]
		p.square[k] += b.square[k]
	}
}

// reduce joins neighbours until there are at most mostPieces. Each round joins pairs that differ less than their
// neighbours do, and less than about two thirds of all pairs.
func reduce(pieces []piece) []piece {
	var costs, order []float64
	for len(pieces) > mostPieces {
		costs = costs[:0]
		for i := range len(pieces) - 1 {
			costs = append(costs, pieces[i].apart(&pieces[i+1]))
		}
		order = order[:0]
		for i := 0; i < len(costs); i += 1 + len(costs)/1000 {
			order = append(order, costs[i])
		}
		slices.Sort(order)
		limit, left := order[len(order)/3], len(pieces)-mostPieces
		kept := pieces[:1]
		for i := 1; i < len(pieces); i++ {
			c := costs[i-1]
			least := (i < 2 || c <= costs[i-2]) && (i == len(costs) || c < costs[i])
			// Equal neighbours, as in a constant series, are joined two by two.
			equal := i%2 == 1 && c == 0
			if (least || equal) && c <= limit && left > 0 {
				kept[len(kept)-1].join(&pieces[i])
				left--
				continue
			}
			kept = append(kept, pieces[i])
		}
		if len(kept) == len(pieces) {
			break
		}
		pieces = kept
	}
	return pieces
}

// partition returns where phases end, as indexes after their last stretch.
func partition(pieces []piece) (ends []int) {
	n := len(pieces)
	sums := make([]piece, n+1)
	for i := range pieces {
		sums[i+1] = sums[i]
		sums[i+1].join(&pieces[i])
	}
	cost := deviations(sums)
	// best[j] is the least cost of pieces up to j in the current number of phases; from has where the last phase begins.
	best, from := make([]float64, n+1), make([][]int, 0, MostPhases)
	kinds := 0
	for k := range resource.NumKinds {
		if sums[n].weight[k] > 0 {
			kinds++
		}
	}
	each := penalty * float64(kinds+1) * math.Log(max(sums[n].length, math.E))
	chosen, least := 0, math.Inf(1)
	for phases := range MostPhases {
		begin := make([]int, n+1)
		next := make([]float64, n+1)
		for j := 1; j <= n; j++ {
			next[j] = math.Inf(1)
			if phases == 0 {
				next[j] = cost[j*(j-1)/2]
				continue
			}
			row := cost[j*(j-1)/2:]
			for i := 1; i < j; i++ {
				if c := best[i] + row[i]; c < next[j] {
					next[j], begin[j] = c, i
				}
			}
		}
		best, from = next, append(from, begin)
		if c := best[n] + each*float64(phases); c < least {
			chosen, least = phases, c
		}
	}
	for j := n; ; {
		ends = append(ends, pieces[j-1].end)
		if chosen == 0 {
			break
		}
		j = from[chosen][j]
		chosen--
	}
	slices.Reverse(ends)
	return ends
}

// deviations returns the squared deviations of pieces i to j-1 from their mean, at j(j-1)/2 + i; infinity where they
// are too short for a phase, and not the whole.
func deviations(sums []piece) []float64 {
	n := len(sums) - 1
	cost := make([]float64, n*(n+1)/2)
	for j := 1; j <= n; j++ {
		for i := range j {
			a, b := &sums[i], &sums[j]
			c := 0.0
			for k := range resource.NumKinds {
				if w := b.weight[k] - a.weight[k]; w > 0 {
					s := b.sum[k] - a.sum[k]
					c += max(0, b.square[k]-a.square[k]-s*s/w)
				}
			}
			if b.length-a.length < shortestPhase-shortOfPhase && !(i == 0 && j == n) {
				c = math.Inf(1)
			}
			cost[j*(j-1)/2+i] = c
		}
	}
	return cost
}

// shortOfPhase is by how many samples the shortest phase may be shorter: samples are never taken at the exact time.
const shortOfPhase = 0.2

// phaseOf returns the phase that consists of s. Demand of kinds that are unknown in all of it is 0.
func phaseOf(s []Stretch, unit time.Duration) (p cluster.Phase) {
	for i := range s {
		p.Duration += s[i].Length
	}
	for k := range resource.NumKinds {
		p.Demand[k] = demand(s, k, unit)
	}
	return p
}

// demand returns the demand of kind k in s.
func demand(s []Stretch, k resource.Kind, unit time.Duration) resource.Amount {
	type part struct {
		amount resource.Amount
		length time.Duration
	}
	var known []part
	total := time.Duration(0)
	for _, exact := range []bool{true, false} {
		for i := range s {
			if !s[i].Unknown.Has(k) && (!exact || k == resource.Memory || ofPhase(s, i, unit)) {
				known = append(known, part{s[i].Usage[k], s[i].Length})
				total += s[i].Length
			}
		}
		if len(known) > 0 {
			break
		}
	}
	if len(known) == 0 {
		return 0
	}
	slices.SortFunc(known, func(a, b part) int { return cmp.Compare(a.amount, b.amount) })
	at := time.Duration(0)
	for _, p := range known {
		if at += p.length; k != resource.Memory && at.Seconds() >= demandQuantile*total.Seconds()*(1-1e-9) {
			return p.amount
		}
	}
	return known[len(known)-1].amount
}

// ofPhase reports whether the rates of stretch i of a phase are the phase's own: it is not so short that its rate says
// nothing, and no first or last sample, which may have a part of the phase beside it.
func ofPhase(s []Stretch, i int, unit time.Duration) bool {
	const enough = 4 // samples, of which two are left
	mixed := len(s) >= enough && (i == 0 || i == len(s)-1) && s[i].Length < 2*unit
	return !mixed && s[i].Length*2 >= unit
}

// fillIn gives a phase in which a kind was not measured the demand of the phase before, or else of the next one.
func fillIn(s []Stretch, phases []cluster.Phase, never resource.Kinds) (notes []string) {
	at := 0
	missing := make([]resource.Kinds, len(phases))
	for i := range phases {
		missing[i] = ^resource.Kinds(0) &^ never
		for end := time.Duration(0); at < len(s) && end < phases[i].Duration; at++ {
			missing[i] &= s[at].Unknown
			end += s[at].Length
		}
	}
	for k := range resource.NumKinds {
		for i := range phases {
			if !missing[i].Has(k) {
				continue
			}
			from := i - 1
			for j := i + 1; from < 0 && j < len(phases); j++ {
				if !missing[j].Has(k) {
					from = j
				}
			}
			if from >= 0 {
				phases[i].Demand[k] = phases[from].Demand[k]
				notes = append(notes, fmt.Sprintf("phase %d %v: not measured, taken from phase %d", i+1, k, from+1))
			}
		}
	}
	return notes
}
