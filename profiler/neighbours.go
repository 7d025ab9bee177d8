package profiler

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// BusyTime returns how long all CPUs of this machine have been at work since it started, all of them together, time that a
// hypervisor took from it included. ok is false if the kernel does not tell.
func BusyTime() (t time.Duration, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	return busyOf(string(text))
}

// busyOf reads the first line of /proc/stat.
func busyOf(stat string) (time.Duration, bool) {
	const tick = 10 * time.Millisecond // in this file on every machine
	var user, nice, system, idle, waiting, interrupts, soft, stolen int64
	line, _, _ := strings.Cut(stat, "\n")
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &waiting, &interrupts, &soft, &stolen); err != nil {
		return 0, false
	}
	return time.Duration(user+nice+system+interrupts+soft+stolen) * tick, true
}

// others returns how many millicores were at work beside a run, on average: busy less what the run used itself.
func others(busy, own, took time.Duration) resource.Amount {
	if took <= 0 {
		return 0
	}
	return max(0, resource.Amount(math.Round(1000*float64(busy-own)/float64(took))))
}

// aside is by how many millicores more others may be at work beside a run than beside the quietest of the same size. The
// kernel's own work for a program that spills is among the others, which is why other sizes are no measure.
const aside = 250

// undisturbed returns the runs of one size that count, and whether they are quiet. Those beside which others were much
// more at work than beside the quietest are set aside, whatever time they took, if that leaves at least two; if not, all
// count, and they are not quiet.
func undisturbed(runs []Measurement) (counting []Measurement, quiet bool) {
	quietest := resource.Amount(math.MaxInt64)
	for _, m := range runs {
		if m.OthersKnown {
			quietest = min(quietest, m.Others)
		}
	}
	kept := slices.DeleteFunc(slices.Clone(runs), func(m Measurement) bool { return m.OthersKnown && m.Others-aside > quietest })
	if len(kept) < len(runs) && len(kept) < 2 {
		return runs, false
	}
	return kept, true
}
