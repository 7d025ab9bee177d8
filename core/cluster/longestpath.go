package cluster

// LongestPath returns the length of a job's critical path: the longest chain of stages, each of which begins when its
// parents have ended. Stage i takes lasting(i). Parents must not form a cycle: see Job.Check.
func LongestPath[T ~int64 | ~float64](j *Job, lasting func(stage int) T) T {
	ends, known := make([]T, len(j.Stages)), make([]bool, len(j.Stages))
	var end func(i int) T
	end = func(i int) T {
		if known[i] {
			return ends[i]
		}
		for _, parent := range j.Stages[i].Parents {
			ends[i] = max(ends[i], end(parent))
		}
		ends[i] += lasting(i)
		known[i] = true
		return ends[i]
	}
	var longest T
	for i := range j.Stages {
		longest = max(longest, end(i))
	}
	return longest
}
