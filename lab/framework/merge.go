package framework

import "github.com/bellows-rm/bellows/resource"

// mostFiles limits how many spilled files are considered one by one; with more and finer files the result hardly
// differs.
const mostFiles = 1 << 16

// rewritten returns how many bytes are written again when files of these sizes are merged into one stream, at most
// factor files at a time: a merge takes the smallest files, and the first merge takes as many as leave only full merges
// after it (Hadoop's Merger). The last merge is only read. rewritten changes files and does not keep it; factor 0 is no
// limit, otherwise it is at least 2.
func rewritten(files []resource.Amount, factor int) resource.Amount {
	if factor == 0 || len(files) <= factor {
		return 0
	}
	h := heapOf(files)
	var total resource.Amount
	take := (len(h)-1)%(factor-1) + 1
	if take == 1 {
		take = factor
	}
	for len(h) > factor {
		var merged resource.Amount
		for range take {
			merged += h.pop()
		}
		h.push(merged)
		total += merged
		take = factor
	}
	return total
}

// sizes is a heap of file sizes, the smallest on top.
type sizes []resource.Amount

func heapOf(s []resource.Amount) sizes {
	h := sizes(s)
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	return h
}

func (h *sizes) push(x resource.Amount) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0 && s[i] < s[(i-1)/2]; i = (i - 1) / 2 {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
	}
}

func (h *sizes) pop() resource.Amount {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	*h = s[:last]
	h.down(0)
	return top
}

func (h sizes) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c] < h[least] {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
