package share

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawClaims(t *rapid.T) (total int, claims []Claim) {
	claims = make([]Claim, rapid.IntRange(0, 6).Draw(t, "n"))
	for i := range claims {
		c := &claims[i]
		c.Weight = rapid.SampledFrom([]int64{1, 2, 3, 7, 1000, MaxWeight}).Draw(t, "weight")
		c.Demand = rapid.IntRange(0, 20).Draw(t, "demand")
		c.Min = rapid.SampledFrom([]int{0, 0, 0, 1, 5}).Draw(t, "min")
		c.Max = rapid.SampledFrom([]int{0, 0, 0, 1, 8}).Draw(t, "max")
		c.Held = rapid.IntRange(0, 20).Draw(t, "held")
	}
	return rapid.IntRange(0, 40).Draw(t, "total"), claims
}

// check checks a property of random claims. They are small, so that many are drawn also with -short: few of them let a
// fault through by chance.
func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	for range 20 {
		rapid.Check(t, property)
	}
}

// obvious returns what Divide grants before it rounds, from the definition: it tries every λ at which a party reaches
// a bound.
func obvious(total int, claims []Claim) []*big.Rat {
	low := func(c *Claim) int { return c.low() }
	high := func(c *Claim) int { return c.high() }
	lows := 0
	for i := range claims {
		lows += low(&claims[i])
	}
	if lows > total {
		high, low = low, func(*Claim) int { return 0 }
	}
	granted := func(lambda *big.Rat) (all []*big.Rat, sum *big.Rat) {
		sum = new(big.Rat)
		for i := range claims {
			c := &claims[i]
			x := new(big.Rat).Mul(lambda, big.NewRat(c.Weight, 1))
			if l := big.NewRat(int64(low(c)), 1); x.Cmp(l) < 0 {
				x = l
			}
			if h := big.NewRat(int64(high(c)), 1); x.Cmp(h) > 0 {
				x = h
			}
			all = append(all, x)
			sum.Add(sum, x)
		}
		return all, sum
	}
	lambdas := []*big.Rat{new(big.Rat)}
	for i := range claims {
		lambdas = append(lambdas, big.NewRat(int64(low(&claims[i])), claims[i].Weight),
			big.NewRat(int64(high(&claims[i])), claims[i].Weight))
	}
	slices.SortFunc(lambdas, (*big.Rat).Cmp)
	want := big.NewRat(int64(total), 1)
	for i, lambda := range lambdas {
		all, sum := granted(lambda)
		if sum.Cmp(want) < 0 {
			continue
		}
		if i > 0 { // Between two bounds the sum is linear in λ.
			before, less := granted(lambdas[i-1])
			if more := new(big.Rat).Sub(sum, less); more.Sign() > 0 {
				part := new(big.Rat).Quo(new(big.Rat).Sub(want, less), more)
				for i := range all {
					all[i] = new(big.Rat).Add(before[i], new(big.Rat).Mul(part, new(big.Rat).Sub(all[i], before[i])))
				}
			}
		}
		return all
	}
	all, _ := granted(lambdas[len(lambdas)-1])
	return all
}

func TestDivideIsFair(t *testing.T) {
	var f Fair
	check(t, func(t *rapid.T) {
		total, claims := drawClaims(t)
		granted := f.Divide(total, claims, make([]int, len(claims)))
		sum, most := 0, 0
		for i, want := range obvious(total, claims) {
			sum += granted[i]
			most += claims[i].high()
			if d := new(big.Rat).Sub(big.NewRat(int64(granted[i]), 1), want); d.Abs(d).Cmp(big.NewRat(1, 1)) >= 0 {
				t.Errorf("party %d of %+v is granted %d of %d, without rounding %v", i, claims, granted[i], total, want)
			}
		}
		if sum != min(total, most) {
			t.Errorf("%v of %d are granted to %+v", granted, total, claims)
		}
	})
}

