package share

import "math/bits"

// Mira divides total executors among applications as Mira's resource manager does: its equation and Algorithm 1 as written (section
// III.C), one evaluation. Min and Max of the claims, which the paper does not have, do not count.
//
// The relative share of application n is W_n / Σ min(Ŵ_m, W_m), where Ŵ is "the weight corresponding to the actually used resources":
// here Held / total · ΣW. Its absolute share is that part of total, rounded down, but not more than it demands. Applications that hold
// more than their share keep their share. The executors that are not held then go one by one and in turn to applications that hold
// less than their share.
//
// Shares follow from what is held now, so one evaluation is not fair: applications that hold little all have large shares, and get
// the same number of executors in turn, whatever their weights. If some leave a part of what they are due, the equation divides less
// than the whole among the others (two equal applications share 10, one demands 2: the other's share is 7, not 8). Divide has no such
// gaps.
func Mira(total int, claims []Claim, granted []int) []int {
	var weights, used uint64 // used is Σ min(Ŵ, W), in units of 1/total
	for i := range claims {
		weights += uint64(claims[i].Weight)
	}
	for i := range claims {
		c := &claims[i]
		used += min(uint64(c.Held)*weights, uint64(c.Weight)*uint64(total))
	}
	free := total
	for i := range claims {
		granted[i] = min(claims[i].Held, miraShare(total, &claims[i], used))
		free -= granted[i]
	}
	for free > 0 {
		before := free
		for i := range claims {
			if free > 0 && granted[i] < miraShare(total, &claims[i], used) {
				granted[i]++
				free--
			}
		}
		if free == before {
			break
		}
	}
	return granted
}

// miraShare is the absolute share of c.
func miraShare(total int, c *Claim, used uint64) int {
	all := min(total, c.Demand)
	high, low := bits.Mul64(uint64(total)*uint64(total), uint64(c.Weight))
	if high >= used {
		return all // the share is greater than any number, or nobody uses anything
	}
	share, _ := bits.Div64(high, low, used)
	return int(min(share, uint64(all)))
}
