package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cgroup"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/swap"
)

// The agent renews its lease as long as its memory manager is alive. When it has not for leaseTerm, supervisors of FLEX
// containers take their programs out of suspension: nothing stays frozen because nobody is left to thaw it.
const (
	leaseRenewal = 2 * time.Second
	leaseTerm    = 10 * time.Second
)

// renewLease is called by the keeper's goroutine, so that one that hangs is found out too.
func (k *keeper) renewLease() {
	path, text := k.agent.leasePath(), leaseAt(sinceBoot())
	if overwrite(path, text) == nil {
		return
	}
	err := durable.Replace(path, text)
	if err != nil {
		err = durable.Replace(path, nil) // A full disk may have room for an empty file, of which the time counts.
	}
	if err != nil {
		k.agent.log.Warn("cannot renew the lease on suspended containers; their supervisors will resume them", "error", err)
	}
}

// leaseAt is a lease as it is written, always as long: the start of the machine, and the time since then, ns. No setting of the clock
// changes that.
func leaseAt(sinceBoot time.Duration) []byte { return fmt.Appendf(nil, "%s%020d\n", boot(), sinceBoot) }

// boot names this start of the machine, at the beginning of a lease.
func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return fmt.Sprintf("%-36s ", strings.TrimSpace(string(id)))
}

// sinceBoot is the time since the machine started, suspended or not.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("read the time since the machine started: %v", err)) // Linux has this clock since 2.6.39.
	}
	return time.Duration(t.Nano())
}

// overwrite writes to a file that is there, in place, which a full disk allows.
func overwrite(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(text, 0); err == nil {
		err = f.Truncate(int64(len(text)))
	}
	return errors.Join(err, f.Close())
}

// guard resumes a container whenever the agent's lease has run out. It ends with the supervisor.
func guard(s *spec) {
	resumed := false
	for {
		time.Sleep(leaseRenewal)
		if leased(s.Lease) {
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

// leased tells whether there is an agent that renews the lease. One from the future is none: an agent that lives renews it within
// moments. Of an empty file, which earlier versions wrote, the time of the file counts.
func leased(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	var age time.Duration
	if len(text) == 0 {
		info, err := os.Stat(path)
		if err != nil {
			return false
		}
		age = time.Since(info.ModTime())
	} else {
		rest, same := strings.CutPrefix(string(text), boot())
		at, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		if !same || err != nil {
			return false
		}
		age = sinceBoot() - time.Duration(at)
	}
	return age > -leaseTerm && age < leaseTerm
}

// release takes a container out of every kind of suspension, with memory to run in.
func release(s *spec) error {
	g, err := openGroup(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaseTerm)
	defer cancel()
	if _, err := g.RaiseMemory(int64(unattended(s, g))); err != nil {
		return err
	}
	if err := unthrottle(ctx, g, resource.Of(s.Grant[resource.CPU], 0)); err != nil {
		return err
	}
	return thaw(ctx, g)
}

// unattended is the limit of a container that nobody manages any more, bytes: what it holds with what is in swap, if the machine
// has plenty, since the others go on, too, and nobody would see that all of them swap until the kernel kills one; else what it began
// with, since with the little that one that stands still may keep its programs could not run. Both may be more than the
// containers of this machine should have together, until there is an agent again.
func unattended(s *spec, g *cgroup.Group) resource.Amount {
	const share = 8 // of what is available, for each
	least := s.Grant[resource.Memory]
	r, err := g.Read()
	if err != nil {
		return least
	}
	_, available, err := swap.Machine{}.Memory()
	holds := resource.Amount(r.AnonBytes.Or(0) + r.SwapBytes.Or(0))
	if err != nil || holds-least > available/share {
		return least
	}
	return max(least, holds+holds/8) // page tables and the like
}
