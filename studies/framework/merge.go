package framework

import (
	"github.com/bellows-rm/bellows/core/heap"
	"github.com/bellows-rm/bellows/core/resource"
)

// mostFiles limits how many spilled files are considered one by one; with more and finer files the result hardly
// differs.
const mostFiles = 1 << 16

// rewritten returns how many bytes are written again when files of these sizes are merged into one stream, at most
// factor files at a time: a merge takes the smallest files, and the first merge takes as many as leave only full merges
// after it (Hadoop's Merger). The last merge is only read. The files are used up. A factor of 0 is no limit;
// otherwise it is at least 2.
func rewritten(files sizes, factor int) resource.Amount {
	if factor == 0 || files.len() <= factor {
		return 0
	}
	var total resource.Amount
	take := (files.len()-1)%(factor-1) + 1
	if take == 1 {
		take = factor
	}
	for files.len() > factor {
		var merged resource.Amount
		for range take {
			merged += files.pop()
		}
		files.push(merged)
		total += merged
		take = factor
	}
	return total
}

// sizes is a heap of file sizes, the smallest on top.
type sizes struct {
	files heap.Heap[resource.Amount, struct{}]
}

func (h *sizes) push(size resource.Amount) { h.files.Push(size, 0, struct{}{}) }

func (h *sizes) pop() resource.Amount { return h.files.Pop().Key }

func (h *sizes) len() int { return len(h.files) }
