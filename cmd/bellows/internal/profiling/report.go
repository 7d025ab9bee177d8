package profiling

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/node/profiler"
)

// profileReport is the output of `bellows profile --json`, and is stored as evidence with the profile.
type profileReport struct {
	Name     string              `json:"name" doc:"name of the stored profile"`
	Args     []string            `json:"args" doc:"the measured command"`
	Model    profile.Model       `json:"model" doc:"the fitted model"`
	Fit      profile.Report      `json:"fit" doc:"how its kind was chosen: errors of each kind with one size left out at a time"`
	Tried    *profile.Evaluation `json:"held_out,omitempty" doc:"errors at the sizes that it was not fitted to; omitted if there are none"`
	Reached  *bool               `json:"goal_reached,omitempty" doc:"whether most held-out sizes are within 5 % and all within 10 %, or within their noise; omitted if repeats are too few or differ too much to tell"`
	Refitted bool                `json:"refitted,omitempty" doc:"a held-out size contradicted the first model: model is fitted to all sizes, and held_out has the errors of the first model"`
	Sizes    []sizeReport        `json:"sizes" doc:"by memory, ascending"`
	Failed   []failureReport     `json:"failed,omitempty" doc:"sizes at which a run failed; the model leaves them out"`
}

type sizeReport struct {
	Memory    int64     `json:"memory_bytes" doc:"the limit on memory and page cache"`
	HeldOut   bool      `json:"held_out" doc:"the model was fitted without this size"`
	Duration  float64   `json:"duration_s" doc:"the fastest run that counts"`
	Repeats   []float64 `json:"repeats_s" doc:"all runs that count"`
	SetAside  int       `json:"set_aside,omitempty" doc:"runs that do not count: other work used 0.25 cores more than during the quietest run of the size"`
	Noise     *float64  `json:"noise,omitempty" doc:"(median − fastest run) / fastest run; if it is above 0.15 at any size, no profile is stored"`
	CPU       float64   `json:"cpu_s" doc:"CPU time of the program, the median of the runs that count"`
	Others    float64   `json:"others_cores" doc:"the most cores that other work on the machine used during one of these runs, time taken by a hypervisor included"`
	Spilled   int64     `json:"spilled_bytes" doc:"bytes written − bytes written at the size that wrote least"`
	Peak      int64     `json:"peak_memory_bytes,omitempty" doc:"peak memory use, page cache included"`
	Predicted float64   `json:"predicted_s" doc:"prediction of the model; at a held-out size of the one that was fitted without it"`
	Model     float64   `json:"model_error" doc:"(predicted_s − duration_s) / duration_s"`
	Constant  *float64  `json:"constant_error,omitempty" doc:"the same for the mean of the fitted sizes; only at held-out sizes"`
	Linear    *float64  `json:"linear_error,omitempty" doc:"the same for the line between the smallest and the largest size; only at held-out sizes"`
}

type failureReport struct {
	Memory int64  `json:"memory_bytes" doc:"the limit on memory and page cache"`
	Why    string `json:"why" doc:"what went wrong"`
}

// learn fits a model to the measurements and tests it on the held-out sizes. If a held-out size contradicts the model,
// a model fitted to all sizes replaces it.
func learn(name string, args []string, plan *profiler.Plan, res *profiler.Result,
	program profile.Program) (*profileReport, error) {
	if len(res.Fitted) < 2 {
		return nil, tooFew(plan, res)
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
		r.Tried = &tried
		if reached := tried.Reached(); tried.Judged() {
			r.Reached = &reached
		}
		r.Refitted = slices.ContainsFunc(res.HeldOut, func(s profile.Sample) bool {
			return s.Contradicts(r.Model.Duration(s.Memory))
		})
	}
	if r.Refitted {
		if r.Model, r.Fit, err = profile.Fit(slices.Concat(res.Fitted, res.HeldOut), program); err != nil {
			return nil, fmt.Errorf("fit a model to all sizes: %w", err)
		}
	}
	r.list(res)
	return r, nil
}

// tooFew returns an error: the program works at too few sizes to fit a model. It says what to do.
func tooFew(plan *profiler.Plan, res *profiler.Result) error {
	var failed []string
	for _, f := range res.Failed {
		failed = append(failed, resource.FormatMemory(f.Memory))
	}
	largest := res.Failed[len(res.Failed)-1]
	advice := "give it more with --max-memory"
	if !plan.Search {
		advice = "give larger --sizes, or --max-memory instead, and the smallest that works is searched"
	}
	return fmt.Errorf("the program works at %d of %d sizes, and a model needs two; it fails with %s (with %s: %s): %s",
		len(res.Fitted), len(plan.Fitted), strings.Join(failed, ", "), resource.FormatMemory(largest.Memory), largest.Why,
		advice)
}

