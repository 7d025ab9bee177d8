package agent

import (
	"os"
	"strings"

	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/inherited"
	"github.com/bellows-rm/bellows/node/keeper"
	"github.com/bellows-rm/bellows/node/netcount"
)

// Found is what an agent would find on this machine.
type Found struct {
	Mode cgroup.Mode
	cgroup.Site
	// Made says that the control groups of the state directory exist.
	Made bool
	// Processes is how many more processes and threads all containers together may have; cgroup.NoLimit if any number.
	// Threads is how many a single container may have.
	Processes, Threads int64
	// NetworkUnknown says in one clause why network bytes are not counted; empty if they are.
	NetworkUnknown string
	// Priority is why the memory loop cannot run before ordinary threads; nil if it can. Unprotected is why the kernel
	// may kill the daemon before programs when memory runs out; nil if it kills programs first.
	Priority, Unprotected error
}

// Probe returns what Open would find for a state directory, and changes nothing. The error is the NoCgroupError that
// Open would return, as far as it is known before control groups are made; then only Mode, Threads, Priority and
// Unprotected are set.
func Probe(dir string) (Found, error) {
	f := Found{Threads: mostThreads(), Priority: tryPriority(), Unprotected: tryProtection()}
	host, err := cgroup.Discover("")
	if err != nil {
		return f, &NoCgroupError{err}
	}
	f.Mode = host.Mode()
	if place, err := os.ReadFile(groupNote(dir)); err == nil {
		f.Site, err = host.SiteOf(strings.TrimSpace(string(place)), cgroup.Memory)
		f.Made = err == nil
	}
	if !f.Made {
		if f.Site, err = host.Site(cgroup.Memory); err != nil {
			return f, &NoCgroupError{err}
		}
	}
	f.Processes = host.ProcessesLeft(f.Site)
	f.NetworkUnknown = uncounted(f.Unified, netcount.Check)
	return f, nil
}

// tryPriority takes the priority of the memory loop for a thread that ends at once.
func tryPriority() error {
	tried := make(chan error)
	go func() { tried <- keeper.TakePriority() }()
	return <-tried
}

// tryProtection protects this process for a moment.
func tryProtection() error {
	was, err := inherited.Protect()
	if err != nil {
		return err
	}
	return inherited.SetOOMScore(was)
}
