package memory

// state is whether the programs of a container are to run, and whether the kernel has confirmed that.
//
//	                    suspend
//	     running ─────────────────────▶ suspended
//	      │   ▲  ◀─────────────────────  │   ▲
//	      │   │         resume           │   │
//	   denied confirm                 denied confirm
//	      │   │                          │   │
//	      ▼   │         suspend          ▼   │
//	runningInDoubt ───────────────▶ suspendedInDoubt
//	               ◀───────────────
//	                    resume
//
// The state is what the manager has ordered: it changes when an action is ordered, not when the kernel has done it.
// An action that failed, or was not answered, leaves a state in doubt, which orderAgain orders again: a container
// that is believed to run must not stay frozen.
//
// suspendShort suspends containers that are short, and accept suspends containers from which memory is taken.
// resumeFitting, resumeYielding and resumeToPage resume them.
type state uint8

const (
	running state = iota
	suspended
	runningInDoubt
	suspendedInDoubt
)

// stimulus is what changes a state.
type stimulus uint8

const (
	suspend stimulus = iota // Suspend was ordered, or a Shrink for which the programs must be suspended
	resume                  // Resume was ordered
	confirm                 // the kernel carried out an action that sets whether the programs run: any but Grow and Kill
	denied                  // the kernel failed to carry out such an action, or did not answer
)

// transitions are the next states. A state that has no arrow for a stimulus stays.
var transitions = [...][4]state{
	running:          {suspend: suspended, resume: running, confirm: running, denied: runningInDoubt},
	suspended:        {suspend: suspended, resume: running, confirm: suspended, denied: suspendedInDoubt},
	runningInDoubt:   {suspend: suspendedInDoubt, resume: runningInDoubt, confirm: running, denied: runningInDoubt},
	suspendedInDoubt: {suspend: suspendedInDoubt, resume: runningInDoubt, confirm: suspended, denied: suspendedInDoubt},
}

// to is the state after a stimulus.
func (s state) to(what stimulus) state { return transitions[s][what] }

func (s state) suspended() bool { return s == suspended || s == suspendedInDoubt }

func (s state) inDoubt() bool { return s >= runningInDoubt }
