package timeline_test

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// When can a task of 3 GiB run for a minute on a node whose 8 GiB become free as its tasks end?
func ExampleTimeline_FirstFit() {
	free := timeline.Of(timeline.Always, resource.Of(4*resource.Core, 8*resource.GiB))
	free.Sub(timeline.For(0, 30*time.Second), resource.Of(resource.Core, 4*resource.GiB))
	free.Sub(timeline.For(0, 50*time.Second), resource.Of(resource.Core, 2*resource.GiB))
	free.Sub(timeline.For(timeline.Seconds(60), time.Hour), resource.Of(resource.Core, 6*resource.GiB)) // reserved

	task := resource.Of(resource.Core, 3*resource.GiB)
	fmt.Println(free.FirstFit(task, 30*time.Second, 0))
	fmt.Println(free.FirstFit(task, time.Minute, 0))
	// Output:
	// 30s true
	// 1h1m0s true
}

// How badly does the predicted disk demand of an executor match what a node has left?
func ExampleTimeline_AreaAbove() {
	disk := func(mb resource.Amount) resource.Vector { return resource.Vector{resource.Disk: mb * resource.MB} }
	demand := timeline.Of(timeline.For(0, 10*time.Second), disk(40))
	demand.Add(timeline.For(timeline.Seconds(10), 10*time.Second), disk(120))
	available := timeline.Of(timeline.For(0, time.Minute), disk(100))

	run := timeline.Span{From: 0, To: timeline.Seconds(20)}
	over, under := demand.AreaAbove(available, run), demand.AreaBelow(available, run)
	fmt.Printf("over-allocation %.0f MB, fragmentation %.0f MB\n",
		over.UnitSeconds(resource.Disk)/1e6, under.UnitSeconds(resource.Disk)/1e6)
	// Output: over-allocation 200 MB, fragmentation 600 MB
}

// Demands of several tasks add up, and leave a canonical sum.
func ExampleSum() {
	demand := timeline.Of(timeline.For(0, time.Minute), resource.Of(resource.Core, 2*resource.GiB))
	later := demand.Clone()
	later.Shift(30 * time.Second)
	fmt.Println(timeline.Sum(demand, later))
	// Output: [0s,30s) cpu=1 memory=2GiB; [30s,1m0s) cpu=2 memory=4GiB; [1m0s,1m30s) cpu=1 memory=2GiB
}

// Usage is recorded as it changes; its mean is an integral over a length of time.
func ExampleTimeline_Set() {
	var used timeline.Timeline
	used.Set(timeline.Span{From: timeline.Seconds(0), To: timeline.Never}, resource.Of(0, 6*resource.GiB))
	used.Set(timeline.Span{From: timeline.Seconds(10), To: timeline.Never}, resource.Of(0, 2*resource.GiB))
	used.Set(timeline.Span{From: timeline.Seconds(40), To: timeline.Never}, resource.Vector{})

	run := timeline.Span{From: 0, To: timeline.Seconds(40)}
	mean := used.Integral(run).UnitSeconds(resource.Memory) / run.Length().Seconds()
	fmt.Println(used.String())
	fmt.Println("mean", resource.FormatMemory(resource.Amount(mean)), "most", used.Max(run))
	// Output:
	// [0s,10s) memory=6GiB; [10s,40s) memory=2GiB
	// mean 3GiB most memory=6GiB
}

// Pieces give the constant stretches of a span, those at zero included.
func ExampleTimeline_Pieces() {
	line := timeline.Of(timeline.For(timeline.Seconds(5), 10*time.Second), resource.Of(500, 0))
	for span, v := range line.Pieces(timeline.Span{From: 0, To: timeline.Seconds(12)}) {
		fmt.Println(span, v)
	}
	// Output:
	// [0s,5s) 0
	// [5s,12s) cpu=500m
}

// Trim forgets the past.
func ExampleTimeline_Trim() {
	line := timeline.Of(timeline.For(0, time.Minute), resource.Of(500, 0))
	line.Trim(timeline.Seconds(20))
	fmt.Println(line)
	// Output: [20s,1m0s) cpu=500m
}
