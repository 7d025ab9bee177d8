package cluster

import (
	"fmt"
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// ReasonCode names why a decision was taken.
type ReasonCode uint8

// Reason is why a decision was taken: a code with operands. It is put into words only on request.
type Reason struct {
	Code ReasonCode `json:"code,omitempty"`
	A    int64      `json:"a,omitempty"`
	B    int64      `json:"b,omitempty"`
	C    int64      `json:"c,omitempty"`
}

// Words puts r into one clause for people. at prints times, so that each driver shows its own clock; nil prints them
// as time since the origin.
func (r Reason) Words(at func(timeline.Time) string) string {
	if at == nil {
		at = func(t timeline.Time) string {
			return timeline.Time(time.Duration(t).Round(time.Millisecond)).String()
		}
	}
	if r.Code == 0 || int(r.Code) >= len(sentences) {
		return "no reason recorded"
	}
	s := &sentences[r.Code]
	var shown []any
	for i, v := range []int64{r.A, r.B, r.C}[:len(s.operands)] {
		shown = append(shown, s.operands[i](r, v, at))
	}
	return fmt.Sprintf(s.words, shown...)
}

// Because returns the reason with a code that has no operands. It panics if the code has operands.
func Because(code ReasonCode) Reason {
	if len(sentences[code].operands) > 0 {
		panic(fmt.Sprintf("cluster: reason %d has operands: it is made by a function of its own", code))
	}
	return Reason{Code: code}
}

// sentences are the words of each code. They have a verb for each operand that they show: A is the first, B the second.
var sentences = make([]sentence, 1)

type sentence struct {
	words    string
	operands []show
}

// show returns what stands in a sentence for v, an operand of r. at prints times.
type show = func(r Reason, v int64, at clock) any

type clock = func(timeline.Time) string

// says returns another code, of a reason without operands: see Because. says1, says2 and says3 also return the function
// that makes the reason of its operands. A sentence that shows them in another order names each by its number.
func says(words string, operands ...show) ReasonCode {
	sentences = append(sentences, sentence{words, operands})
	return ReasonCode(len(sentences) - 1)
}

func says1[T any](words string, a operand[T]) (ReasonCode, func(T) Reason) {
	code := says(words, a.show)
	return code, func(x T) Reason { return Reason{Code: code, A: a.put(x)} }
}

func says2[T, U any](words string, a operand[T], b operand[U]) (ReasonCode, func(T, U) Reason) {
	code := says(words, a.show, b.show)
	return code, func(x T, y U) Reason { return Reason{Code: code, A: a.put(x), B: b.put(y)} }
}

func says3[T, U, V any](words string, a operand[T], b operand[U], c operand[V]) (ReasonCode, func(T, U, V) Reason) {
	code := says(words, a.show, b.show, c.show)
	return code, func(x T, y U, z V) Reason { return Reason{code, a.put(x), b.put(y), c.put(z)} }
}

// operand is how a T is kept in a reason, and shown.
type operand[T any] struct {
	put  func(T) int64
	show show
}

// asIs is an operand that is kept as it is.
func asIs[T ~int | ~int32 | ~int64 | ~uint8 | ~uint16](show show) operand[T] {
	return operand[T]{func(v T) int64 { return int64(v) }, show}
}

// What operands are.
var (
	number = asIs[int](asNumber)
	job    = asIs[JobID](asNumber)
	phase  = operand[int32]{func(index int32) int64 { return int64(index) + 1 }, asNumber} // the first is 1
	memory = asIs[resource.Amount](asMemory)
	area   = operand[float64]{wholeBytes, asMemory} // rates times time, which are bytes
	cores  = asIs[resource.Amount](func(_ Reason, v int64, _ clock) any { return resource.CPU.Format(resource.Amount(v)) })
	rate   = asIs[resource.Amount](func(_ Reason, v int64, _ clock) any { return resource.FormatRate(resource.Amount(v)) })
	when   = asIs[timeline.Time](func(_ Reason, v int64, at clock) any { return at(timeline.Time(v)) })
	span   = asIs[time.Duration](func(_ Reason, v int64, _ clock) any {
		return time.Duration(v).Round(100 * time.Millisecond)
	})

	kind   = asIs[resource.Kind](unseen) // of which amount and amountOf are
	kinds  = asIs[resource.Kinds](func(_ Reason, v int64, _ clock) any { return resource.Kinds(v) })
	amount = asIs[resource.Amount](func(r Reason, v int64, _ clock) any {
		return resource.Kind(r.A).Format(resource.Amount(v))
	})
	amountOf = asIs[resource.Amount](func(r Reason, v int64, _ clock) any {
		return resource.Kind(r.A).FormatOf(resource.Amount(v))
	})

	inThousandths = asIs[int64](func(_ Reason, v int64, _ clock) any { return float64(v) / 1000 })
	executors     = asIs[int](func(_ Reason, v int64, _ clock) any {
		if v == 1 {
			return "1 executor"
		}
		return fmt.Sprintf("%d executors", v)
	})
	// due is the time at which a waiting job comes first, Never if it has no deadline.
	due = asIs[timeline.Time](func(_ Reason, v int64, at clock) any {
		if v == int64(timeline.Never) {
			return ""
		}
		return "; it comes first from " + at(timeline.Time(v))
	})

	quota      = asIs[QuotaKind](func(_ Reason, v int64, _ clock) any { return QuotaKind(v) }) // of which B and C are
	ofQuota    = asIs[int64](func(r Reason, v int64, _ clock) any { return QuotaKind(r.A).Format(v) })
	allOfQuota = asIs[int64](func(r Reason, v int64, _ clock) any {
		if r.B < v {
			return QuotaKind(r.A).Format(v) + " taken, and it needs more than is left"
		}
		return QuotaKind(r.A).Format(v) + " taken"
	})
)

func unseen(Reason, int64, clock) any         { return nil }
func asNumber(_ Reason, v int64, _ clock) any { return v }
func asMemory(_ Reason, v int64, _ clock) any { return resource.FormatMemory(resource.Amount(v)) }

// wholeBytes rounds an amount that may be larger than any integer.
func wholeBytes(b float64) int64 { return int64(math.Round(min(b, 1<<62))) }

func thousandths(s float64) int64 { return wholeBytes(s * 1000) }

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

// The reasons: each has its code, the function that makes it of its operands, and its words. Event logs have the
// numbers of the codes, which are in this order: a new reason comes last.

var Fits, BecauseFits = says1("fits with its ideal memory, %s", memory)
var FitsUnderSized, BecauseFitsUnderSized = says3("under-sized to %s: ends %s, no later than its job (%s)",
	memory, when, when)
var FitsUnderSizedNoLimit, BecauseFitsUnderSizedNoLimit = says2(
	"under-sized to %s: ends %s, and the end of its job is not in sight", memory, when)
var FitsInGap, BecauseFitsInGap = says3("%s fit beside a reservation: ends %s, the reserved job gets the node %s",
	memory, when, when)
var NoRoom, _ = says2("no node has %[1]s free", asIs[resource.Amount](func(r Reason, needed int64, at clock) any {
	switch lacking(r.C) {
	case lacksMemory:
		return memory.show(r, needed, at)
	case lacksCPU:
		return cores.show(r, r.B, at)
	}
	return fmt.Sprintf("%s and %s", memory.show(r, needed, at), cores.show(r, r.B, at))
}), cores)

// BecauseNoRoom: no node has both the needed memory and the needed CPU free. book.Plan.Wait adds which is lacking.
func BecauseNoRoom(need resource.Vector) Reason {
	return Reason{Code: NoRoom, A: int64(need[resource.Memory]), B: int64(need[resource.CPU])}
}

var WouldEndAfterJob, BecauseWouldEndAfterJob = says3("would fit under-sized (%s), but end %s, after its job (%s)",
	memory, when, when)
var DiskBudget, BecauseDiskBudget = says2(
	"would fit under-sized, but needs %s of disk and %s are left for such tasks", rate, rate)
var BehindJob, BecauseBehindJob = says1("job %d comes first", job)
var NodeReserved, BecauseNodeReserved = says1("the node is reserved for job %d", job)
var ReservedForTask, reservedForTask = says3("kept until %[2]s are free (now %[3]s)", kind, amount, amount)

// BecauseReserved: a node is reserved until a task's need is free there. The reason names memory if the node lacks
// memory, otherwise the last other resource that the node lacks.
func BecauseReserved(need, free resource.Vector) Reason {
	short := resource.Memory
	for k := range need {
		if need[short] <= free[short] && need[k] > free[k] {
			short = resource.Kind(k)
		}
	}
	return reservedForTask(short, need[short], free[short])
}

var ReservationUsed = says("its task started")
var ReservationNotNeeded = says("the job needs it no more")
var ReservationHopeless = says("what runs there has no known end")
var EstimatesDue = says("to renew estimated ends")
var CancelledByOwner = says("cancelled by its owner")
var JobGaveUp = says("another task of the job failed as often as it may")
var DependsOnStage, BecauseDependsOnStage = says1("waits for stage %d to end", number)
var WaitsForCoordinator = says("its coordinator has not started")
var QueueFull, BecauseQueueFull = says3("its queue would hold %[2]s, and may hold %[3]s", kind, amountOf, amount)
var UserLimit, BecauseUserLimit = says3("its user holds %[2]s in the queue, and may hold %[3]s", kind, amountOf, amount)
var NoSuchQueue = says("the policy has no such queue")
var PreemptionDue = says("to look for tasks to preempt")
var QueueOverShare, BecauseQueueOverShare = says3(
	"preempted: its queue holds %[2]s, %[3]s are guaranteed to it, and others wait for theirs", kind, amountOf, amount)
var FitsContainer, BecauseFitsContainer = says2("its container of %s fits; it needs %s", memory, memory)
var ContainerTooSmall, BecauseContainerTooSmall = says2("refused: it needs %s, and every container has %s",
	memory, memory)
var BestAligned, BecauseBestAligned = says3("%[1]s fit, the best of %[3]d by alignment (%.3[2]f) and remaining work",
	memory, inThousandths, number)
var AlmostDone, BecauseAlmostDone = says3("%s fit, and %d of %d tasks of its stage have ended: the last come first",
	memory, number, number)
var NearFairShare, BecauseNearFairShare = says2(
	"only the %d of %d jobs furthest from their fair share are considered", number, number)
var NoBandwidth, BecauseNoBandwidth = says2("no node with enough CPU and memory has %[2]s free", kind, amountOf)
var FitsMostAvailable, BecauseFitsMostAvailable = says2("gets %s where most memory is left, %s", memory, memory)
var FitsAvailable, BecauseFitsAvailable = says2("gets %s where %s are left", memory, memory)
var FitsReclaimed, BecauseFitsReclaimed = says2(
	"gets %s where %s are left: FLEX containers that have grown give back the rest", memory, memory)
var NotAvailable, BecauseNotAvailable = says3("needs %s, and the node with most left has %s%s", memory, memory,
	asIs[resource.Amount](func(r Reason, grown int64, at clock) any {
		if grown <= 0 {
			return ""
		}
		return fmt.Sprintf(": FLEX containers there have grown by %s", memory.show(r, grown, at))
	}))
var FitsNearData, BecauseFitsNearData = says2("gets %s where its data is, and no node has more memory left than %s",
	memory, memory)
var NodeFull, BecauseNodeFull = says1("the node holds %d containers, as many as it may", number)
var TooCoarse, BecauseTooCoarse = says3(
	"would fit under-sized, but memory is given in steps that round its least, %s, up to %s, and %s are free",
	memory, memory, memory)
var NodePressure, BecauseNodePressure = says3("node pressure: the node gives %[2]s, of %[3]s", kind, amountOf, amount)
var BestAhead, BecauseBestAhead = says3("scores best of %d: fragmentation %s, over-allocation %s", number, area, area)
var BestAheadOfKnown, BecauseBestAheadOfKnown = says3(
	"scores best: fragmentation %[2]s, over-allocation %[3]s; of %[1]s the node has no number, "+
		"so that it does not count", kinds, area, area)
var PastDeadline, BecausePastDeadline = says2("gets %s before others, however they score: it should have started %s",
	memory, when)
var WaitedTooLittle, BecauseWaitedTooLittle = says3(
	"only the %d of %d jobs that have waited longest are considered%s", number, number, due)
var TooFewServers, BecauseTooFewServers = says3("%[1]s%[3]s", asIs[int](func(r Reason, tasks int64, _ clock) any {
	if tasks == 1 {
		return "has room only on servers that run a task of its stage, and its tasks run on different servers"
	}
	return fmt.Sprintf("its %d tasks start at once on different servers, and there is room for %d", tasks, r.B)
}), number, due)
var ScoresWorse, BecauseScoresWorse = says3("scores %[2]s, and job %[1]d scored %[3]s (less is better)",
	job, area, area)
var DeadlineDue = says("the deadline of a job passes")
var TurnHasCome, BecauseTurnHasCome = says3("its turn has come: the node gives %[2]s, of %[3]s", kind, amountOf, amount)
var TooFewPlaces, BecauseTooFewPlaces = says3("its %d tasks start at once, and there is room for %d%s",
	number, number, due)
var PausedByOwner = says("paused by its owner")
var ResumedByOwner = says("resumed by its owner")
var PhaseDemands, phaseDemands = says3("its phase %d is granted %s and %s", phase, cores, memory)

// BecausePhaseDemands: a task has entered a phase of its forecast with another grant.
func BecausePhaseDemands(phase int32, grant resource.Vector) Reason {
	return phaseDemands(phase, grant[resource.CPU], grant[resource.Memory])
}

var LevelingEnds = says("leveling ends its hold of a task")
var FitsFirstPhase, BecauseFitsFirstPhase = says3("its first phase fits: %[2]s, of %[3]s at most, with %[1]s",
	memory, cores, cores)
var FitsShort, BecauseFitsShort = says2("is short and fits with its largest phase: %[2]s with %[1]s", memory, cores)
var PhaseDue = says("a task should enter its next phase, or is to stop")

// B is what the tasks demand too much, C what they demand too little, in discounted seconds of the whole node.
var Fluctuates, BecauseFluctuates = says3(
	"from %[1]s on its tasks demand more cores than it has; fluctuation %[2]s of it over-allocated", when,
	operand[float64]{thousandths, func(r Reason, over int64, _ clock) any {
		return fmt.Sprintf("%.1f s of the whole node, %.1f s", float64(over+r.C)/1000, float64(over)/1000)
	}}, operand[float64]{thousandths, unseen})
var Shifted, BecauseShifted = says2(
	"can wait until %s without delaying its job, and a task of job %d keeps going: "+
		"both together demand more than the node has", when, job)
var NotShifted = says("a newer solution lets it go on")
var RoomAgain = says("the node has cores for it again")
var ExceedsLater, BecauseExceedsLater = says1(
	"there is room for its first phase, but from %s on tasks would demand more cores than the node has", when)
var PhaseWaits, BecausePhaseWaits = says3("its phase %d waits for %s, and %s are free", phase, cores, cores)
var MemoryWaits, BecauseMemoryWaits = says3(
	"its phase %d waits for %s of memory: %s are free on the node, for it and for what waits before it",
	phase, memory, memory)
var BehindPhase, BecauseBehindPhase = says2(
	"where %s are free, a phase of a running task of job %d waits for memory and comes first", memory, job)
var PhaseAhead, BecausePhaseAhead = says3(
	"is granted %[2]s for its phase %[1]d, which should begin when it has run for %[3]v", phase, memory, span)
var PhaseLate, BecausePhaseLate = says2(
	"is further from its phase %d than was forecast: until that begins, it is granted %s", phase, memory)
var OverUserQuota, overUserQuota = says3("over the %s quota of its user: %s of %s", quota, ofQuota, allOfQuota)
var OverQueueQuota, overQueueQuota = says3("over the %s quota of its queue: %s of %s", quota, ofQuota, allOfQuota)

// BecauseOverQuota: too little is left of a quota of the job's user or queue.
func BecauseOverQuota(queue bool, k QuotaKind, taken, most int64) Reason {
	if queue {
		return overQueueQuota(k, taken, most)
	}
	return overUserQuota(k, taken, most)
}

var Assigned, BecauseAssigned = says3(
	"assigned to the job, which now holds %d of the %s that it is entitled to, of %d in all", number, executors, number)
var OverEntitled, BecauseOverEntitled = says3("given back: the job held %s and is entitled to %d of %d",
	executors, number, number)
var AllAtWork, BecauseAllAtWork = says3("the job holds %[1]s", asIs[int](func(r Reason, held int64, at clock) any {
	switch {
	case held < r.B:
		return fmt.Sprintf("%d of the %s that it is entitled to: another job must give one back first",
			held, executors.show(r, r.B, at))
	case held == 1:
		return fmt.Sprintf("one executor, which works; it is entitled to %d of %d", r.B, r.C)
	}
	return fmt.Sprintf("%d executors, and all of them work; it is entitled to %d of %d", held, r.B, r.C)
}), number, number)
var StageMoves, BecauseStageMoves = says2("moves from stage %d to stage %d of its job", number, number)
var AskedBack, BecauseAskedBack = says3("asked back: the job holds %s and is entitled to %d of %d",
	executors, number, number)
var StageHasMore, BecauseStageHasMore = says3("asked back: stage %d has %s, and should have %d",
	number, executors, number)
var KeptForStage, BecauseKept = says2(
	"kept idle%[2]s for stage %[1]d of its job, which starts when tasks that run have ended", number,
	asIs[timeline.Time](func(_ Reason, until int64, at clock) any {
		if until == int64(timeline.Never) {
			return ""
		}
		return fmt.Sprintf(" until %s at most", at(timeline.Time(until)))
	}))
var KeptInVain, BecauseKeptInVain = says1(
	"given back: it was kept for stage %d of its job for as long as it may, and that has not started", number)
var RetryDue = says("the pause of a task before its next attempt ends")
var RetryLater, BecauseRetryLater = says2("attempt %d begins at %s",
	number, asIs[timeline.Time](func(r Reason, begins int64, at clock) any {
		return fmt.Sprintf("%s, because attempt %d failed", at(timeline.Time(begins)), r.A-1)
	}))
var RestNeeds, BecauseRestNeeds = says3("reserves %s: the rest of the run needs %s by %s",
	memory, memory, asIs[int](func(_ Reason, v int64, _ clock) any {
		if v == 1 {
			return "1 run"
		}
		return fmt.Sprintf("%d runs", v)
	}))
var HoldsMore, BecauseHoldsMore = says2("reserves %s: the task holds %s, more than was reserved", memory, memory)
var FailsThere = says("given back: what the job ran there has failed, and another node is free")
var EndsLast, BecauseEndsLast = says2("%s fit, and it comes first because it would end last: its rest takes %v", memory,
	span)

// FitsSoon: B is what the task needs later, and what may be used by others until then.
var FitsSoon, BecauseFitsSoon = says2("what it soon needs fits, %s: others may use most of the %s that it needs later",
	memory, memory)
var WaitsForRetry, BecauseWaitsForRetry = says1(
	"preempted: it waits for stage %d, of which a task is to run again, and no node has room for that", number)

// PartOfCPU: B is what a usual program is granted. What the task uses is unknown.
var PartOfCPU, BecausePartOfCPU = says2("starts with %v of %s: what it uses is unknown, and CPU is shared by weight",
	asIs[resource.Amount](func(_ Reason, v int64, _ clock) any { return float64(v) / float64(resource.Core) }), cores)
var OthersFirst, BecauseAtOnce = says1("at most %d of its tasks run at a time", number)
