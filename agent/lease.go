package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// The agent renews its lease as long as its memory manager is alive. When it has not for leaseTerm, supervisors of FLEX
// containers take their programs out of suspension: nothing stays frozen because nobody is left to thaw it.
const (
	leaseRenewal = 2 * time.Second
	leaseTerm    = 10 * time.Second
)

// renewLease is called by the keeper's goroutine, so that one that hangs is found out too.
func (k *keeper) renewLease() {
	path := k.agent.leasePath()
	moment := time.Now()
	if os.Chtimes(path, moment, moment) == nil {
		return
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		k.agent.log.Warn("cannot renew the lease on suspended containers; their supervisors will resume them", "error", err)
	}
}

// guard resumes a container whenever the agent's lease has run out. It ends with the supervisor.
func guard(s *spec) {
	resumed := false
	for {
		time.Sleep(leaseRenewal)
		info, err := os.Stat(s.Lease)
		if err == nil && time.Since(info.ModTime()) < leaseTerm {
			resumed = false
			continue
		}
		if resumed {
			continue
		}
		if err := release(s); err != nil {
			fmt.Fprintf(os.Stderr, "resume the container, whose agent is gone: %v\n", err)
			continue
		}
		resumed = true
	}
}

// release takes a container out of every kind of suspension.
func release(s *spec) error {
	g, err := openGroup(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaseTerm)
	defer cancel()
	if err := unthrottle(ctx, g, resource.Of(s.Grant[resource.CPU], 0)); err != nil {
		return err
	}
	return thaw(ctx, g)
}
