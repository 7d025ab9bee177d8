package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
	"github.com/bellows-rm/bellows/node/swap"
)

// The agent renews its lease while its memory manager works. When it has not renewed the lease for leaseTerm, and
// then for leaseRenewal more, supervisors resume the programs of their containers: no container stays frozen without
// an agent that could thaw it, except for what its owner paused.
const (
	leaseRenewal = keeper.Lives
	leaseTerm    = 10 * time.Second
)

// lease is the agent's part of its lease. The file stays open: a daemon without a descriptor to spare lives.
type lease struct {
	path string
	log  *slog.Logger
	file *os.File // nil if it is not open
	// failed says that the lease could not be renewed the last time, which was logged.
	failed bool
}

// renew is called by the keeper's goroutine, so that a goroutine that hangs is noticed, too.
func (l *lease) renew() {
	text := leaseAt(keeper.SinceBoot())
	if overwrite(l.open(), text) == nil {
		l.failed = false
		return
	}
	err := durable.Replace(l.path, text)
	if err != nil {
		err = durable.Replace(l.path, nil) // A full disk may have room for an empty file, whose time counts.
	}
	if err != nil && !l.failed {
		l.log.Warn("cannot renew the lease on suspended containers; their supervisors will resume them", "error", err)
	}
	l.failed = err != nil
}

// open returns the file, open for writing; nil if it cannot be opened.
func (l *lease) open() *os.File {
	if l.file != nil {
		at, err := os.Stat(l.path)
		mine, errMine := l.file.Stat()
		if err == nil && errMine == nil && os.SameFile(at, mine) {
			return l.file
		}
		l.file.Close()
	}
	l.file, _ = os.OpenFile(l.path, os.O_WRONLY, 0)
	return l.file
}

// close is called when the keeper's goroutine has ended.
func (l *lease) close() { l.file.Close() }

// leaseAt is the text of a lease, always of the same length: the id of this boot, and the time since then, ns. Setting
// the clock does not change that time.
func leaseAt(sinceBoot time.Duration) []byte { return fmt.Appendf(nil, "%s%020d\n", boot(), sinceBoot) }

// boot identifies this boot of the machine, at the beginning of a lease.
func boot() string { return fmt.Sprintf("%-36s ", bootID()) }

// bootID reads the id once: later this process may have no descriptor left.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})

// overwrite writes to an existing file in place, which a full disk allows.
func overwrite(f *os.File, text []byte) error {
	_, err := f.WriteAt(text, 0)
	if err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}

// guard resumes a container when the agent's lease has expired, and ends its throttle when its time has come. It ends
// with ctx.
func guard(ctx context.Context, f folder, s *spec) {
	for l := (lookout{f: f, s: s}); passes(ctx, leaseRenewal); l.look() {
	}
}

// lookout is what a supervisor has seen of the agent.
type lookout struct {
	f folder
	s *spec
	// expired says that the lease had expired at the last look. A machine that was stopped as a whole and goes on has an
	// expired lease and a living agent, which renews the lease before the next look.
	expired bool
	read    time.Duration // when a lease was last found that had not expired, since the machine started
	resumed bool          // the container, since the lease expired
	lifted  bool          // its bound, since the lease expired
}

// look resumes the container if the lease had expired at the last look, too.
func (l *lookout) look() {
	before := l.expired
	is, err := readLease(l.s.Lease)
	if now := keeper.SinceBoot(); is {
		l.read = now
	} else {
		// Of a lease that cannot be read now, the one that was read last counts.
		l.expired = !isUnread(err) || now-l.read >= leaseTerm
	}
	if is {
		l.expired, l.resumed, l.lifted = false, false, false
	}
	if !before || !l.expired {
		return
	}
	r, _ := keeper.RecordOf(l.f)
	over := !l.lifted && r.BoundEnded(now())
	if l.resumed && !over {
		return
	}
	if err := release(l.s.sized(&r), &r, over); err != nil {
		fmt.Fprintf(os.Stderr, "resume the container, whose agent is gone: %v\n", err)
		return
	}
	l.resumed, l.lifted = true, l.lifted || over
}

// leased reports whether there is an agent that renews the lease. A lease from the future does not count: a live agent
// renews it within moments.
func leased(path string) bool {
	is, _ := readLease(path)
	return is
}

// readLease is leased with why the lease cannot be read.
func readLease(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	rest, same := strings.CutPrefix(string(text), boot())
	at, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
	if !same || err != nil {
		return false, nil
	}
	age := keeper.SinceBoot() - time.Duration(at)
	return age > -leaseTerm && age < leaseTerm, nil
}

// release ends every stop of a container except a pause by its owner, and gives it memory to run in. A container
// whose memory is paged out stays stopped, and keeps its limit. With lift, the bound on its disk ends.
func release(s *spec, r *keeper.Record, lift bool) error {
	g, err := openGroup(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaseTerm)
	defer cancel()
	free := s.granted()
	free.Stopped = r.Hold.By&cluster.HeldByOwner != 0 || r.Out
	if s.Envelope.Class == cluster.Flex && !r.Out {
		free.Raise = unattended(s, g)
	}
	if lift {
		free.Lift = r.Device
	}
	return free.CarryOut(ctx, g)
}

// unattended returns the memory limit, bytes, of a container without an agent. If the machine has plenty of memory
// available, the limit is the container's use plus its swap: the other containers run on, too, and nothing would notice
// that all of them swap until the kernel kills one. Otherwise the limit is the initial grant, because a suspended
// container's small limit would not let its programs run. Until there is an agent again, the limits may add up to more
// than the containers of this machine should have together.
func unattended(s *spec, g *cgroup.Group) resource.Amount {
	const share = 8 // the fraction of the available memory for each container
	least := s.Grant[resource.Memory]
	r, err := g.Read()
	if err != nil {
		return least
	}
	machine, err := swap.Machine{}.Memory()
	holds := resource.Amount(r.AnonBytes.Or(0) + r.SwapBytes.Or(0))
	if err != nil || holds-least > machine.Available/share {
		return least
	}
	return max(least, holds+holds/8) // page tables and the like
}
