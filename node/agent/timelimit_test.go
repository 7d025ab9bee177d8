package agent

import (
	"context"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// TestTimeLimit lets programs run for longer than they may.
func TestTimeLimit(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		args   []string
		freeze bool
		alone  bool // without an agent
	}{
		"ends when asked":            {args: []string{"sleep", "1000"}},
		"ends well when asked":       {args: []string{"sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"}},
		"does not listen":            {args: []string{"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}},
		"stands still":               {args: []string{"sleep", "1000"}, freeze: true},
		"stands still, not listened": {args: []string{"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}, freeze: true},
		"without an agent":           {args: []string{"sleep", "1000"}, alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			o := b.order(c.args...)
			o.Launch.Timeout = time.Second
			b.Apply([]cluster.Order{o})
			b.next(cluster.DecisionDone)
			if c.freeze {
				running := b.container(o.Container)
				if running != nil { // It may have ended by now, on a machine that is slow.
					_ = running.group.Freeze(t.Context())
				}
			}
			if c.alone {
				b.Close()
				lock := b.folder(o.Container)
				for deadline := time.Now().Add(time.Minute); held(lock) && time.Now().Before(deadline); {
					time.Sleep(10 * time.Millisecond)
				}
				b.open()
			}
			e := b.next(cluster.TaskEnded)
			for e.Task != o.Container.Task { // A new agent tells again of what ended right before the old one did.
				e = b.next(cluster.TaskEnded)
			}
			if e.Outcome != cluster.Failed || e.Exit == nil || e.Exit.Code != 124 || e.Exit.TimeLimit != time.Second ||
				e.Detail != "reached its time limit of 1s" {
				t.Errorf("ended %s, %q, %+v", e.Outcome, e.Detail, e.Exit)
			}
		})
	}
	b.t = t
}

// TestTimeLimitOfShorter lets a program end before its time limit, and one be killed.
func TestTimeLimitOfShorter(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", "exit 3")
	o.Launch.Timeout = time.Hour
	if e := b.run(o); e.Exit == nil || e.Exit.Code != 3 || e.Exit.TimeLimit != 0 {
		t.Errorf("ended %+v", e.Exit)
	}
	o = b.order("sleep", "1000")
	o.Launch.Timeout = time.Hour
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.Apply(kill(o.Container))
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Killed {
		t.Errorf("ended %s %+v", e.Outcome, e.Exit)
	}
}

// TestTimeLimitWithoutGroup gives up with the program when there is no group to end any more.
func TestTimeLimitWithoutGroup(t *testing.T) {
	l := &timeLimit{done: make(chan struct{})}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(t.Context())
	go func() { l.enforce(ctx, folder(t.TempDir()), &spec{Place: "/nowhere"}); close(l.done) }()
	if l.end() {
		t.Error("a limit was reached that was not")
	}
}
