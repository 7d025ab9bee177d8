package sim

import "fmt"

// whyStuck says why a job did not end.
func (r *run) whyStuck(j *job) string {
	if !j.arrived {
		return "the job after whose end it is submitted did not end"
	}
	state, ok := r.engine.Snapshot().Job(j.ID)
	switch {
	case r.goesRound():
		return fmt.Sprintf("tasks are preempted repeatedly: %d times since a task last succeeded", r.inVain)
	case r.standsStill():
		return "all containers on its nodes wait for memory, and none releases any"
	case !ok:
		return "its coordinator did not end it"
	}
	if why, ok := r.engine.WhyWaits(r.now, state); ok {
		return why.Words(nil)
	}
	return "nothing more happens in the cluster"
}
