package hungry

import "testing"

func TestRun(t *testing.T) {
	for _, test := range []struct {
		args []string
		want int
	}{
		{[]string{"grow", "8", "20"}, 0},
		{[]string{"swell", "8", "20"}, 0},
		{[]string{"sort", "24", "0"}, 0}, // three runs: one is merged alone
		{[]string{"sort", "8", "0"}, 0},
		{[]string{"grow", "1", "20"}, workUsage},
		{[]string{"grow", "8"}, workUsage},
		{[]string{"shout", "8", "1"}, workUsage},
	} {
		if got := Run(test.args); got != test.want {
			t.Errorf("%v: %d, want %d", test.args, got, test.want)
		}
	}
}

// TestRunSeesDamage: a change from outside is detected.
func TestRunSeesDamage(t *testing.T) {
	var s set
	if err := s.grow(); err != nil {
		t.Fatal(err)
	}
	if !s.right(0) {
		t.Fatal("what was just written is wrong")
	}
	s.chunks[0][chunkBytes-1]++
	if s.right(0) {
		t.Error("a changed byte was not seen")
	}
	if err := s.shrink(); err != nil || len(s.chunks) > 0 {
		t.Errorf("given back: %v, %d chunks left", err, len(s.chunks))
	}
}
