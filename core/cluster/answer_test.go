package cluster

import "testing"

func TestAnswerWords(t *testing.T) {
	for _, c := range []struct {
		a    Answer
		want string
	}{
		{Answer{Value: 12.5, Bound: 12.5, Proved: true, States: 3210}, "value 12.5, proved optimal, 3,210 states"},
		{Answer{Value: 14, Bound: 12.5, States: 400_000}, "value 14, bound 12.5, gap 10.8 %, 400,000 states"},
		{Answer{Value: 1, Bound: 0.99999, States: 1234567}, "value 1, bound 1, gap 0.1 %, 1,234,567 states"},
		{Answer{Value: 0.25, States: 999}, "value 0.25, bound 0, gap 100 %, 999 states"},
		{Answer{Failed: "no time"}, "not solved: no time"},
	} {
		if got := c.a.Words(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.a, got, c.want)
		}
	}
}
