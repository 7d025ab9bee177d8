package profiler

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// BusyTime returns the busy time of all CPUs of this machine since it started, summed up, with the time that a
// hypervisor took from it. ok is false if the kernel does not report it.
func BusyTime() (t time.Duration, ok bool) {
	busy, _, ok := cpuTimes()
	return busy, ok
}

// StolenTime returns the part of BusyTime that a hypervisor took from this machine.
func StolenTime() (t time.Duration, ok bool) {
	_, stolen, ok := cpuTimes()
	return stolen, ok
}

func cpuTimes() (busy, stolen time.Duration, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	return cpuTimesOf(string(text))
}

// cpuTimesOf reads the first line of /proc/stat.
func cpuTimesOf(stat string) (busy, stolen time.Duration, ok bool) {
	const tick = 10 * time.Millisecond // in this file on every machine
	var user, nice, system, idle, waiting, interrupts, soft, taken int64
	line, _, _ := strings.Cut(stat, "\n")
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &waiting, &interrupts,
		&soft, &taken); err != nil {
		return 0, 0, false
	}
	return time.Duration(user+nice+system+interrupts+soft+taken) * tick, time.Duration(taken) * tick, true
}

// others returns the mean CPU use of other programs during a run, in millicores: busy less the run's own use.
func others(busy, own, took time.Duration) resource.Amount {
	if took <= 0 {
		return 0
	}
	return max(0, resource.Amount(math.Round(1000*float64(busy-own)/float64(took))))
}

// aside is how many millicores more than during the quietest run of the same size other programs may use during a run
// that counts. They include the kernel's own work for a program that spills, so runs of other sizes cannot be compared.
const aside = 250

// undisturbed returns the runs of one size that count, and whether they are quiet. A run during which other programs
// used much more CPU than during the quietest run is set aside, whatever its run time, if at least two runs are left;
// otherwise all runs count, and they are not quiet.
func undisturbed(runs []Measurement) (counting []Measurement, quiet bool) {
	quietest := resource.Amount(math.MaxInt64)
	for _, m := range runs {
		if m.OthersKnown {
			quietest = min(quietest, m.Others)
		}
	}
	kept := slices.DeleteFunc(slices.Clone(runs), func(m Measurement) bool {
		return m.OthersKnown && m.Others-aside > quietest
	})
	if len(kept) < len(runs) && len(kept) < 2 {
		return runs, false
	}
	return kept, true
}
