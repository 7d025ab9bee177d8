package cluster

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// ReasonCode names why a decision was taken. Each code says what its operands A, B and C are.
type ReasonCode uint8

const (
	_                     ReasonCode = iota
	Fits                             // A: memory granted, bytes
	FitsUnderSized                   // A: memory granted, bytes; B: end of the task; C: estimated end of its job
	FitsUnderSizedNoLimit            // A: memory granted, bytes; B: end of the task; the end of the job is unknown
	FitsInGap                        // A: memory granted, bytes; B: end of the task; C: when the job that reserved the node can use it
	NoRoom                           // A: memory needed, bytes; B: CPU needed, millicores: no node has both free; C: lacking, filled in by book.Plan.Wait
	WouldEndAfterJob                 // A: least memory considered, bytes; B: end of the task; C: estimated end of its job
	DiskBudget                       // A: disk bandwidth needed, bytes/s; B: bandwidth left for under-sized tasks on the node
	BehindJob                        // A: the job that comes first
	NodeReserved                     // A: the job that reserved the node
	ReservedForTask                  // A: kind of resource that is short; B: how much is needed; C: how much is free on the node
	ReservationUsed                  // the task for which the node was reserved starts there
	ReservationNotNeeded             // the job no longer needs the node
	ReservationHopeless              // nothing with a known end runs on the node; other jobs may use it
	EstimatesDue                     // estimated ends of jobs are renewed; no policy uses it, old event logs may
	CancelledByOwner                 // the job was cancelled
	JobGaveUp                        // another task of the job failed on its last attempt
	DependsOnStage                   // A: index of a stage that must end first
	WaitsForCoordinator              // the job's coordinator has not started
	QueueFull                        // A: kind of resource; B: what the queue or one of its ancestors would use; C: the most that it may use
	UserLimit                        // A: kind of resource; B: what the job's user uses in the queue; C: the user's limit
	NoSuchQueue                      // the policy has no queue with the name that the job gives
	PreemptionDue                    // the policy looks for tasks to preempt, at its interval
	QueueOverShare                   // A: kind of resource; B: what the task's queue uses; C: what it is guaranteed
	FitsContainer                    // A: memory granted, bytes, the same for every task; B: memory needed, bytes
	ContainerTooSmall                // A: memory needed, bytes; B: memory of every container, bytes
	BestAligned                      // A: memory granted, bytes; B: alignment with the node, thousandths; C: tasks compared, including this one
	AlmostDone                       // A: memory granted, bytes; B: tasks of its stage that have ended; C: all tasks of the stage
	NearFairShare                    // A: jobs that are considered; B: jobs that wait
	NoBandwidth                      // A: kind of resource; B: amount needed: no node with enough CPU and memory has it free
	FitsMostAvailable                // A: memory granted, bytes; B: memory that was available on the node, bytes, more than on any other with room
	FitsAvailable                    // A, B: as FitsMostAvailable, among the nodes that the policy could choose from
	FitsReclaimed                    // A: memory granted, bytes; B: memory that was available on the node, bytes: FLEX containers return the rest
	NotAvailable                     // A: memory that must be available, bytes; B: the most available on a node with room by grants, bytes; C: growth of the FLEX containers there, bytes
	FitsNearData                     // A: memory granted, bytes; B: memory that was available on the node, bytes, no less than on any other; the node stores the data
	NodeFull                         // A: containers on the node, as many as it may run
	TooCoarse                        // A: minimum memory of the stage, bytes; B: the same in whole steps of the policy; C: memory free on the node, bytes
	NodePressure                     // A: kind of resource; B: what the node gives of it now; C: its capacity
	BestAhead                        // A: jobs compared, including this one; B: fragmentation on the node, bytes; C: over-allocation, bytes
	BestAheadOfKnown                 // A: the resource.Kinds that are left out of the score; B, C: as BestAhead
	PastDeadline                     // A: memory granted, bytes; B: when the job should have started
	WaitedTooLittle                  // A: jobs that are considered; B: jobs that wait; C: when the job is due, Never if it has no deadline
	TooFewServers                    // A: tasks that start at once on different nodes; B: how many of them have room; C: as WaitedTooLittle
	ScoresWorse                      // A: the job that was chosen; B: the score of this job; C: the score of that job, both bytes
	DeadlineDue                      // the deadline of a job passes
	TurnHasCome                      // A, B, C: as NodePressure; the task was throttled for it, and goes on
	TooFewPlaces                     // A, B, C: as TooFewServers, where several tasks may start on one node
	PausedByOwner                    // the job, or the task, was paused
	ResumedByOwner                   // the job, or the task, was paused and goes on
	PhaseDemands                     // A: phase that the task is in, the first is 1; B: CPU, millicores; C: memory, bytes, of its grant from now on
	LevelingEnds                     // the time until which leveling holds a task comes
	FitsFirstPhase                   // A: memory granted, bytes; B: CPU granted, that of the first phase, millicores; C: that of the largest phase
	FitsShort                        // A: memory granted, bytes; B: CPU granted, that of the largest phase, millicores; the task is short
	PhaseDue                         // a task should enter a phase with another grant, or is to stop
	Fluctuates                       // A: when tasks will demand more CPU than the node has; B: over-allocation, C: fragmentation, discounted milliseconds of the whole node
	Shifted                          // A: when the task goes on; B: the job of the task that keeps going
	NotShifted                       // a newer solution does not stop the task now
	RoomAgain                        // the node would not be over-allocated any more if the task went on
	ExceedsLater                     // A: when the tasks of a node with room would demand more CPU than it has if the task started now
	PhaseWaits                       // A: phase that waits, the first is 1; B: CPU that it demands; C: CPU that is free on the node, millicores
	MemoryWaits                      // A: phase that waits, the first is 1; B: memory that it needs in all; C: memory that is free on the node, bytes
	BehindPhase                      // A: memory needed, bytes: on nodes that have it free, phases of running tasks wait for memory; B: the job of one of these tasks
	PhaseAhead                       // A: phase that should begin soon, the first is 1; B: memory granted for it, bytes; C: run time at which it should begin, ns
	PhaseLate                        // A: phase that the task was granted memory for and is not in, the first is 1; B: memory granted until it begins, bytes
	OverUserQuota                    // A: a QuotaKind; B: what the user has of it; C: the most that the user may have
	OverQueueQuota                   // A, B, C: as OverUserQuota, of the job's queue
	Assigned                         // A: executors that the job holds, with this one; B: how many it is entitled to; C: executors in all
	OverEntitled                     // A: executors that the job held, with this one; B: how many it is entitled to; C: executors in all
	AllAtWork                        // A: executors that the job holds; B: how many it is entitled to; C: executors in all
	StageMoves                       // A: stage for which the executor worked; B: stage for which it works from now on
	AskedBack                        // A: executors that the job keeps, with this one; B: how many it is entitled to; C: executors in all
	StageHasMore                     // A: a stage; B: executors that it keeps, with this one; C: how many it should have
	KeptForStage                     // A: stage of the job that is about to start; B: until when the executor is kept for it, Never if until it starts
	KeptInVain                       // A: stage for which the executor was kept
	RetryDue                         // the pause of a task before its next attempt ends
	RetryLater                       // A: attempt that is to begin, at least 2; B: when it begins
	numReasons
)

