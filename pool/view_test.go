package pool

import (
	"regexp"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
)

// No reason speaks of jobs and nodes to the users of a pool.
func TestWordsOfPools(t *testing.T) {
	others := regexp.MustCompile(`\b(jobs?|nodes?|an? (executors|applications)|a (executor|application))\b`)
	n := 0
	for code := cluster.Fits; ; code++ {
		said := words(cluster.Reason{Code: code, A: 1, B: 2, C: 3})
		if said == "no reason recorded" {
			break
		}
		if n++; others.MatchString(said) {
			t.Errorf("reason %d: %q", code, said)
		}
	}
	if n < int(cluster.StageMoves) {
		t.Errorf("%d reasons have words", n)
	}
	for why, want := range map[cluster.Reason]string{
		cluster.BecauseAllAtWork(1, 2,
			4): "the application holds 1 of the 2 executors that it is entitled to: another application must give one " +
			"back first",
		cluster.BecauseBehindJob(7): "application 7 comes first",
		cluster.BecauseNoRoom(need): "no executor is free",
	} {
		if said := words(why); said != want {
			t.Errorf("%q, want %q", said, want)
		}
	}
}
