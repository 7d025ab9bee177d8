package demo

import (
	"fmt"
	"io"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
)

// Write prints the result of the demonstration, for people.
func Write(w io.Writer, r *Result) error {
	for i := range r.Parts {
		if err := writePart(w, &r.Parts[i]); err != nil {
			return err
		}
	}
	return nil
}

func writePart(w io.Writer, p *Part) error {
	say := func(format string, operands ...any) {
		fmt.Fprintln(w, terminal.Fold(fmt.Sprintf(format, operands...), terminal.Width-2, "  "))
	}
	fmt.Fprintln(w)
	if p.LeftOut != "" {
		say("The part %s is left out: %s.", p.Name, p.LeftOut)
		return nil
	}
	say("%s. They share %s and %s cores.", p.About, resource.FormatMemory(p.Node[resource.Memory]),
		resource.FormatCPU(p.Node[resource.CPU]))
	fmt.Fprintln(w)
	t := terminal.NewTable("MEMORY IN", ">RUNTIME", ">MAKESPAN", ">AT ONCE", ">USED", ">IN SWAP", ">KILLED", ">RIGHT")
	for _, run := range []*Run{&p.Fixed, &p.Shared} {
		t.Add(run.About, fmt.Sprintf("%.1fs", run.JobRuntime.Seconds()), fmt.Sprintf("%.1fs", run.Makespan.Seconds()),
			fmt.Sprintf("%.2f", run.AtOnce), fmt.Sprintf("%.0f%%", 100*float64(run.Used)/float64(p.Node[resource.Memory])),
			terminal.MemoryOrDash(run.Swapped/resource.MiB*resource.MiB),
			fmt.Sprint(run.Killed), fmt.Sprintf("%d of %d", run.Right, run.Right+len(run.Wrong)))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	say("RUNTIME is the mean time of a job from submission to end, AT ONCE the mean number of running programs, " +
		"RIGHT the number of correct results.")
	fmt.Fprintln(w)
	say("%s", verdict(p))
	if p.Shared.Why != "" {
		say("Why, in the words of the daemon: %s.", p.Shared.Why)
	}
	if others := max(othersOf(&p.Fixed), othersOf(&p.Shared)); others > disturbing {
		say("Other work on this machine kept up to %.1f of its cores busy meanwhile: more programs at once gain less "+
			"than on a quiet machine.", others)
	}
	for _, run := range []*Run{&p.Fixed, &p.Shared} {
		for _, wrong := range run.Wrong {
			say("Wrong, with %s: %s.", run.About, wrong)
		}
	}
	return nil
}

// disturbing is the number of cores busy with other work from which the report mentions it.
const disturbing = 0.2

func othersOf(r *Run) float64 {
	if r.Others == nil {
		return 0
	}
	return *r.Others
}

// verdict says which run was faster, by how much, and how it used the memory.
func verdict(p *Part) string {
	fixed, shared := &p.Fixed, &p.Shared
	return fmt.Sprintf("With %s, jobs were %s on average as with %s (%.1f s instead of %.1f s), and the last of "+
		"them %s: %.2f programs "+
		"ran at once instead of %.2f.",
		shared.About, speed(shared.JobRuntime, fixed.JobRuntime), fixed.About, shared.JobRuntime.Seconds(),
		fixed.JobRuntime.Seconds(),
		speed(shared.Makespan, fixed.Makespan), shared.AtOnce, fixed.AtOnce)
}

// speed compares the time of a run with that of another run.
func speed(took, other time.Duration) string {
	if took > other {
		return fmt.Sprintf("%.2f times as slow", took.Seconds()/other.Seconds())
	}
	return fmt.Sprintf("%.2f times as fast", other.Seconds()/took.Seconds())
}
