package api

import "github.com/bellows-rm/bellows/core/cluster"

// QuotaUse is a quota of one user or one queue, and how much of it is taken.
type QuotaUse struct {
	User  string            `json:"user,omitempty" doc:"name of the user whose quota it is, or the number; omitted of a quota of a queue"`
	Queue string            `json:"queue,omitempty" doc:"name of the queue whose quota it is; omitted of a quota of a user"`
	Kind  cluster.QuotaKind `json:"quota" doc:"what it limits: memory, cpus, running, waiting, submissions or output"`
	Most  int64             `json:"most" doc:"the limit: bytes of memory and output, millicores of cpus, else a number of jobs"`
	Taken *int64            `json:"taken,omitempty" doc:"how much of it is taken now, in the same unit; omitted of output that has not been measured yet"`
	// Refuses is not omitted: false says something.
	Refuses bool `json:"refuses" doc:"what would exceed it is refused; otherwise it waits"`
	// Named says that the settings name the queue, so that it is no secret of its users.
	Named bool `json:"-"`
}
