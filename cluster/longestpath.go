package cluster

// LongestPath returns how long the longest chain of a job's stages takes, each begun when its parents have ended, if stage i
// takes lasting(i): the job's critical path. Parents must not form a cycle: see Job.Check.
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
