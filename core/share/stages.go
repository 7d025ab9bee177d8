package share

// Stage is a stage of an application, as far as its DAG is known.
type Stage struct {
	Ready bool  // its tasks may run: all of its parents have ended
	Left  int   // its tasks that have not ended, with the ones that run
	Held  int   // executors that work for it
	Next  []int // indexes of the stages that read what it writes; there is no cycle
}

// Path says how much a stage counts that has left tasks of its own, from the weights of the stages that read what it
// writes.
type Path func(left int64, next []int64) int64

// SumOfPaths counts the tasks on all paths from a stage to the end, as the authors of Mira do (their level weight is
// 0, as in their script). A task that several paths share counts once for each of them.
func SumOfPaths(left int64, next []int64) int64 {
	for _, w := range next {
		left += w
	}
	return left
}

// LongestPath counts the tasks on the path that has the most of them.
func LongestPath(left int64, next []int64) int64 {
	longest := int64(0)
	for _, w := range next {
		longest = max(longest, w)
	}
	return left + longest
}

// Stages divides the executors of an application among its stages. Its zero value is ready; it keeps buffers, so one
// Stages serves one goroutine.
type Stages struct {
	fair    Fair
	weights []int64
	next    []int64
	claims  []Claim
	at      []int // the stage of each claim
	to      []int
}

// Divide writes to granted how many of executors each stage is granted, and returns granted, which has the length of
// stages. Stages that are ready share the executors at the same time, by their path, and none is granted more
// executors than it has tasks left. No executor is left over while a ready stage has more tasks than executors. What
// stages hold decides how shares are rounded, so that the tasks of a stage stay together on the executors that
// already ran some of them (section III.D).
func (s *Stages) Divide(executors int, stages []Stage, path Path, granted []int) []int {
	s.weights = append(s.weights[:0], make([]int64, len(stages))...)
	s.claims, s.at = s.claims[:0], s.at[:0]
	for i := range stages {
		granted[i] = 0
		if st := &stages[i]; st.Ready && st.Left > 0 {
			s.claims = append(s.claims, Claim{Weight: s.weigh(stages, i, path), Demand: st.Left, Held: st.Held})
			s.at = append(s.at, i)
		}
	}
	s.to = append(s.to[:0], make([]int, len(s.claims))...)
	for i, n := range s.fair.Divide(executors, s.claims, s.to) {
		granted[s.at[i]] = n
	}
	return granted
}

// weigh returns the weight of the path from stage i on, 1 to MaxWeight.
func (s *Stages) weigh(stages []Stage, i int, path Path) int64 {
	if s.weights[i] == 0 {
		from := len(s.next)
		for _, n := range stages[i].Next {
			s.next = append(s.next, s.weigh(stages, n, path))
		}
		s.weights[i] = max(1, min(MaxWeight, path(int64(stages[i].Left), s.next[from:])))
		s.next = s.next[:from]
	}
	return s.weights[i]
}
