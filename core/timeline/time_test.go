package timeline

import (
	"math"
	"testing"
	"time"
)

func TestTimeArithmetic(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want Time
	}{
		{"add", Time(5).Add(3), 8},
		{"add negative", Time(5).Add(-8), -3},
		{"add to Never", Never.Add(-time.Hour), Never},
		{"add beyond Never", (Never - 5).Add(9), Never},
		{"add up to Never", (Never - 5).Add(5), Never},
		{"add beyond Earliest", (Earliest + 5).Add(-9), Earliest},
		{"add the smallest", Time(-1).Add(math.MinInt64), Earliest},
		{"add the smallest to 0", Time(0).Add(math.MinInt64), Earliest},
		{"seconds", Seconds(1.5), 1_500_000_000},
		{"seconds rounded", Seconds(0.1 + 0.2), 300_000_000},
		{"negative seconds", Seconds(-2), -2_000_000_000},
		{"too many seconds", Seconds(1e300), Never},
		{"infinite seconds", Seconds(math.Inf(1)), Never},
		{"just too many seconds", Seconds(0x1p63 / 1e9), Never},
		{"too few seconds", Seconds(-1e300), Earliest},
		{"no seconds", Seconds(math.NaN()), Never},
		{"milliseconds", Milliseconds(-7), -7_000_000},
		{"too many milliseconds", Milliseconds(math.MaxInt64), Never},
		{"too few milliseconds", Milliseconds(math.MinInt64), Earliest},
		{"most milliseconds", Milliseconds(math.MaxInt64 / 1_000_000), math.MaxInt64 / 1_000_000 * 1_000_000},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, c.got, c.want)
		}
	}
	for _, c := range []struct {
		t, u Time
		want time.Duration
	}{
		{8, 5, 3},
		{5, 8, -3},
		{Never, Earliest, math.MaxInt64},
		{Never, -1, math.MaxInt64},
		{Earliest, Never, math.MinInt64},
		{Earliest, 1, math.MinInt64},
		{Earliest, 0, math.MinInt64},
		{0, Earliest, math.MaxInt64},
	} {
		if got := c.t.Sub(c.u); got != c.want {
			t.Errorf("%d - %d: got %d, want %d", c.t, c.u, got, c.want)
		}
	}
}

func TestTimeText(t *testing.T) {
	for x, want := range map[Time]string{Never: "never", 0: "0s", Seconds(90): "1m30s", -1: "-1ns"} {
		if got := x.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := Seconds(90).Seconds(); got != 90 {
		t.Errorf("90 s are %v s", got)
	}
}
