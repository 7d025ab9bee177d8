package lab

import "testing"

// TestCheckOverwrite: a result of more runs, or of the paper's scale, is not replaced by a result of fewer runs.
func TestCheckOverwrite(t *testing.T) {
	e := Experiment{Name: "yarn-me/fig6a", Unit: "traces", Runs: 2, Full: 100}
	dir := t.TempDir()
	store := func(runs int, full bool) {
		r := Result{Summary: Summary{Version: summaryVersion, Experiment: e.Name, Runs: runs, Full: full, Claims: []Claim{},
			Tables: []Table{}}}
		if err := r.Save(dir, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.CheckOverwrite(dir, Settings{}); err != nil {
		t.Errorf("nothing is stored: %v", err)
	}
	for _, c := range []struct {
		stored     int
		storedFull bool
		made       Settings
		refused    bool
	}{
		{10, false, Settings{}, true},
		{10, false, Settings{Runs: 9}, true},
		{10, false, Settings{Runs: 10}, false},
		{10, false, Settings{Full: true}, false},
		{2, false, Settings{}, false},
		{2, true, Settings{Runs: 2}, true},
		{2, true, Settings{Runs: 2, Full: true}, false},
	} {
		store(c.stored, c.storedFull)
		if err := e.CheckOverwrite(dir, c.made); (err != nil) != c.refused {
			t.Errorf("%d stored (full %v), %+v: %v", c.stored, c.storedFull, c.made, err)
		}
	}
}
