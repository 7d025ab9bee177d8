package simulate

import (
	"fmt"
	"io"

	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/sim"
)

// forecastsJSON says how good the forecasts were that earlier runs gave. An error is nil if there was nothing to
// compare.
type forecastsJSON struct {
	Stages       int      `json:"stages" doc:"stages that earlier runs had [forecast](../forecasts.md#in-the-simulator); with several seeds, of all runs together"`
	DemandError  *float64 `json:"demand_error,omitempty" doc:"mean error of forecast demand, a share; omitted if there is none"`
	Timed        int      `json:"timed_stages" doc:"those among the stages whose run time was forecast, too, because it is not stated"`
	RunTimeError *float64 `json:"run_time_error,omitempty" doc:"mean error of these run times, a share; omitted if there is none"`
}

func forecastsOf(f sim.Forecasts) *forecastsJSON {
	out := &forecastsJSON{Stages: f.Stages, Timed: f.Timed}
	if f.Stages > 0 {
		out.DemandError = &f.DemandError
	}
	if f.Timed > 0 {
		out.RunTimeError = &f.RunTimeError
	}
	return out
}

// printForecasts prints a line for each policy, if jobs teach.
func (s *Study) printForecasts(w io.Writer) (err error) {
	if !s.options.history {
		return nil
	}
	for i, c := range s.Contenders {
		f := &s.forecasts[i]
		text := "no stage was forecast, because no application had run before"
		if f.Stages > 0 {
			text = fmt.Sprintf("%s forecast from earlier runs; demand was wrong by %s on average",
				terminal.Count(f.Stages, "stage"), percentText(f.DemandError))
		}
		if f.Timed > 0 {
			text += fmt.Sprintf(", and the run time of %d of them by %s", f.Timed, percentText(f.RunTimeError))
		}
		if _, err = fmt.Fprintln(w, terminal.Fold(c.Label+": "+text, terminal.Width, "  ")); err != nil {
			return err
		}
	}
	return nil
}
