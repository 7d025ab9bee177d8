package policy

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// quota is what a queue is guaranteed, and the most that it may hold.
type quota struct {
	share, mostShare         float64 // of its parent, from 0 to 1
	ofCluster, mostOfCluster float64 // the same, of the cluster
	guaranteed, most         resource.Vector
}

func (c *capacity) parseQueues(text string) error {
	if err := c.tree.Parse(text, readShares); err != nil {
		return err
	}
	if c.tree.Root.Leaf() {
		return errors.New("must name at least one queue")
	}
	c.tree.Root.Own.quota = quota{share: 1, mostShare: 1, ofCluster: 1, mostOfCluster: 1}
	for _, q := range c.tree.All[1:] {
		parent := &q.Parent.Own
		q.Own.ofCluster, q.Own.mostOfCluster = q.Own.share*parent.ofCluster, q.Own.mostShare*parent.mostOfCluster
	}
	return c.checkShares()
}

// readShares reads "50%" or "50%..80%".
func readShares(q *capacityQueue, text string) error {
	guaranteed, most, both := strings.Cut(text, "..")
	if !both {
		most = "100%"
	}
	var ok, okToo bool
	q.share, ok = percent(guaranteed)
	q.mostShare, okToo = percent(most)
	switch {
	case !ok || !okToo:
		return fmt.Errorf("share %q: must be a percentage from 0%% to 100%%, or two such as 50%%..80%%", text)
	case q.share > q.mostShare:
		return fmt.Errorf("share %q: the guarantee must be at most the maximum", text)
	case q.mostShare == 0:
		return fmt.Errorf("share %q: the maximum must be more than 0%%", text)
	}
	return nil
}

func percent(text string) (float64, bool) {
	number, ok := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	return v / 100, ok && err == nil && v >= 0 && v <= 100
}

// checkShares returns an error if the children of a queue are guaranteed more than the queue has.
func (c *capacity) checkShares() error {
	for _, q := range c.tree.All {
		sum := 0.0
		for _, child := range q.Children {
			sum += child.Own.share
		}
		if sum > 1+1e-9 {
			name := "the cluster"
			if q.Parent != nil {
				name = fmt.Sprintf("queue %q", q.Name)
			}
			return fmt.Errorf("%s guarantees %g%% to the queues below: must be at most 100%%",
				name, math.Round(1e6*sum)/1e4)
		}
	}
	return nil
}

// scale converts the shares of the queues to amounts of whole, the capacity of the cluster.
func (c *capacity) scale(whole resource.Vector) {
	if c.measure.whole == whole {
		return
	}
	c.measure.whole = whole
	for _, q := range c.tree.All {
		q.Own.guaranteed, q.Own.most = portion(whole, q.Own.ofCluster), portion(whole, q.Own.mostOfCluster)
	}
}

// portion is a share of v, rounded down; an amount that is whole except for rounding errors is kept.
func portion(v resource.Vector, share float64) resource.Vector {
	for k := range v {
		v[k] = resource.Amount(math.Floor(float64(v[k])*share + 1e-6))
	}
	return v
}

// overMost returns the first queue on the way from a leaf to the root that is too small for need even when empty, and
// the resource that it lacks; nil if all queues are large enough.
func (c *capacity) overMost(leaf *shareQueue, need resource.Vector) (resource.Kind, *shareQueue) {
	for q := leaf; q.Parent != nil; q = q.Parent {
		for _, k := range c.measure.kinds() {
			if need[k] > q.Own.most[k] {
				return k, q
			}
		}
	}
	return 0, nil
}