// What is rounded up: first the share of whoever holds as many already, then the one with the greater rest, then the
// first.
func TestDivideRounds(t *testing.T) {
	var f Fair
	for _, c := range []struct {
		name   string
		total  int
		claims []Claim
		want   []int
	}{
		{"the first", 3, []Claim{{Weight: 1, Demand: 9}, {Weight: 1, Demand: 9}}, []int{2, 1}},
		{"the holder", 3, []Claim{{Weight: 1, Demand: 9}, {Weight: 1, Demand: 9, Held: 2}}, []int{1, 2}},
		{"the holder of more", 3, []Claim{{Weight: 1, Demand: 9}, {Weight: 1, Demand: 9, Held: 7}}, []int{1, 2}},
		{"not the holder of less", 3, []Claim{{Weight: 1, Demand: 9}, {Weight: 1, Demand: 9, Held: 1}}, []int{2, 1}},
		{"the greater rest", 5, []Claim{{Weight: 1, Demand: 9}, {Weight: 2, Demand: 9}}, []int{2, 3}},
		{"the greater rest, last", 4, []Claim{{Weight: 1, Demand: 9}, {Weight: 2, Demand: 9}}, []int{1, 3}},
		{"the holder of a lesser rest", 4, []Claim{{Weight: 1, Demand: 9, Held: 2}, {Weight: 2, Demand: 9}}, []int{2, 2}},
		{"holders in the order of their rests", 7, []Claim{{Weight: 3, Demand: 9, Held: 3}, {Weight: 4, Demand: 9, Held: 4},
			{Weight: 4, Demand: 9}}, []int{2, 3, 2}},
	} {
		if got := f.Divide(c.total, c.claims, make([]int, len(c.claims))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Of all divisions that only round the shares, Divide chooses one that takes the fewest executors away.
func TestDivideMovesFewest(t *testing.T) {
	var f Fair
	taken := func(claims []Claim, granted []int) (n int) {
		for i := range claims {
			n += max(0, claims[i].Held-granted[i])
		}
		return n
	}
	check(t, func(t *rapid.T) {
		total, claims := drawClaims(t)
		granted := f.Divide(total, claims, make([]int, len(claims)))
		up, left := []int(nil), 0 // the parties whose shares are not whole, and how many of them are rounded up
		whole := make([]int, len(claims))
		for i, want := range obvious(total, claims) {
			whole[i] = int(new(big.Int).Quo(want.Num(), want.Denom()).Int64())
			left += granted[i] - whole[i]
			if !want.IsInt() {
				up = append(up, i)
			}
		}
		fewest := taken(claims, granted)
		for set := range 1 << len(up) {
			if bits.OnesCount(uint(set)) != left {
				continue
			}
			other := slices.Clone(whole)
			for k, i := range up {
				other[i] += set >> k & 1
			}
			if n := taken(claims, other); n < fewest {
				t.Errorf("%+v of %d: %v takes %d executors away, %v only %d", claims, total, granted, fewest, other, n)
			}
		}
		for i := range claims {
			claims[i].Held = granted[i]
		}
		if again := f.Divide(total, claims, make([]int, len(claims))); !slices.Equal(granted, again) {
			t.Errorf("%+v of %d: first %v, then %v", claims, total, granted, again)
		}
	})
}

// A change of a demand that does not matter changes nothing.
func TestMatters(t *testing.T) {
	var f Fair
	check(t, func(t *rapid.T) {
		total, claims := drawClaims(t)
		if len(claims) == 0 {
			return
		}
		granted := f.Divide(total, claims, make([]int, len(claims)))
		for i := range claims {
			claims[i].Held = granted[i]
		}
		i := rapid.IntRange(0, len(claims)-1).Draw(t, "who")
		to := rapid.IntRange(0, 30).Draw(t, "then")
		matters := Matters(granted[i], claims[i].Demand, to)
		claims[i].Demand = to
		if then := f.Divide(total, claims, make([]int, len(claims))); !matters && !slices.Equal(granted, then) {
			t.Errorf("%+v of %d: %v became %v", claims, total, granted, then)
		}
	})
}

// miraByTheEquation is the equation of Mira and Algorithm 1, step by step as in section III.C, with exact fractions.
func miraByTheEquation(total int, claims []Claim) []int {
	weights, used := new(big.Rat), new(big.Rat)
	for i := range claims {
		weights.Add(weights, big.NewRat(claims[i].Weight, 1))
	}
	for i := range claims { // The sum of min(Ŵ, W): what an application uses is what it demands, in weight.
		w := big.NewRat(claims[i].Weight, 1)
		if total > 0 {
			uses := new(big.Rat).Mul(big.NewRat(int64(claims[i].Demand), int64(total)), weights)
			if uses.Cmp(w) < 0 {
				w = uses
			}
		}
		used.Add(used, w)
	}
	shares, granted, free := make([]int, len(claims)), make([]int, len(claims)), total
	for i := range claims { // Relative shares, absolute shares, and what is released beyond them.
		c := &claims[i]
		shares[i] = c.Demand
		if used.Sign() > 0 {
			relative := new(big.Rat).Quo(big.NewRat(c.Weight, 1), used)
			absolute := relative.Mul(relative, big.NewRat(int64(total), 1))
			if whole := new(big.Int).Quo(absolute.Num(), absolute.Denom()); whole.Cmp(big.NewInt(int64(c.Demand))) < 0 {
				shares[i] = int(whole.Int64())
			}
		}
		granted[i] = min(c.Held, shares[i])
		free -= granted[i]
	}
	for _, entitled := range [][]int{shares, demands(claims)} { // One by one and in turn.
		for before := -1; free > 0 && before != free; {
			before = free
			for i := range claims {
				if free > 0 && granted[i] < entitled[i] {
					granted[i]++
					free--
				}
			}
		}
	}
	return granted
}

func demands(claims []Claim) (all []int) {
	for i := range claims {
		all = append(all, claims[i].Demand)
	}
	return all
}

// Mira divides as its equation and Algorithm 1 say, which grants all that is demanded, as far as there is something.
func TestMiraIsTheEquation(t *testing.T) {
	check(t, func(t *rapid.T) {
		total, claims := drawClaims(t)
		held, demanded := 0, 0
		for i := range claims { // They hold no more than there is.
			claims[i].Held = min(claims[i].Held, total-held)
			held += claims[i].Held
			demanded += claims[i].Demand
		}
		granted := Mira(total, claims, make([]int, len(claims)))
		if want := miraByTheEquation(total, claims); !slices.Equal(granted, want) {
			t.Errorf("%+v of %d: %v, by the equation %v", claims, total, granted, want)
		}
		sum := 0
		for i, n := range granted {
			sum += n
			if n < 0 || n > claims[i].Demand {
				t.Errorf("%+v: %v", claims, granted)
			}
		}
		if sum != min(total, demanded) {
			t.Errorf("%+v of %d: %v", claims, total, granted)
		}
	})
}

// The first application demands less than it is due, so that the sum of min(Ŵ, W) is 0.8 + 1 + 3 instead of 8: the
// others are due 40 · 1/4.8 and 40 · 3/4.8, rounded down 8 and 25. The last three executors are given out in turn.
func ExampleMira() {
	claims := []Claim{{Weight: 4, Demand: 4}, {Weight: 1, Demand: 40}, {Weight: 3, Demand: 40}}
	fmt.Println("Mira:", Mira(40, claims, make([]int, 3)))
	var f Fair
	fmt.Println("max-min:", f.Divide(40, claims, make([]int, 3)))
	// Output:
	// Mira: [4 10 26]
	// max-min: [4 9 27]
}

func TestTree(t *testing.T) {
	// Two queues, one with twice the weight; it uses less than its part.
	nodes := []Node{{First: 1, Children: 2},
		{Claim: Claim{Weight: 2}, First: 3, Children: 2}, {Claim: Claim{Weight: 1}, First: 5, Children: 2},
		{Claim: Claim{Weight: 1, Demand: 3}}, {Claim: Claim{Weight: 1, Demand: 2}},
		{Claim: Claim{Weight: 3, Demand: 100}}, {Claim: Claim{Weight: 1, Demand: 100}}}
	var f Fair
	if got := f.DivideTree(25, nodes, make([]int, len(nodes))); !slices.Equal(got, []int{25, 5, 20, 3, 2, 15, 5}) {
		t.Error(got)
	}
	// What the children of a queue are promised, it is granted before its sibling is granted more.
	nodes[3].Min, nodes[3].Demand, nodes[2].Weight = 12, 20, 100
	if got := f.DivideTree(25, nodes, make([]int, len(nodes))); !slices.Equal(got, []int{25, 12, 13, 12, 0, 10, 3}) {
		t.Error(got)
	}
	allocs := testing.AllocsPerRun(10, func() { f.DivideTree(25, nodes, make([]int, len(nodes))[:]) })
	if allocs > 1 { // the result
		t.Error(allocs, "allocations")
	}
}

func BenchmarkDivide(b *testing.B) {
	for _, size := range []struct{ executors, applications int }{{112, 10}, {10000, 1000}} {
		b.Run(fmt.Sprintf("executors=%d/applications=%d", size.executors, size.applications), func(b *testing.B) {
			var f Fair
			claims, granted := make([]Claim, size.applications), make([]int, size.applications)
			for i := range claims {
				claims[i] = Claim{Weight: int64(1 + i%3*100), Demand: i * 7919 % (4 * size.executors / size.applications)}
			}
			b.ReportAllocs()
			for i := range b.N {
				c := &claims[i%len(claims)]
				c.Demand = (c.Demand + 5) % (4 * size.executors / size.applications)
				f.Divide(size.executors, claims, granted)
				for i := range claims {
					claims[i].Held = granted[i]
				}
			}
		})
	}
}
