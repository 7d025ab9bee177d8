// Package sweep runs many independent runs on all cores and delivers their results in order, so that tables and files
// built from the results do not depend on the number of cores.
package sweep

import (
	"context"
	"runtime"
	"sync"
)

// ahead is how many runs per worker may have started beyond the run whose turn it is. It bounds the memory of results
// that wait for their turn, and lets other runs go on while one run takes long.
const ahead = 16

// Workers returns the number of workers for a setting n: n, or one per core if n is not above zero.
func Workers(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Run calls f for each i from 0 to n-1, up to Workers(workers) at a time, and then each(i, t) with the result of f, one
// after the other in the order of i. A result waits until all earlier results are delivered; at most 16 runs per worker
// are started and not delivered, so memory does not grow with n.
//
// An error of f, or the end of ctx, ends the sweep: no further run starts, runs in progress end, and the results before
// the failed run are delivered. Run returns the error of the lowest i that failed, or that of ctx. To go on after a
// failed run, make the failure a part of T.
func Run[T any](ctx context.Context, n, workers int, f func(i int) (T, error), each func(i int, t T)) error {
	workers = min(Workers(workers), max(n, 1))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type result struct {
		value T
		err   error
		done  bool
	}
	// Slot i mod len(slots) holds the result of run i: tickets are handed out so that no two runs need a slot at once.
	slots := make([]chan result, min(n, workers*ahead))
	for i := range slots {
		slots[i] = make(chan result, 1)
	}
	tickets := make(chan int, len(slots))
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range tickets {
				var r result
				if ctx.Err() == nil {
					r.value, r.err = f(i)
					r.done = true
				}
				slots[i%len(slots)] <- r
			}
		})
	}
	defer all.Wait()
	defer close(tickets)
	for i := range slots {
		tickets <- i
	}
	for i := range n {
		r := <-slots[i%len(slots)]
		if r.err != nil {
			stop()
			return r.err
		}
		if !r.done {
			return context.Cause(ctx)
		}
		each(i, r.value)
		if next := i + len(slots); next < n {
			tickets <- next
		}
	}
	return nil
}
