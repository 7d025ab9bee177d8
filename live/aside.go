package live

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/watchdog"
)

// noteOf returns the note of a step that handles an event.
func (d *Driver) noteOf(e *cluster.Event) watchdog.Note {
	n := watchdog.Note{Job: e.Task.Job, Careful: d.health.careful}
	if e.Kind == cluster.JobSubmitted || e.Job != 0 {
		n.Job = e.Job
	}
	n.Admits = e.Kind == cluster.JobSubmitted
	return n
}

// A job that is set aside is kept, but not submitted to the engine.
const setAsideWords = "the engine hung when it took the job in, or bellows was killed each time that it did, so the " +
	"job is set aside: kill it"

func (j *job) isAside() bool { return j.State.Status == cluster.StatusSetAside }

// answer reacts to the note that the last process left.
//
// If the engine hung when it admitted a job, that job is set aside. If it hung later, the job is unknown, because an
// event of one job can make the engine decide about all jobs. Then jobs that never started are submitted to it one by
// one, with a note for each; if it hangs again, the note names the job. If it hangs before that, with only the jobs
// that have started, the engine decides nothing: containers continue, jobs can be listed and killed, and the next Start
// tries again.
func (d *Driver) answer(left watchdog.Note) {
	if !left.Hangs {
		d.health.careful = true // It costs nothing, and if the process ends again, the note names the step.
		return
	}
	d.watchdog.Warn(left)
	d.watchdog.StepEnds() // This start has dealt with the note.
	j, here := d.jobs[left.Job]
	switch {
	case left.Admits && here && len(j.runs) == 0:
		j.State.Status = cluster.StatusSetAside
		d.out.putJob(j)
		d.log.Warn("a job is set aside: it stays, and does not start", "job", left.Job)
	case left.Careful:
		d.health.broken = api.Errorf(api.Internal,
			"policy %s hangs whenever it decides about the jobs that run, so nothing is decided until bellows is started "+
				"again; the containers continue: kill the job that causes it, and start bellows again", d.config.Policy.Name())
		d.log.Error("the engine decides nothing; the containers continue", "policy", d.config.Policy.Name(), "error",
			d.health.broken)
	default:
		d.health.careful = true
	}
}
