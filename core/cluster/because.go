package cluster

import (
	"fmt"
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Each reason code with operands has a constructor, Because and the name of the code, which takes them (BecauseReserved
// constructs ReservedForTask). Because constructs the reasons without operands.

// Because returns the reason with a code that has no operands. It panics if the code has operands.
func Because(code ReasonCode) Reason {
	switch code {
	case ReservationUsed, ReservationNotNeeded, ReservationHopeless, EstimatesDue, CancelledByOwner, JobGaveUp, WaitsForCoordinator,
		NoSuchQueue, PreemptionDue, DeadlineDue, PausedByOwner, ResumedByOwner, LevelingEnds, PhaseDue, NotShifted, RoomAgain, RetryDue:
		return Reason{Code: code}
	}
	panic(fmt.Sprintf("cluster: reason %d has operands: it is made by a function of its own", code))
}

// BecauseFits: a task gets its ideal memory.
func BecauseFits(memory resource.Amount) Reason { return Reason{Code: Fits, A: int64(memory)} }

// BecauseFitsUnderSized: an under-sized task ends no later than its job.
func BecauseFitsUnderSized(memory resource.Amount, end, jobEnd timeline.Time) Reason {
	return Reason{FitsUnderSized, int64(memory), int64(end), int64(jobEnd)}
}

// BecauseFitsUnderSizedNoLimit: an under-sized task may end at any time, because the end of its job is unknown.
func BecauseFitsUnderSizedNoLimit(memory resource.Amount, end timeline.Time) Reason {
	return Reason{Code: FitsUnderSizedNoLimit, A: int64(memory), B: int64(end)}
}

// BecauseFitsInGap: a task ends before the job that reserved the node can use the node.
func BecauseFitsInGap(memory resource.Amount, end, until timeline.Time) Reason {
	return Reason{FitsInGap, int64(memory), int64(end), int64(until)}
}

// BecauseFitsContainer: every task is granted the same memory; needed is the memory that this task needs.
func BecauseFitsContainer(memory, needed resource.Amount) Reason {
	return Reason{Code: FitsContainer, A: int64(memory), B: int64(needed)}
}

// BecauseBestAligned: of the compared tasks that fit, this task suits the node best. Alignment is in thousandths.
func BecauseBestAligned(memory resource.Amount, alignment int64, compared int) Reason {
	return Reason{BestAligned, int64(memory), alignment, int64(compared)}
}

// BecauseAlmostDone: the last tasks of a stage are preferred, and ended of the stage's tasks have ended.
func BecauseAlmostDone(memory resource.Amount, ended, tasks int) Reason {
	return Reason{AlmostDone, int64(memory), int64(ended), int64(tasks)}
}

// BecauseFitsMostAvailable: of all nodes with room, this node has the most memory available.
func BecauseFitsMostAvailable(memory, available resource.Amount) Reason {
	return Reason{Code: FitsMostAvailable, A: int64(memory), B: int64(available)}
}

// BecauseFitsAvailable: of the nodes that the policy could choose from, this one has the most memory available.
func BecauseFitsAvailable(memory, available resource.Amount) Reason {
	return Reason{Code: FitsAvailable, A: int64(memory), B: int64(available)}
}

// BecauseFitsReclaimed: only part of the memory is available; FLEX containers on the node give back the rest.
func BecauseFitsReclaimed(memory, available resource.Amount) Reason {
	return Reason{Code: FitsReclaimed, A: int64(memory), B: int64(available)}
}

// BecauseFitsNearData: the node stores the data of the task, and no node has more memory available.
func BecauseFitsNearData(memory, available resource.Amount) Reason {
	return Reason{Code: FitsNearData, A: int64(memory), B: int64(available)}
}

// BecauseNoRoom: no node has both the needed memory and the needed CPU free.
func BecauseNoRoom(need resource.Vector) Reason {
	return Reason{Code: NoRoom, A: int64(need[resource.Memory]), B: int64(need[resource.CPU])}
}

// BecauseNoBandwidth: no node with enough memory and CPU has the needed amount of another resource free.
func BecauseNoBandwidth(k resource.Kind, need resource.Amount) Reason {
	return Reason{Code: NoBandwidth, A: int64(k), B: int64(need)}
}

// BecauseNodeFull: the node runs as many containers as it may.
func BecauseNodeFull(containers int) Reason { return Reason{Code: NodeFull, A: int64(containers)} }

// BecauseNotAvailable: a FLEX container requires more available memory than the best node has, because FLEX containers
// have grown there.
func BecauseNotAvailable(must, available, grown resource.Amount) Reason {
	return Reason{NotAvailable, int64(must), int64(available), int64(grown)}
}

// BecauseWouldEndAfterJob: under-sized, the task would end later than its job.
func BecauseWouldEndAfterJob(memory resource.Amount, end, jobEnd timeline.Time) Reason {
	return Reason{WouldEndAfterJob, int64(memory), int64(end), int64(jobEnd)}
}

// BecauseDiskBudget: an under-sized task needs more disk bandwidth than is left for under-sized tasks, both in bytes/s.
func BecauseDiskBudget(need, left resource.Amount) Reason {
	return Reason{Code: DiskBudget, A: int64(need), B: int64(left)}
}

// BecauseTooCoarse: the minimum memory of a stage, rounded up to whole steps of the policy, is more than is free.
func BecauseTooCoarse(least, inSteps, free resource.Amount) Reason {
	return Reason{TooCoarse, int64(least), int64(inSteps), int64(free)}
}

// BecauseContainerTooSmall: a task needs more memory than the fixed size of containers.
func BecauseContainerTooSmall(needed, memory resource.Amount) Reason {
	return Reason{Code: ContainerTooSmall, A: int64(needed), B: int64(memory)}
}

// BecauseBehindJob: another job comes first.
func BecauseBehindJob(first JobID) Reason { return Reason{Code: BehindJob, A: int64(first)} }

// BecauseNearFairShare: the policy considers only the waiting jobs that are furthest below their fair share.
func BecauseNearFairShare(considered, waiting int) Reason {
	return Reason{Code: NearFairShare, A: int64(considered), B: int64(waiting)}
}

// BecauseDependsOnStage: the tasks of a stage, given by its index, must end first.
func BecauseDependsOnStage(stage int) Reason { return Reason{Code: DependsOnStage, A: int64(stage)} }

// BecauseNodeReserved: a node has room but is reserved for another job.
func BecauseNodeReserved(holder JobID) Reason { return Reason{Code: NodeReserved, A: int64(holder)} }

// BecauseReserved: a node is reserved until a task's need is free there. The reason names memory if the node lacks
// memory, otherwise the last other resource that the node lacks.
func BecauseReserved(need, free resource.Vector) Reason {
	short := resource.Memory
	for k := range need {
		if need[short] <= free[short] && need[k] > free[k] {
			short = resource.Kind(k)
		}
	}
	return Reason{ReservedForTask, int64(short), int64(need[short]), int64(free[short])}
}

// BecauseQueueFull: the queue of a job, or an ancestor of the queue, would use more of a resource than it may.
func BecauseQueueFull(k resource.Kind, would, most resource.Amount) Reason {
	return Reason{QueueFull, int64(k), int64(would), int64(most)}
}

// BecauseUserLimit: the owner of a job uses more of a resource in the queue than the limit of a user.
func BecauseUserLimit(k resource.Kind, holds, limit resource.Amount) Reason {
	return Reason{UserLimit, int64(k), int64(holds), int64(limit)}
}

// BecauseQueueOverShare: the queue of a task uses more of a resource than it is guaranteed.
func BecauseQueueOverShare(k resource.Kind, holds, guaranteed resource.Amount) Reason {
	return Reason{QueueOverShare, int64(k), int64(holds), int64(guaranteed)}
}

// BecauseNodePressure: the tasks of a node contend for a resource, and the node gives less of it than its capacity.
func BecauseNodePressure(k resource.Kind, gives, capacity resource.Amount) Reason {
	return Reason{NodePressure, int64(k), int64(gives), int64(capacity)}
}

// BecauseTurnHasCome: the tasks of a node that is under pressure take turns, and the task was throttled long enough.
func BecauseTurnHasCome(k resource.Kind, gives, capacity resource.Amount) Reason {
	return Reason{TurnHasCome, int64(k), int64(gives), int64(capacity)}
}

// BecauseBestAhead: of the jobs that were compared, this one leaves the least of the node's future resources idle or
// over-allocated. Both areas are amounts of rates times time, which are bytes.
func BecauseBestAhead(compared int, idle, over float64) Reason {
	return Reason{BestAhead, int64(compared), wholeBytes(idle), wholeBytes(over)}
}

// BecauseBestAheadOfKnown is BecauseBestAhead on a node that has no number of some kinds, which therefore do not count.
func BecauseBestAheadOfKnown(unknown resource.Kinds, idle, over float64) Reason {
	return Reason{BestAheadOfKnown, int64(unknown), wholeBytes(idle), wholeBytes(over)}
}

// BecausePastDeadline: a job that should have started before now comes before all jobs that score better.
func BecausePastDeadline(memory resource.Amount, due timeline.Time) Reason {
	return Reason{Code: PastDeadline, A: int64(memory), B: int64(due)}
}

// BecauseWaitedTooLittle: the policy considers only the jobs that have waited longest. The job comes first when it is
// due, unless that is Never.
func BecauseWaitedTooLittle(considered, waiting int, due timeline.Time) Reason {
	return Reason{WaitedTooLittle, int64(considered), int64(waiting), int64(due)}
}

// BecauseTooFewServers: tasks that start at once on different nodes have room only in part. due is as in
// BecauseWaitedTooLittle.
func BecauseTooFewServers(tasks, room int, due timeline.Time) Reason {
	return Reason{TooFewServers, int64(tasks), int64(room), int64(due)}
}

// BecauseTooFewPlaces: tasks that start at once have room only in part, although several may share a node. due is as in
// BecauseWaitedTooLittle.
func BecauseTooFewPlaces(tasks, room int, due timeline.Time) Reason {
	return Reason{TooFewPlaces, int64(tasks), int64(room), int64(due)}
}

// BecauseScoresWorse: another job was chosen for the room, because its score was less.
func BecauseScoresWorse(chosen JobID, score, least float64) Reason {
	return Reason{ScoresWorse, int64(chosen), wholeBytes(score), wholeBytes(least)}
}

// BecausePhaseDemands: a task has entered a phase of its forecast, an index of its stage's Phases, with another grant.
func BecausePhaseDemands(phase int32, grant resource.Vector) Reason {
	return Reason{PhaseDemands, int64(phase) + 1, int64(grant[resource.CPU]), int64(grant[resource.Memory])}
}

// BecauseFitsFirstPhase: a task is granted what its first phase demands; most is what its largest phase does.
func BecauseFitsFirstPhase(memory, cpu, most resource.Amount) Reason {
	return Reason{FitsFirstPhase, int64(memory), int64(cpu), int64(most)}
}

// BecauseFitsShort: a short task is granted the CPU that its largest phase demands.
func BecauseFitsShort(memory, cpu resource.Amount) Reason {
	return Reason{Code: FitsShort, A: int64(memory), B: int64(cpu)}
}

// BecauseFluctuates: tasks of a node will demand more CPU than it has, from a time on. What they demand too much and too little is in
// discounted seconds of the whole node.
func BecauseFluctuates(at timeline.Time, over, idle float64) Reason {
	thousandths := func(s float64) int64 { return int64(math.Round(min(s*1000, 1<<62))) }
	return Reason{Fluctuates, int64(at), thousandths(over), thousandths(idle)}
}

// BecauseShifted: a task stops until a time, so that a task of another job, or of its own, keeps going.
func BecauseShifted(until timeline.Time, keepsGoing JobID) Reason {
	return Reason{Code: Shifted, A: int64(until), B: int64(keepsGoing)}
}

// BecauseExceedsLater: the nodes with room for a task would have too few cores later, the first of them at the given time.
func BecauseExceedsLater(at timeline.Time) Reason { return Reason{Code: ExceedsLater, A: int64(at)} }

// BecausePhaseWaits: a phase of a forecast, an index of its stage's Phases, demands more CPU than is free.
func BecausePhaseWaits(phase int32, cpu, free resource.Amount) Reason {
	return Reason{PhaseWaits, int64(phase) + 1, int64(cpu), int64(free)}
}

// BecauseMemoryWaits: a phase of a forecast, an index of its stage's Phases, needs more memory than is free beyond what its task has.
func BecauseMemoryWaits(phase int32, needs, free resource.Amount) Reason {
	return Reason{MemoryWaits, int64(phase) + 1, int64(needs), int64(free)}
}

// BecauseBehindPhase: on nodes that have enough free memory for a task, phases of running tasks wait for memory; first is the job of one of
// these tasks.
func BecauseBehindPhase(memory resource.Amount, first JobID) Reason {
	return Reason{Code: BehindPhase, A: int64(memory), B: int64(first)}
}

// BecausePhaseAhead: a phase of a forecast, an index of its stage's Phases, should begin when its task has run for a time, and its memory is
// granted before.
func BecausePhaseAhead(phase int32, memory resource.Amount, after time.Duration) Reason {
	return Reason{PhaseAhead, int64(phase) + 1, int64(memory), int64(after)}
}

// BecausePhaseLate: a task was granted memory for a phase of a forecast, an index of its stage's Phases, but is in an earlier one.
func BecausePhaseLate(phase int32, memory resource.Amount) Reason {
	return Reason{Code: PhaseLate, A: int64(phase) + 1, B: int64(memory)}
}

// BecauseOverQuota: too little is left of a quota of the job's user or queue.
func BecauseOverQuota(queue bool, k QuotaKind, taken, most int64) Reason {
	code := OverUserQuota
	if queue {
		code = OverQueueQuota
	}
	return Reason{code, int64(k), taken, most}
}

// BecauseAssigned: a job is assigned an executor; held are those that it holds, with this one.
func BecauseAssigned(held, entitled, all int) Reason {
	return Reason{Assigned, int64(held), int64(entitled), int64(all)}
}

// BecauseOverEntitled: a job holds more executors than it is entitled to, and gives one back.
func BecauseOverEntitled(held, entitled, all int) Reason {
	return Reason{OverEntitled, int64(held), int64(entitled), int64(all)}
}

// BecauseAskedBack: a job that starts its own tasks keeps more executors than it is entitled to, and is asked to give one back.
func BecauseAskedBack(kept, entitled, all int) Reason {
	return Reason{AskedBack, int64(kept), int64(entitled), int64(all)}
}

// BecauseStageHasMore: a stage of such a job keeps more executors than it should have.
func BecauseStageHasMore(stage, kept, should int) Reason {
	return Reason{StageHasMore, int64(stage), int64(kept), int64(should)}
}

// BecauseAllAtWork: all executors that a job holds, or is entitled to, work.
func BecauseAllAtWork(held, entitled, all int) Reason {
	return Reason{AllAtWork, int64(held), int64(entitled), int64(all)}
}

// BecauseStageMoves: an executor of a job works for another stage from now on; both are indexes.
func BecauseStageMoves(from, to int) Reason { return Reason{StageMoves, int64(from), int64(to), 0} }

// BecauseKept: an executor of a job is kept until then for a stage that is about to start.
func BecauseKept(stage int, until timeline.Time) Reason {
	return Reason{KeptForStage, int64(stage), int64(until), 0}
}

// BecauseKeptInVain: an executor was kept for a stage that has not started in time.
func BecauseKeptInVain(stage int) Reason { return Reason{Code: KeptInVain, A: int64(stage)} }

// BecauseRetryLater: a task has failed, and pauses until its next attempt, which has that number.
func BecauseRetryLater(attempt int, at timeline.Time) Reason {
	return Reason{Code: RetryLater, A: int64(attempt), B: int64(at)}
}

// wholeBytes rounds an amount that may be larger than any integer.
func wholeBytes(b float64) int64 { return int64(math.Round(min(b, 1<<62))) }
