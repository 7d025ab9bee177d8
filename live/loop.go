package live

import (
	"context"
	"errors"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/drive"
)

// now is the time that never runs backwards.
func (d *Driver) now() timeline.Time { return d.agenda.Now() }

// loop owns the engine. It does not use a drive.Loop, which collects events and hands them to the engine together:
// here the engine decides on each event alone and at once, because what is done next depends on it, and because each is
// a step of the event log. And a panic outside of a step ends the daemon: what the store has is right then, what memory
// has may not be.
func (d *Driver) loop() {
	defer d.turns.End()
	d.watchdog.Begin()
	d.turns.Run(d.backend.Events(), worker{d})
	d.finish()
}

// worker is a Driver as its turns know it.
type worker struct{ *Driver }

// Call makes a call of another goroutine.
func (w worker) Call(f func()) {
	w.watchdog.Work()
	f()
}

// Receive receives an event of the Backend, and those that have arrived already, up to a limit: they are stored
// together.
func (w worker) Receive(e cluster.Event) {
	w.watchdog.Work()
	w.receive(e)
	for range 256 {
		select {
		case e := <-w.backend.Events():
			w.receive(e)
		default:
			return
		}
	}
}

// Turn handles events whose time has come, records the steps, publishes the result, and then acts on it.
func (w worker) Turn() (wait time.Duration) {
	w.watchdog.Work()
	w.receiveAnswers()
	w.catchUp()
	w.roll()
	w.flush()
	wait = w.untilNext()
	w.watchdog.Rest()
	return wait
}

// catchUp handles the Driver's own events and held events whose time has come.
func (d *Driver) catchUp() {
	for {
		events := d.agenda.Take(d.now())
		if len(events) == 0 {
			return
		}
		for i := range events {
			switch e := &events[i]; {
			case e.Kind == cluster.NodeResumed:
				d.resumes(e)
			case isHeldBack(e) && !d.stays(e):
				continue
			}
			d.step(events[i])
		}
	}
}

// retryAfter is how long the outbox waits before it tries again.
const retryAfter = time.Second

// untilNext is how long until there is something to do again.
func (d *Driver) untilNext() time.Duration {
	wait := time.Hour
	if d.health.triesAgain() {
		wait = min(wait, retryAfter)
	}
	if d.changes.asks() {
		wait = min(wait, askPause)
	}
	if len(d.able.answers) > 0 {
		wait = 0
	}
	return d.agenda.Wait(wait)
}

// step hands one event to the engine and handles its decisions. Nothing is acted on before the next flush.
func (d *Driver) step(e cluster.Event) {
	d.askAll()
	now := d.now()
	d.counts.Event(now, &e)
	if d.health.broken != nil {
		d.settleAlone()
		return
	}
	taken := d.events.Record(now, e)
	decisions, err := d.decide(now, e)
	if err != nil {
		d.breakDown(err)
		return
	}
	if taken {
		d.events.Decided(now, decisions)
	}
	d.takeAll(now, decisions)
	if e.Task.Job != 0 {
		d.touch(e.Task.Job)
	}
	if e.Job != 0 {
		d.touch(e.Job)
	}
	d.harvest(now)
}

// takeAll handles the decisions of a step.
func (d *Driver) takeAll(now timeline.Time, decisions []cluster.Decision) {
	for i := range decisions {
		d.counts.Decision(decisions[i].Kind)
		d.take(now, &decisions[i])
	}
}

// decide is a step of the engine.
func (d *Driver) decide(now timeline.Time, e cluster.Event) (decisions []cluster.Decision, err error) {
	d.watchdog.StepBegins(d.noteOf(&e))
	defer d.watchdog.StepEnds()
	begun := time.Now()
	decisions, err = drive.Step(d.engine, now, e)
	d.counts.Step(time.Since(begun))
	return decisions, err
}

// breakDown handles a bug of the policy or the engine. It logs an error, and the engine decides nothing any more.
// Everything else continues: containers run, their ends are recorded, jobs can be listed and killed. The next start
// rebuilds the engine.
func (d *Driver) breakDown(err error) {
	d.health.broken = api.Errorf(api.Internal,
		"policy %s took an impossible decision, so nothing more is decided until bellows is started again; the "+
			"containers continue: %w", d.config.Policy.Name(), err)
	d.log.Error("the engine decides nothing more; the containers continue", "policy", d.config.Policy.Name(), "error",
		err, "event_log", d.events.EventLog())
	d.agenda.DropWakes()
	d.tellAll()
	d.settleAlone()
}

// finish ends the loop: the next Driver knows only what finish has recorded.
func (d *Driver) finish() {
	d.flush()
	if d.health.trouble != nil {
		d.log.Error("some events were not stored; the next start reconstructs them", "error", d.health.trouble)
	}
	if err := d.store.EndRun(context.Background(), d.events.Run(), d.now()); err != nil {
		d.log.Warn("cannot store the end of this run", "error", err)
	}
	if err := errors.Join(d.events.Flush(), d.events.Close()); err != nil {
		d.log.Warn("cannot close the event log", "error", err)
	}
	if err := d.watchdog.Close(); err != nil {
		d.log.Warn("cannot close the note of the engine's step", "error", err)
	}
}

// errStopped is returned by methods of a Driver that has stopped.
var errStopped = api.Errorf(api.Internal, "bellows is going down")

// do makes the loop run f, between two steps, and publish what f has changed. If the loop hangs, do returns an error;
// if it hangs in f itself, f may still end.
func (d *Driver) do(ctx context.Context, f func()) error {
	return d.look(ctx, func() {
		f()
		d.askAll()
		d.publish()
	})
}

// look is do for an f that changes nothing. It should be quick, because it holds up the loop: what is on the board is
// read there.
func (d *Driver) look(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	if err := pass(ctx, d, d.turns.Calls(), func() { f(); close(ran) }); err != nil {
		return err
	}
	select {
	case <-ran:
		return nil
	case <-d.watchdog.Alarm():
		return d.silent()
	}
}
