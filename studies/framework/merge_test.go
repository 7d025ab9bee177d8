package framework

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/resource"
)

const mb = resource.MB

// rewrittenSlowly sorts before every merge and counts merges until one is enough.
func rewrittenSlowly(files []resource.Amount, factor int) (total resource.Amount) {
	take := factor
	if mod := (len(files) - 1) % (factor - 1); mod != 0 {
		take = mod + 1
	}
	for len(files) > factor {
		slices.Sort(files)
		var merged resource.Amount
		for _, f := range files[:take] {
			merged += f
		}
		files = append(files[take:], merged)
		total += merged
		take = factor
	}
	return total
}

func TestRewritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.SliceOfN(rapid.Int64Range(1, 100), 1, 60).Draw(t, "files")
		factor := rapid.IntRange(2, 12).Draw(t, "factor")
		var a sizes
		var b []resource.Amount
		var all resource.Amount
		for _, f := range files {
			a.push(resource.Amount(f))
			b, all = append(b, resource.Amount(f)), all+resource.Amount(f)
		}
		got, want := rewritten(a, factor), rewrittenSlowly(b, factor)
		if got != want {
			t.Fatalf("%v, %d at a time: %d bytes are written again, want %d", files, factor, got, want)
		}
		if len(files) <= factor && got != 0 {
			t.Fatalf("%d files fit into one merge, but %d bytes are written again", len(files), got)
		}
	})
}