// Reason is why a decision was taken: a code with operands. It is put into words only on request.
type Reason struct {
	Code ReasonCode `json:"code,omitempty"`
	A    int64      `json:"a,omitempty"`
	B    int64      `json:"b,omitempty"`
	C    int64      `json:"c,omitempty"`
}

// lacking names the resources of which no node has enough free. If it names none, some nodes have enough memory and
// some have enough cores, but no node has both.
type lacking int64

const (
	lacksMemory lacking = 1 << iota
	lacksCPU
)

// Lacking returns r, which is NoRoom, with the resources that no node has enough of, each taken by itself.
func (r Reason) Lacking(memory, cpu bool) Reason {
	var lacks lacking
	if memory {
		lacks |= lacksMemory
	}
	if cpu {
		lacks |= lacksCPU
	}
	r.C = int64(lacks)
	return r
}

// due is the clause about the time at which a waiting job comes first.
func due(deadline int64, at func(timeline.Time) string) string {
	if deadline == int64(timeline.Never) {
		return ""
	}
	return "; it comes first from " + at(timeline.Time(deadline))
}

// Words puts r into one clause for people. at prints times, so that each driver shows its own clock; nil prints them
// as time since the origin.
func (r Reason) Words(at func(timeline.Time) string) string {
	if at == nil {
		at = func(t timeline.Time) string {
			return timeline.Time(time.Duration(t).Round(time.Millisecond)).String()
		}
	}
	memory := func(v int64) string { return resource.FormatMemory(resource.Amount(v)) }
	amount := func(kind, v int64) string { return resource.Kind(kind).Format(resource.Amount(v)) }
	amountOf := func(kind, v int64) string { return resource.Kind(kind).FormatOf(resource.Amount(v)) }
	when := func(v int64) string { return at(timeline.Time(v)) }
	switch r.Code {
	case Fits:
		return fmt.Sprintf("fits with its ideal memory, %s", memory(r.A))
	case FitsUnderSized:
		return fmt.Sprintf("under-sized to %s: ends %s, no later than its job (%s)", memory(r.A), when(r.B), when(r.C))
	case FitsUnderSizedNoLimit:
		return fmt.Sprintf("under-sized to %s: ends %s, and the end of its job is not in sight", memory(r.A), when(r.B))
	case FitsInGap:
		return fmt.Sprintf("%s fit beside a reservation: ends %s, the reserved job gets the node %s", memory(r.A), when(r.B), when(r.C))
	case NoRoom:
		cores := resource.CPU.Format(resource.Amount(r.B))
		switch lacking(r.C) {
		case lacksMemory:
			return fmt.Sprintf("no node has %s free", memory(r.A))
		case lacksCPU:
			return fmt.Sprintf("no node has %s free", cores)
		}
		return fmt.Sprintf("no node has %s and %s free", memory(r.A), cores)
	case TooCoarse:
		return fmt.Sprintf("would fit under-sized, but memory is given in steps that round its least, %s, up to %s, and %s are free", memory(r.A), memory(r.B), memory(r.C))
	case NodeFull:
		return fmt.Sprintf("the node holds %d containers, as many as it may", r.A)
	case FitsContainer:
		return fmt.Sprintf("its container of %s fits; it needs %s", memory(r.A), memory(r.B))
	case BestAligned:
		return fmt.Sprintf("%s fit, the best of %d by alignment (%.3f) and remaining work", memory(r.A), r.C, float64(r.B)/1000)
	case AlmostDone:
		return fmt.Sprintf("%s fit, and %d of %d tasks of its stage have ended: the last come first", memory(r.A), r.B, r.C)
	case NearFairShare:
		return fmt.Sprintf("only the %d of %d jobs furthest from their fair share are considered", r.A, r.B)
	case NoBandwidth:
		return fmt.Sprintf("no node with enough CPU and memory has %s free", amountOf(r.A, r.B))
	case ContainerTooSmall:
		return fmt.Sprintf("refused: it needs %s, and every container has %s", memory(r.A), memory(r.B))
	case FitsMostAvailable:
		return fmt.Sprintf("gets %s where most memory is left, %s", memory(r.A), memory(r.B))
	case FitsNearData:
		return fmt.Sprintf("gets %s where its data is, and no node has more memory left than %s", memory(r.A), memory(r.B))
	case FitsAvailable:
		return fmt.Sprintf("gets %s where %s are left", memory(r.A), memory(r.B))
	case FitsReclaimed:
		return fmt.Sprintf("gets %s where %s are left: FLEX containers that have grown give back the rest", memory(r.A), memory(r.B))
	case NotAvailable:
		words := fmt.Sprintf("needs %s, and the node with most left has %s", memory(r.A), memory(r.B))
		if r.C > 0 {
			words += fmt.Sprintf(": FLEX containers there have grown by %s", memory(r.C))
		}
		return words
	case WouldEndAfterJob:
		return fmt.Sprintf("would fit under-sized (%s), but end %s, after its job (%s)", memory(r.A), when(r.B), when(r.C))
	case DiskBudget:
		return fmt.Sprintf("would fit under-sized, but needs %s of disk and %s are left for such tasks", resource.FormatRate(resource.Amount(r.A)), resource.FormatRate(resource.Amount(r.B)))
	case BehindJob:
		return fmt.Sprintf("job %d comes first", r.A)
	case NodeReserved:
		return fmt.Sprintf("the node is reserved for job %d", r.A)
	case ReservedForTask:
		return fmt.Sprintf("kept until %s are free (now %s)", amount(r.A, r.B), amount(r.A, r.C))
	case ReservationUsed:
		return "its task started"
	case ReservationNotNeeded:
		return "the job needs it no more"
	case ReservationHopeless:
		return "what runs there has no known end"
	case EstimatesDue:
		return "to renew estimated ends"
	case CancelledByOwner:
		return "cancelled by its owner"
	case JobGaveUp:
		return "another task of the job failed as often as it may"
	case DependsOnStage:
		return fmt.Sprintf("waits for stage %d to end", r.A)
	case WaitsForCoordinator:
		return "its coordinator has not started"
	case QueueFull:
		return fmt.Sprintf("its queue would hold %s, and may hold %s", amountOf(r.A, r.B), amount(r.A, r.C))
	case UserLimit:
		return fmt.Sprintf("its user holds %s in the queue, and may hold %s", amountOf(r.A, r.B), amount(r.A, r.C))
	case NoSuchQueue:
		return "the policy has no such queue"
	case PreemptionDue:
		return "to look for tasks to preempt"
	case QueueOverShare:
		return fmt.Sprintf("preempted: its queue holds %s, %s are guaranteed to it, and others wait for theirs", amountOf(r.A, r.B), amount(r.A, r.C))
	case NodePressure:
		return fmt.Sprintf("node pressure: the node gives %s, of %s", amountOf(r.A, r.B), amount(r.A, r.C))
	case BestAhead:
		return fmt.Sprintf("scores best of %d: fragmentation %s, over-allocation %s", r.A, memory(r.B), memory(r.C))
	case BestAheadOfKnown:
		return fmt.Sprintf("scores best: fragmentation %s, over-allocation %s; of %s the node has no number, so that it does not count", memory(r.B), memory(r.C), resource.Kinds(r.A))
	case PastDeadline:
		return fmt.Sprintf("gets %s before others, however they score: it should have started %s", memory(r.A), when(r.B))
	case WaitedTooLittle:
		return fmt.Sprintf("only the %d of %d jobs that have waited longest are considered", r.A, r.B) + due(r.C, at)
	case TooFewServers:
		if r.A == 1 {
			return "has room only on servers that run a task of its stage, and its tasks run on different servers" + due(r.C, at)
		}
		return fmt.Sprintf("its %d tasks start at once on different servers, and there is room for %d", r.A, r.B) + due(r.C, at)
	case TooFewPlaces:
		return fmt.Sprintf("its %d tasks start at once, and there is room for %d", r.A, r.B) + due(r.C, at)
	case ScoresWorse:
		return fmt.Sprintf("scores %s, and job %d scored %s (less is better)", memory(r.B), r.A, memory(r.C))
	case TurnHasCome:
		return fmt.Sprintf("its turn has come: the node gives %s, of %s", amountOf(r.A, r.B), amount(r.A, r.C))
	case PausedByOwner:
		return "paused by its owner"
	case ResumedByOwner:
		return "resumed by its owner"
	case PhaseDemands:
		return fmt.Sprintf("its phase %d is granted %s and %s", r.A, resource.CPU.Format(resource.Amount(r.B)), memory(r.C))
	case LevelingEnds:
		return "leveling ends its hold of a task"
	case FitsFirstPhase:
		return fmt.Sprintf("its first phase fits: %s, of %s at most, with %s", resource.CPU.Format(resource.Amount(r.B)), resource.CPU.Format(resource.Amount(r.C)), memory(r.A))
	case FitsShort:
		return fmt.Sprintf("is short and fits with its largest phase: %s with %s", resource.CPU.Format(resource.Amount(r.B)), memory(r.A))
	case PhaseDue:
		return "a task should enter its next phase, or is to stop"
	case Fluctuates:
		return fmt.Sprintf("from %s on its tasks demand more cores than it has; fluctuation %.1f s of the whole node, %.1f s of it over-allocated", when(r.A), float64(r.B+r.C)/1000, float64(r.B)/1000)
	case Shifted:
		return fmt.Sprintf("can wait until %s without delaying its job, and a task of job %d keeps going: both together demand more than the node has", when(r.A), r.B)
	case NotShifted:
		return "a newer solution lets it go on"
	case RoomAgain:
		return "the node has cores for it again"
	case ExceedsLater:
		return fmt.Sprintf("there is room for its first phase, but from %s on tasks would demand more cores than the node has", when(r.A))
	case MemoryWaits:
		return fmt.Sprintf("its phase %d waits for %s of memory: %s are free on the node, for it and for what waits before it", r.A, memory(r.B), memory(r.C))
	case BehindPhase:
		return fmt.Sprintf("where %s are free, a phase of a running task of job %d waits for memory and comes first", memory(r.A), r.B)
	case PhaseAhead:
		return fmt.Sprintf("is granted %s for its phase %d, which should begin when it has run for %v", memory(r.B), r.A, time.Duration(r.C).Round(100*time.Millisecond))
	case PhaseLate:
		return fmt.Sprintf("is further from its phase %d than was forecast: until that begins, it is granted %s", r.A, memory(r.B))
	case OverUserQuota:
		return overQuota("user", r)
	case OverQueueQuota:
		return overQuota("queue", r)
	case Assigned:
		return fmt.Sprintf("assigned to the job, which now holds %d of the %s that it is entitled to, of %d in all", r.A, executors(r.B), r.C)
	case OverEntitled:
		return fmt.Sprintf("given back: the job held %s and is entitled to %d of %d", executors(r.A), r.B, r.C)
	case AskedBack:
		return fmt.Sprintf("asked back: the job holds %s and is entitled to %d of %d", executors(r.A), r.B, r.C)
	case StageHasMore:
		return fmt.Sprintf("asked back: stage %d has %s, and should have %d", r.A, executors(r.B), r.C)
	case AllAtWork:
		if r.A < r.B {
			return fmt.Sprintf("the job holds %d of the %s that it is entitled to: another job must give one back first", r.A, executors(r.B))
		}
		if r.A == 1 {
			return fmt.Sprintf("the job holds one executor, which works; it is entitled to %d of %d", r.B, r.C)
		}
		return fmt.Sprintf("the job holds %d executors, and all of them work; it is entitled to %d of %d", r.A, r.B, r.C)
	case StageMoves:
		return fmt.Sprintf("moves from stage %d to stage %d of its job", r.A, r.B)
	case KeptForStage:
		if r.B == int64(timeline.Never) {
			return fmt.Sprintf("kept idle for stage %d of its job, which starts when tasks that run have ended", r.A)
		}
		return fmt.Sprintf("kept idle until %s at most for stage %d of its job, which starts when tasks that run have ended", when(r.B), r.A)
	case KeptInVain:
		return fmt.Sprintf("given back: it was kept for stage %d of its job for as long as it may, and that has not started", r.A)
	case PhaseWaits:
		return fmt.Sprintf("its phase %d waits for %s, and %s are free", r.A, resource.CPU.Format(resource.Amount(r.B)), resource.CPU.Format(resource.Amount(r.C)))
	case DeadlineDue:
		return "the deadline of a job passes"
	case RetryDue:
		return "the pause of a task before its next attempt ends"
	case RetryLater:
		return fmt.Sprintf("attempt %d begins at %s, because attempt %d failed", r.A, when(r.B), r.A-1)
	}
	return "no reason recorded"
}

// executors says how many executors there are.
func executors(n int64) string {
	if n == 1 {
		return "1 executor"
	}
	return fmt.Sprintf("%d executors", n)
}

// overQuota says that too little of a quota is left.
func overQuota(whose string, r Reason) string {
	k := QuotaKind(r.A)
	words := fmt.Sprintf("over the %s quota of its %s: %s of %s taken", k, whose, k.Format(r.B), k.Format(r.C))
	if r.B < r.C {
		words += ", and it needs more than is left"
	}
	return words
}
