package live

import (
	"cmp"
	"log/slog"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/output"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/live/watchdog"
)

// Config is the configuration of a Driver. Fields are required unless their comments give a default.
type Config struct {
	Policy policy.Policy
	// Settings are the settings that Policy was made with, if any; they go into the event log.
	Settings map[string]string
	Backend  Backend
	// Store stays open until after the Driver has stopped.
	Store *store.Store
	// Dir is the state directory, an absolute path: output goes to Dir/logs, event logs to Dir/events.
	Dir string
	Log *slog.Logger // nil is slog.Default
	// Keep says which ended jobs are kept until Retain is called; nil keeps all. Others are removed at the start, and
	// then every hour.
	Keep *retention.Rule
	// ContainersPerCore is the largest number of containers on a node per core; 0 is cluster.ContainersPerCore.
	ContainersPerCore int
	// Keeps says that paused and suspended tasks keep their cores and bandwidths. Otherwise they lend them to other
	// tasks: see book.Snapshot.
	Keeps bool
	// ReservesStated says that a job whose submitter leaves open what is reserved reserves what it states, in a container
	// whose memory is fixed. Otherwise what is reserved is learned.
	ReservesStated bool
	// Quotas are those of users and queues, until SetQuotas; nil means none.
	Quotas *cluster.Quotas
	// UID is the user that the daemon runs as.
	UID uint32
	// SolverStates is the budget of a question of the policy, in states; 0 is cluster.SolverStates.
	SolverStates int
	// Patience is how long one step of the engine may take; the zero value is the default.
	Patience watchdog.Patience
}

// CheckPolicy returns an error, which is Invalid, if a policy counts on what only a simulator has.
func CheckPolicy(p policy.Policy) error {
	if p.Traits().FreePageOut {
		return api.Errorf(api.Invalid,
			"setting %s.memory=\"paper\": must be ideal or phase on a machine: memory that leaves at once and free of "+
				"charge exists in the simulator only", p.Name())
	}
	return nil
}

// newEngine returns an engine for an empty cluster.
func (c *Config) newEngine() *engine.Engine {
	return engine.New(c.Policy, func(s *book.Snapshot) {
		s.ContainersPerCore = cmp.Or(c.ContainersPerCore, cluster.ContainersPerCore)
		s.Lends = !c.Keeps
	})
}

// output is where programs print.
func (c *Config) output() output.Folder { return output.In(c.Dir) }

// header begins an event log of an engine.
func (c *Config) header(s *book.Snapshot) eventlog.Header {
	return eventlog.NewHeader(c.Policy.Name(), c.Settings, s)
}

// underSizes reports whether the policy starts tasks with less than their ideal memory.
func (c *Config) underSizes() bool { return c.Policy.Traits().UnderSizes }
