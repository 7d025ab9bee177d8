package jobs

import (
	"fmt"
	"io"
	"time"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/phases"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// expectations returns a clause each on application, deadline, input and forecasts of a job.
func expectations(j *api.Job) (all []string) {
	if j.App != "" {
		all = append(all, "app: "+appOf(j))
	}
	if j.DeadlineSeconds > 0 {
		all = append(all, fmt.Sprintf("deadline: should start within %s",
			terminal.Age(time.Duration(j.DeadlineSeconds*float64(time.Second)))))
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		name := ""
		if len(j.Stages) > 1 {
			name = fmt.Sprintf(" of stage %s", cluster.Printable(s.Name))
		}
		if s.Input > 0 {
			all = append(all, fmt.Sprintf("input%s: %s", name, resource.FormatMemory(s.Input)))
		}
		if s.Together {
			all = append(all, fmt.Sprintf("tasks%s: start together", name))
		}
		if len(s.Phases) > 0 {
			all = append(all, fmt.Sprintf("forecast%s: %s, %s", name, terminal.Count(len(s.Phases), "phase"),
				provenance(&s.Told)))
		}
	}
	return all
}

// appOf names the application of a job, and where the name comes from.
func appOf(j *api.Job) string {
	if j.AppDerived {
		return cluster.Printable(j.App) + " (derived from name and command)"
	}
	return cluster.Printable(j.App)
}

// provenance says where a forecast comes from.
func provenance(p *cluster.Provenance) string {
	if p.Model == "" {
		return "as stated"
	}
	text := fmt.Sprintf("model %s, from %s", cluster.Printable(p.Model), terminal.Count(p.Samples, "run"))
	if p.Error > 0 {
		text += fmt.Sprintf(", mean error %.0f %%", 100*p.Error)
	}
	return text
}

// printForecast prints the expected demand of a stage over time as a table, or why it is unknown.
func printForecast(w io.Writer, f *api.Forecast, several bool) error {
	head := "forecast"
	if several {
		head += " of stage " + cluster.Printable(f.Name)
	}
	if f.Told.Model != "" {
		head += ", " + provenance(&f.Told)
	}
	say := func(text string) {
		fmt.Fprintf(w, "  %s\n", terminal.Fold(cluster.Printable(text), terminal.Width-2, "  "))
	}
	fmt.Fprintf(w, "\n%s:\n", terminal.Fold(head, terminal.Width, "  "))
	if len(f.Phases) > 0 {
		if err := phases.Print(w, f.Phases, f.Unknown); err != nil {
			return err
		}
	} else if f.DurationSeconds > 0 {
		say(fmt.Sprintf("A task should run for %s.", terminal.Age(seconds(f.DurationSeconds))))
	}
	for _, n := range f.Notes {
		say(n)
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
