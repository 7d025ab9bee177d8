package timeline_test

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// When can a task of 3 GiB run on a node whose 8 GiB become free as its tasks end?
func ExampleTimeline_First() {
	var free timeline.Timeline
	free.Sum(resource.Of(2*resource.Core, 2*resource.GiB), []timeline.Step{
		{At: timeline.Seconds(50), Value: resource.Of(resource.Core, 2*resource.GiB)},
		{At: timeline.Seconds(30), Value: resource.Of(resource.Core, 4*resource.GiB)},
	})
	fmt.Println(free.First(0, resource.Of(resource.Core, 3*resource.GiB).FitsIn))
	fmt.Println(free.First(0, resource.Of(resource.Core, 9*resource.GiB).FitsIn))
	// Output:
	// 30s true
	// never false
}
