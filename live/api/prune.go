package api

import "github.com/bellows-rm/bellows/core/cluster"

// Pruned is what was removed, or would be removed.
type Pruned struct {
	Jobs        []cluster.JobID `json:"jobs" doc:"ids of the jobs that were removed, or would be, ascending"`
	OutputBytes int64           `json:"output_bytes" doc:"size of their output"`
}
