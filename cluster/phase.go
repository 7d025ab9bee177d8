package cluster

import (
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// Phase is a span of a task with constant demand (Prophet section III.A calls it a stage of an executor).
type Phase struct {
	Name string `json:"name,omitempty" yaml:"name" form:"name"`
	// Duration is that of the phase when it gets all resources that it demands.
	Duration time.Duration `json:"duration_ns" yaml:"duration" least:"0"`
	// Demand is CPU, working set (the memory in use), and disk and network bandwidth.
	Demand resource.Vector `json:"demand,omitzero" yaml:",inline"`
}
