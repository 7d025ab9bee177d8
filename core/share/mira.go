package share

import "math/bits"

// Mira divides total executors among applications as Mira's resource manager does: its equation and Algorithm 1 as
// written (section III.C), one evaluation. Min and Max of the claims, which the paper does not have, do not count.
//
// The relative share of application n is W_n / Σ min(Ŵ_m, W_m), where Ŵ is "the weight corresponding to the actually
// used resources". Its absolute share is that part of total, rounded down, but not more than it demands. Applications
// that hold more than their share keep their share. The other executors go one by one and in turn to applications
// that have less than their share, and then, as "other applications get resources beyond their weighted fair share",
// to those that have less than they demand.
//
// What an application uses is read as what it would use, Demand / total · ΣW. Read as what it holds, an application
// that comes when all executors are held never gets one: it uses nothing, so the others' shares are the whole.
//
// One evaluation is not fair. If some leave a part of what they are due, the equation divides less than the whole
// among the others (two equal applications share 10, and one demands 2: the other's share is 7, not 8), and what is
// left over is given out in turn, whatever the weights are. Divide has no such gaps.
func Mira(total int, claims []Claim, granted []int) []int {
	var weights, used uint64 // used is Σ min(Ŵ, W), in units of 1/total
	for i := range claims {
		weights += uint64(claims[i].Weight)
	}
	for i := range claims {
		c := &claims[i]
		used += min(uint64(min(total, c.Demand))*weights, uint64(c.Weight)*uint64(total))
	}
	shareOf := func(c *Claim) int { return miraShare(total, c, used) }
	free := total
	for i := range claims {
		granted[i] = min(claims[i].Held, shareOf(&claims[i]))
		free -= granted[i]
	}
	free = inTurn(free, claims, granted, shareOf)
	inTurn(free, claims, granted, func(c *Claim) int { return c.Demand })
	return granted
}

// inTurn grants free executors one by one to the parties that have less than most says, and returns how many are left.
func inTurn(free int, claims []Claim, granted []int, most func(*Claim) int) int {
	for more := true; more; {
		more = false
		for i := range claims {
			if free > 0 && granted[i] < most(&claims[i]) {
				granted[i]++
				free--
				more = true
			}
		}
	}
	return free
}

// miraShare is the absolute share of c.
func miraShare(total int, c *Claim, used uint64) int {
	all := min(total, c.Demand)
	high, low := bits.Mul64(uint64(total)*uint64(total), uint64(c.Weight))
	if high >= used {
		return all // more than any number, or no party demands anything
	}
	share, _ := bits.Div64(high, low, used)
	return int(min(share, uint64(all)))
}
