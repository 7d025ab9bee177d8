package agent

import "time"

// While a goroutine computes or reads files of the kernel without a pause, the Go scheduler does not ask the kernel
// for new requests on connections if the daemon has one processor: they wait until the goroutine has worked for 10
// ms, or is done. What is done for every container is therefore done in steps, with a pause after each.
const (
	// stepWork is how long a step takes, apart from what is done for one container.
	stepWork = time.Millisecond
	// stepPause is how long others have the processor after a step. Less would be as long on an idle processor, where
	// the Go runtime waits for whole milliseconds.
	stepPause = time.Millisecond
	// mostSteps bounds the pauses of a round, for the sake of those who wait for its end.
	mostSteps = 50
)

// round is one round of work on all containers.
type round struct {
	least int // of containers in a step
	done  int // in this step
	begun time.Time
}

func newRound(containers int) *round {
	return &round{least: containers / mostSteps, begun: time.Now()}
}

// next is called after the work on each container.
func (r *round) next() {
	if r.done++; r.done <= r.least || time.Since(r.begun) < stepWork {
		return
	}
	time.Sleep(stepPause)
	r.done, r.begun = 0, time.Now()
}
