package main

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/profile"
	"github.com/bellows-rm/bellows/profiler"
	"github.com/bellows-rm/bellows/resource"
)

// profileReport is what `bellows profile --json` prints, and what is stored as evidence.
type profileReport struct {
	Name    string              `json:"name"`
	Args    []string            `json:"args"`
	Model   profile.Model       `json:"model"`
	Fit     profile.Report      `json:"fit"`
	Tried   *profile.Evaluation `json:"held_out,omitempty"`
	Reached *bool               `json:"goal_reached,omitempty"` // most held-out sizes within 5 %, all within 10 %, or within their spread
	Sizes   []sizeReport        `json:"sizes"`
	Failed  []failureReport     `json:"failed,omitempty"`
}

type sizeReport struct {
	Memory    int64     `json:"memory_bytes"`
	HeldOut   bool      `json:"held_out"`
	Duration  float64   `json:"duration_s"`
	Repeats   []float64 `json:"repeats_s"`
	Spread    *float64  `json:"spread,omitempty"` // slowest less fastest repeat, as a share of duration_s
	Spilled   int64     `json:"spilled_bytes"`
	Peak      int64     `json:"peak_memory_bytes,omitempty"`
	Predicted float64   `json:"predicted_s"`
	// Errors as shares of duration_s; those of the trivial models at held-out sizes only.
	Model    float64  `json:"model_error"`
	Constant *float64 `json:"constant_error,omitempty"`
	Linear   *float64 `json:"linear_error,omitempty"`
}

type failureReport struct {
	Memory int64  `json:"memory_bytes"`
	Why    string `json:"why"`
}

// learn fits a model to what was measured and tries it on what was held out.
func learn(name string, args []string, plan *profiler.Plan, res *profiler.Result, program profile.Program) (*profileReport, error) {
	if len(res.Fitted) < 2 {
		return nil, fmt.Errorf("the program works at %d of %d sizes, too few to learn from; at %s: %s", len(res.Fitted), len(plan.Fitted),
			resource.FormatMemory(res.Failed[0].Memory), res.Failed[0].Why)
	}
	r := &profileReport{Name: name, Args: args}
	var err error
	if r.Model, r.Fit, err = profile.Fit(res.Fitted, program); err != nil {
		return nil, fmt.Errorf("fit a model: %w", err)
	}
	if len(res.HeldOut) > 0 {
		tried, err := profile.Evaluate(r.Model, res.Fitted, res.HeldOut)
		if err != nil {
			return nil, fmt.Errorf("try the model: %w", err)
		}
		reached := tried.Reached()
		r.Tried, r.Reached = &tried, &reached
	}
	r.list(res)
	return r, nil
}

// list fills in a row per size, in ascending order.
func (r *profileReport) list(res *profiler.Result) {
	for _, f := range res.Failed {
		r.Failed = append(r.Failed, failureReport{int64(f.Memory), f.Why})
	}
	fitted, held := res.Fitted, res.HeldOut
	for len(fitted)+len(held) > 0 {
		if len(held) == 0 || (len(fitted) > 0 && fitted[0].Memory < held[0].Memory) {
			r.Sizes = append(r.Sizes, r.row(fitted[0], false, res))
			fitted = fitted[1:]
			continue
		}
		r.Sizes = append(r.Sizes, r.row(held[0], true, res))
		held = held[1:]
	}
}

func (r *profileReport) row(s profile.Sample, heldOut bool, res *profiler.Result) sizeReport {
	predicted := r.Model.Duration(s.Memory)
	row := sizeReport{Memory: int64(s.Memory), HeldOut: heldOut, Duration: s.Duration.Seconds(), Spilled: int64(s.Spilled),
		Peak: int64(res.Peaks[s.Memory]), Predicted: predicted.Seconds(), Model: float64(predicted-s.Duration) / float64(s.Duration)}
	for _, d := range s.Repeats {
		row.Repeats = append(row.Repeats, d.Seconds())
	}
	if spread, ok := s.Spread(); ok {
		row.Spread = &spread
	}
	if heldOut {
		for i := range r.Tried.Misses {
			if m := &r.Tried.Misses[i]; m.Memory == s.Memory {
				row.Constant, row.Linear = &m.Constant, &m.Linear
			}
		}
	}
	return row
}

// print prints the sizes, the model and how good it is.
func (r *profileReport) print(w io.Writer) error {
	t := newTable(">MEMORY", ">TIME", ">SPREAD", ">SPILLED", "", ">MODEL", ">ERROR", ">CONSTANT", ">LINEAR")
	for _, f := range r.Failed {
		t.add(resource.FormatMemory(resource.Amount(f.Memory)), "fails", "", "", "", "", "", "", "")
	}
	for _, s := range r.Sizes {
		mark := ""
		if s.HeldOut {
			mark = "held out"
		}
		t.add(resource.FormatMemory(resource.Amount(s.Memory)), fmt.Sprintf("%.2fs", s.Duration), shareText(s.Spread, false),
			memoryOrDash(s.Spilled/1000000*1000000), mark, fmt.Sprintf("%.2fs", s.Predicted), shareText(&s.Model, true), shareText(s.Constant, true), shareText(s.Linear, true))
	}
	fmt.Fprintln(w)
	if err := t.write(w); err != nil {
		return err
	}
	for _, f := range r.Failed {
		fmt.Fprintf(w, "%s\n", fold(fmt.Sprintf("at %s: %s", resource.FormatMemory(resource.Amount(f.Memory)), f.Why), width-2, "  "))
	}
	say := func(text string) { fmt.Fprintln(w, fold(text, width-2, "  ")) }
	fmt.Fprintln(w)
	m := &r.Model
	e := m.Elasticity()
	say(fmt.Sprintf("ideal memory %s, %v there, at most %.2f times as long with less, down to %s", resource.FormatMemory(m.IdealMemory),
		m.IdealDuration.Round(10*time.Millisecond), e.Worst(), resource.FormatMemory(m.MinMemory)))
	say("model: " + r.Fit.Explain())
	if r.Tried != nil {
		verdict := "reached"
		if !*r.Reached {
			verdict = "missed"
		}
		say(fmt.Sprintf("mean error at held-out sizes: model %.1f%%, constant %.1f%%, linear %.1f%%; the goal (most within 5%%, all within 10%%, or within the spread of repeats) is %s",
			100*r.Tried.ModelMean, 100*r.Tried.ConstantMean, 100*r.Tried.LinearMean, verdict))
	}
	return nil
}

// shareText prints a share in percent with one decimal; signed if it can be of either sign, "-" if it is not known.
func shareText(share *float64, signed bool) string {
	switch {
	case share == nil:
		return "-"
	case signed:
		return fmt.Sprintf("%+.1f%%", 100**share)
	}
	return fmt.Sprintf("%.1f%%", 100**share)
}

// userName returns the name of whoever runs this, or their number.
func userName() string {
	id := strconv.Itoa(os.Getuid())
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
