package lab

import "testing"

// TestUnseen: a run with other workloads than those by which a default was chosen has the seed of none of them,
// whatever the seed of the experiment is.
func TestUnseen(t *testing.T) {
	const runs = 1000
	seen := map[uint64]bool{}
	for seed := range uint64(10) {
		l := &Lab{Settings: Settings{Seed: seed, Runs: runs}}
		for run := range runs {
			seen[l.RunSeed(run)] = true
		}
	}
	for seed := range uint64(10) {
		l := &Lab{Settings: Settings{Seed: seed, Runs: runs}}
		other := l.Unseen()
		if other.Runs != runs || l.Seed != seed {
			t.Errorf("seed %d: %d runs, and the lab has seed %d", seed, other.Runs, l.Seed)
		}
		for run := range runs {
			if seen[other.RunSeed(run)] {
				t.Fatalf("seed %d, run %d: is one that a default was chosen by", seed, run)
			}
		}
	}
}
