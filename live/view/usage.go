package view

import (
	"time"

	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/api"
)

// ratesOf makes Rates of a function that returns one rate.
func ratesOf(of func(usage.Kind) (int64, bool)) api.Rates {
	var r api.Rates
	for k, into := range map[usage.Kind]**int64{usage.CPU: &r.CPU, usage.Memory: &r.Memory, usage.Swap: &r.Swap,
		usage.Read: &r.Read, usage.Written: &r.Written, usage.Received: &r.Received, usage.Sent: &r.Sent} {
		if v, ok := of(k); ok {
			*into = &v
		}
	}
	return r
}

// SetUsage copies what was measured, in at most most spans.
func SetUsage(t *api.TaskUsage, u usage.Usage, most int) {
	t.MeasuredSeconds, t.GapSeconds, t.StillSeconds = u.Length().Seconds(), u.Gap().Seconds(), u.Suspended().Seconds()
	t.PressedSeconds, t.IdleSeconds = u.Pressed().Seconds(), u.Idle().Seconds()
	t.Mean, t.Peak = ratesOf(u.Mean), ratesOf(u.Peak)
	u = u.Thin(most)
	at := time.Duration(0)
	t.Spans = make([]api.UsageSpan, len(u.Spans))
	for i := range u.Spans {
		s := &u.Spans[i]
		t.Spans[i] = api.UsageSpan{FromSeconds: at.Seconds(), LengthSeconds: s.Length.Seconds(), Gap: s.Gap,
			StillSeconds: s.Suspended.Seconds(), PressedSeconds: s.Pressed.Seconds(), IdleSeconds: s.Idle.Seconds(),
			Bounded: s.Bounded, Rates: ratesOf(s.Rate)}
		at += s.Length
	}
}
