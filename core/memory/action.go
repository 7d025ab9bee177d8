package memory

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// ActionKind is a kind of Action.
type ActionKind uint8

const (
	Grow    ActionKind = iota + 1 // raise the limit to Limit
	Shrink                        // lower the limit to Limit, swapping out what does not fit; never raise it
	Suspend                       // freeze the programs, or slow them to 1 % of a core if they send heartbeats
	Resume                        // let the programs run
	Breathe                       // let the programs run for one breath; the container stays suspended
	Kill                          // end the container, to be run again elsewhere or later
	Admit                         // a container that was requested has its memory, and is to start
	Refuse                        // a container that was requested cannot have its memory now
	End                           // end the container for want of memory: its run counts as an attempt
)

var actionNames = [...]string{"", "grow", "shrink", "suspend", "resume", "breathe", "kill", "admit", "refuse", "end"}

func (k ActionKind) String() string {
	if int(k) < len(actionNames) {
		return actionNames[k]
	}
	return fmt.Sprintf("action(%d)", uint8(k))
}

// ActionID numbers actions from 1 in the order in which they were returned.
type ActionID int64

// Action is one thing to do with one container, and why. The caller answers every Grow, Shrink, Suspend, Resume,
// Breathe, Kill and End with one Outcome, or reports that the container has ended. An action without an answer within
// Parameters.ActionTimeout counts as failed. On a machine Agent.carryOut carries actions out.
type Action struct {
	ID        ActionID
	Kind      ActionKind
	Container cluster.ContainerID
	// Limit is that of Grow and Shrink, bytes. Admit: with which it starts, instead of its Min; 0: its Min. Refuse: with
	// which it is to come back, because its task was requeued; 0: it was not.
	Limit     resource.Amount
	Suspended bool // Grow and Shrink: the programs are to be suspended while and after it is done
	Reason    Reason
}

// Outcome is the result of an action.
type Outcome struct {
	Action ActionID
	// Limit is the limit in force afterwards, bytes; 0: as before.
	Limit resource.Amount
	// Failed says that the kernel did not carry out the action, or not completely: the manager decides again.
	Failed bool
}
