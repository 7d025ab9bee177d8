package resource

import (
	"math/rand"
	"testing"
)

func TestVectorArithmetic(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewSource(seed))
	draw := func() (v Vector) {
		for k := range v {
			v[k] = Amount(r.Intn(7) - 3)
		}
		return v
	}
	for range 2000 {
		v, w := draw(), draw()
		sum, diff, lo, hi, thrice := v.Add(w), v.Sub(w), v.Min(w), v.Max(w), v.Scale(3)
		fits := true
		for k := range v {
			fits = fits && v[k] <= w[k]
			if sum[k] != v[k]+w[k] || diff[k] != v[k]-w[k] || lo[k] != min(v[k], w[k]) || hi[k] != max(v[k], w[k]) ||
				thrice[k] != 3*v[k] {
				t.Fatalf("seed %d: component %v of %v and %v is wrong", seed, Kind(k), v, w)
			}
		}
		if v.FitsIn(w) != fits || !lo.FitsIn(v) || !v.FitsIn(hi) {
			t.Fatalf("seed %d: FitsIn of %v and %v", seed, v, w)
		}
		if k, negative := v.Negative(); negative != !(Vector{}).FitsIn(v) || (negative && v[k] >= 0) {
			t.Fatalf("seed %d: Negative of %v is %v, %v", seed, v, k, negative)
		}
		if sum.Sub(w) != v || !v.Sub(v).IsZero() {
			t.Fatalf("seed %d: Sub does not undo Add for %v and %v", seed, v, w)
		}
	}
}

// Neither of two Vectors need fit in the other: they are only partly ordered.
func TestFitsInIsPartial(t *testing.T) {
	a, b := Of(1*Core, 4*GB), Of(8*Core, 2*GB)
	if a.FitsIn(b) || b.FitsIn(a) {
		t.Errorf("%v and %v must not be comparable", a, b)
	}
	if got, want := a.With(CPU, 8*Core), Of(8*Core, 4*GB); got != want || !b.FitsIn(got) {
		t.Errorf("With: got %v, want %v", got, want)
	}
}

// Nothing fits in NoRoom, and everything else has more room.
func TestNoRoom(t *testing.T) {
	if (Vector{}).FitsIn(NoRoom()) || NoRoom().Max(Vector{}) != (Vector{}) {
		t.Errorf("NoRoom is %v", NoRoom())
	}
}