// refusal returns an error if the repeats are too noisy to fit a model, otherwise nil.
func (r *profileReport) refusal() error {
	var worst *sizeReport
	for i := range r.Sizes {
		if s := &r.Sizes[i]; s.Noise != nil && *s.Noise > profile.MostNoise && (worst == nil || *s.Noise > *worst.Noise) {
			worst = s
		}
	}
	if worst == nil {
		return nil
	}
	return fmt.Errorf("no profile is stored, because its repeats differ too much: with %s the middle one of %d is "+
		"%.0f%% slower than the fastest "+
		"(%.2fs to %.2fs; CPU time %.2fs; others kept up to %.1f cores busy), and %.0f%% is the most: measure again "+
		"while the machine is quieter, or give an input that runs longer",
		resource.FormatMemory(resource.Amount(worst.Memory)), len(worst.Repeats), 100**worst.Noise,
		slices.Min(worst.Repeats), slices.Max(worst.Repeats),
		worst.CPU, worst.Others, 100*profile.MostNoise)
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
	predicted, beside := r.Model.Duration(s.Memory), res.Beside[s.Memory]
	row := sizeReport{Memory: int64(s.Memory), HeldOut: heldOut, Duration: s.Duration.Seconds(), Spilled: int64(s.Spilled),
		SetAside: beside.SetAside, CPU: beside.CPU.Seconds(), Others: float64(beside.Others) / 1000, Peak: int64(beside.Peak),
		Predicted: predicted.Seconds(), Model: float64(predicted-s.Duration) / float64(s.Duration)}
	for _, d := range s.Repeats {
		row.Repeats = append(row.Repeats, d.Seconds())
	}
	if noise, ok := s.Noise(); ok {
		row.Noise = &noise
	}
	if heldOut {
		for i := range r.Tried.Misses {
			if m := &r.Tried.Misses[i]; m.Memory == s.Memory {
				row.Predicted, row.Model = m.Predicted.Seconds(), m.Model
				row.Constant, row.Linear = &m.Constant, &m.Linear
			}
		}
	}
	return row
}

// print prints the sizes, the model and its errors.
func (r *profileReport) print(w io.Writer) error {
	t := terminal.NewTable(">MEMORY", ">TIME", ">NOISE", ">CPU", ">OTHERS", ">SPILLED", "", ">MODEL", ">ERROR")
	for _, f := range r.Failed {
		t.Add(resource.FormatMemory(resource.Amount(f.Memory)), "fails", "", "", "", "", "", "", "")
	}
	for _, s := range r.Sizes {
		mark := ""
		if s.HeldOut {
			mark = "held out"
		}
		t.Add(resource.FormatMemory(resource.Amount(s.Memory)), fmt.Sprintf("%.2fs", s.Duration), shareText(s.Noise, false),
			fmt.Sprintf("%.2fs", s.CPU), fmt.Sprintf("%.1f", s.Others), terminal.MemoryOrDash(s.Spilled/1000000*1000000), mark,
			fmt.Sprintf("%.2fs", s.Predicted), shareText(&s.Model, true))
	}
	fmt.Fprintln(w)
	if err := t.Write(w); err != nil {
		return err
	}
	say := func(text string) { fmt.Fprintln(w, terminal.Fold(text, terminal.Width-2, "  ")) }
	for i, f := range r.Failed {
		if i == len(r.Failed)-1 || r.Failed[i+1].Why != f.Why { // most sizes fail for the same reason
			say(fmt.Sprintf("with %s: %s", resource.FormatMemory(resource.Amount(f.Memory)), f.Why))
		}
	}
	fmt.Fprintln(w)
	m := &r.Model
	e := m.Elasticity()
	say(fmt.Sprintf("ideal memory %s, %v there, at most %.2f times as long with less, down to %s",
		resource.FormatMemory(m.IdealMemory), m.IdealDuration.Round(10*time.Millisecond), e.Worst(),
		resource.FormatMemory(m.MinMemory)))
	say("model: " + r.Fit.Explain())
	if n := r.setAside(); n > 0 {
		say(terminal.Count(n, "run") +
			" set aside: other work kept the machine busier than beside other runs with the same size")
	}
	if r.Tried != nil {
		say(fmt.Sprintf("mean error at held-out sizes: model %.1f%%, constant %.1f%%, linear %.1f%%; the goal (most "+
			"within 5%%, all within 10%%, or within the noise) is %s", 100*r.Tried.ModelMean, 100*r.Tried.ConstantMean,
			100*r.Tried.LinearMean, r.verdict()))
	}
	if r.Refitted {
		say(fmt.Sprintf("at a held-out size that model was wrong by more than repeats differ: what is kept is fitted "+
			"to all %d sizes, and tried on none", len(r.Sizes)))
	}
	return nil
}

// verdict says whether the goal is reached, if that is known.
func (r *profileReport) verdict() string {
	switch {
	case r.Reached != nil && *r.Reached:
		return "reached"
	case r.Reached != nil:
		return "missed"
	case r.refusal() != nil:
		return "not judged: repeats differ too much"
	}
	return "not judged: one run of a size does not tell how much repeats differ"
}

// setAside returns how many runs do not count because other work disturbed them.
func (r *profileReport) setAside() int {
	n := 0
	for i := range r.Sizes {
		n += r.Sizes[i].SetAside
	}
	return n
}

// shareText prints a share in percent with one decimal, with its sign if signed is set, "-" if it is unknown.
func shareText(share *float64, signed bool) string {
	switch {
	case share == nil:
		return "-"
	case signed:
		return fmt.Sprintf("%+.1f%%", 100**share)
	}
	return fmt.Sprintf("%.1f%%", 100**share)
}
