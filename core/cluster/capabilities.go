package cluster

import (
	"cmp"

	"github.com/bellows-rm/bellows/core/resource"
)

// Capabilities are what a backend can do with containers besides running their programs and ending them. A field is
// empty if the backend can do it; otherwise it is one clause on why not, for whoever asks for it. The zero value can do
// all.
type Capabilities struct {
	// PrivateTmp and NoNetwork isolate programs: see Command.
	PrivateTmp, NoNetwork string
	// Input connects a client to the standard input of a program: see Launch.
	Input string
	// Files says that programs and the driver see the same files: Stdin, Stdout and Stderr of a Launch, and for executors
	// the socket of the daemon and the files of its state directory.
	Files string
	// Throttle, Suspend and Resize carry out the orders of these names. PageOut moves the memory of a suspended container
	// to swap, and back.
	Throttle, Suspend, PageOut, Resize string
}

// Lacks says why an order cannot be carried out; empty if it can. Kill and Start always can.
func (c *Capabilities) Lacks(d *Decision) string {
	switch d.Kind {
	case Throttle:
		return c.Throttle
	case Suspend, Resume:
		if d.PageOut {
			return cmp.Or(c.Suspend, c.PageOut)
		}
		return c.Suspend
	case Resize:
		return c.Resize
	}
	return ""
}

// Answer returns the answer to an order of a run that Lacks names a reason for. What would end a throttle or let
// programs go on is done, as there is no throttle and nothing stands still.
func (c *Capabilities) Answer(o *Order) Event {
	e := Event{Kind: DecisionFailed, Task: o.Task, Run: o.Container.Run, Node: o.Node, Decision: o.ID,
		Detail: c.Lacks(&o.Decision)}
	if o.Kind == Resume || o.Kind == Throttle && o.Bound == (resource.Vector{}) {
		e.Kind, e.Detail = DecisionDone, ""
	}
	return e
}
