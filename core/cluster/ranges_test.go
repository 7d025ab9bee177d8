package cluster

import "testing"

func TestJobRanges(t *testing.T) {
	for want, ids := range map[string][]JobID{"": nil, "7": {7}, "1-3, 7, 9-10": {1, 2, 3, 7, 9, 10}} {
		if got := JobRanges(ids); got != want {
			t.Errorf("%v: %q, want %q", ids, got, want)
		}
	}
}
