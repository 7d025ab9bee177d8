package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// groups are the control groups of a state directory: that of all containers, and in it one of the supervisors and one
// for each container. While the claim is held, no other agent has them.
type groups struct {
	dir  string // the state directory
	log  *slog.Logger
	root *cgroup.Root
	// supervisors is the control group of all supervisors. They are not in the groups of their containers, where they
	// would be killed for what the program does, nor in the group of the agent, with which a service manager would end
	// them.
	supervisors *cgroup.Group
	// claim is a socket that no process connects to. Its abstract name is the name of the control groups. While it is
	// open, no other agent treats the groups as left behind, even if the state directory was removed and made again.
	claim net.Listener
	size  net.Listener // publishes how much is managed here; nil if that is not possible
	// counted is the disk whose transfers version 1 of the kernel counts for each container, major:minor; empty if there
	// is none.
	counted string
	// diskUnknown says why what containers transfer to and from disks is not counted; empty if it is.
	diskUnknown string
	unenclosed  sync.Once // its message is logged once: the reason is the same for all containers
}

// openGroups takes the control groups of a state directory, whose containers may use capacity together. The error is a
// NoCgroupError where containers are not possible.
func openGroups(dir string, capacity resource.Vector, log *slog.Logger) (*groups, error) {
	g := &groups{dir: dir, log: log}
	var err error
	if g.claim, err = takeClaim(groupName(dir)); err != nil {
		return nil, fmt.Errorf(
			"another bellows has the control groups of state directory %s, and its programs run there: end it with "+
				"`bellows down`, or by signal: %w", dir, err)
	}
	if err := g.find(capacity[resource.CPU]); err != nil {
		g.claim.Close()
		return nil, &NoCgroupError{err}
	}
	g.size = tellSize(groupName(dir), capacity[resource.Memory])
	g.accountIO()
	return g, nil
}

// close gives the groups up.
func (g *groups) close() {
	if g.size != nil {
		g.size.Close()
	}
	g.claim.Close()
}

// takeClaim makes the socket that keeps groups of that name for one agent. A process that the last agent was starting
// when it was killed keeps the socket open for moments, so takeClaim tries for a second.
func takeClaim(name string) (net.Listener, error) {
	for end := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		l, err := net.Listen("unix", "@bellows-groups-"+name)
		if !errors.Is(err, unix.EADDRINUSE) || time.Now().After(end) {
			return l, err
		}
	}
}

// groupName returns the name of the control groups of a state directory.
func groupName(dir string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(dir)))[:8] }

// groupNote is the file in a state directory with the place of its control groups.
func groupNote(dir string) string { return filepath.Join(dir, "cgroup") }

// find finds the control groups of an earlier agent, wherever in the tree this process is now, or makes them.
// millicores are what the containers may use together.
func (g *groups) find(millicores resource.Amount) error {
	host, err := cgroup.Discover("")
	if err != nil {
		return err
	}
	note := groupNote(g.dir)
	text, err := os.ReadFile(note)
	if err == nil {
		g.root, err = host.OpenRoot(strings.TrimSpace(string(text)), cgroup.Memory)
	}
	if err != nil && !errors.Is(err, cgroup.ErrGone) && !errors.Is(err, fs.ErrNotExist) {
		g.log.Warn("cannot use the stored place of the control groups", "note", note, "error", err)
	}
	if g.root != nil {
		if err := g.root.Join(); err != nil {
			g.log.Warn("the daemon is not in the control group of its containers, which may vanish with the last one",
				"error", err)
		}
	} else {
		// Two state directories have two agents, whose groups must differ.
		if g.root, err = host.Root(groupName(g.dir), cgroup.Memory); err != nil {
			return err
		}
	}
	if err := g.noteRoot(note, string(text)); err != nil {
		return err
	}
	if err := g.weigh(millicores); err != nil {
		return err
	}
	g.supervisors, err = g.root.Create("supervisors")
	if errors.Is(err, fs.ErrExist) {
		g.supervisors, err = g.root.Open("supervisors")
	}
	return err
}

// noteRoot writes the place of the control groups into the note, unless the note contains it.
func (g *groups) noteRoot(path, says string) error {
	line := g.root.Place() + "\n"
	if says == line {
		return nil
	}
	// A folder in place of the note cannot be replaced, so it is moved aside.
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		if _, err := keepAside(g.dir, path); err != nil {
			return fmt.Errorf("note the place of the control group: %w", err)
		}
	}
	if err := durable.Write(path, []byte(line)); err != nil {
		return fmt.Errorf("note the place of the control group: %w", err)
	}
	return nil
}

// weigh gives all containers together the weight of as many processes as there are cores to grant. By default they
// would together have the weight of one process, in competition with every process that is in no group of its own.
func (g *groups) weigh(millicores resource.Amount) error {
	if _, ok := g.root.Has(cgroup.CPU); !ok {
		return nil
	}
	cores := (millicores + resource.Core - 1) / resource.Core * resource.Core
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := g.root.Apply(ctx, cgroup.Limits{CPUWeight: cgroup.WeightOf(int64(max(resource.Core, cores)))}); err != nil {
		return fmt.Errorf("give the containers their weight: %w", err)
	}
	return nil
}

// note notes in the record of a container where its groups are.
func (g *groups) note(s *spec) { s.Place, s.SupervisorJoin = g.root.Place(), g.supervisors.JoinFiles() }

// rebooted reports whether the machine was started anew since a container began.
func (g *groups) rebooted(s *spec) bool { return s.Identity.Boot != g.supervisors.Identity().Boot }

// make makes a control group with the limits of a grant and an envelope, whose programs see the limit of memory that
// they may count on, unless that is 0. An existing group of that name can only be left over.
func (g *groups) make(ctx context.Context, name string, grant resource.Vector, e cluster.Envelope,
	most resource.Amount) (*cgroup.Group, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := g.root.Discard(ctx, name); err != nil {
		return nil, fmt.Errorf("remove an old control group of the container: %w", err)
	}
	made, err := g.root.Create(name)
	if err != nil {
		return nil, fmt.Errorf("make the container's control group: %w", err)
	}
	if most > 0 {
		g.enclose(made, most)
	}
	if err := g.limit(ctx, made, grant, e); err != nil {
		return nil, errors.Join(fmt.Errorf("limit the container: %w", err), made.Remove(ctx))
	}
	return made, nil
}

// enclose shows the programs of a FLEX container the memory that they may count on. Without that they run as well, and
// those that size themselves by their control group stay as small as it is when they look.
func (g *groups) enclose(of *cgroup.Group, most resource.Amount) {
	if err := of.Enclose(int64(most)); err != nil {
		g.unenclosed.Do(func() {
			g.log.Warn("programs in FLEX containers see what their container has, not what it may have", "container", of.Name(),
				"error", err)
		})
	}
}

// limit bounds a container by its grant and its envelope. A REGULAR container is not swapped out: its task was
// promised that amount of memory.
func (g *groups) limit(ctx context.Context, of *cgroup.Group, grant resource.Vector, e cluster.Envelope) error {
	limits := cgroup.Limits{MemoryBytes: cgroup.At(int64(grant[resource.Memory])), SwapBytes: cgroup.At(0)}
	if e.Class == cluster.Flex {
		limits.SwapBytes = cgroup.Unlimited()
	}
	if err := of.ApplyCounted(ctx, limits); err != nil {
		return err
	}
	if g.counted != "" {
		if err := of.AccountIO(g.counted); err != nil {
			return err
		}
	}
	if _, ok := of.Has(cgroup.PIDs); ok {
		if err := of.Apply(ctx, cgroup.Limits{PIDsMax: cgroup.At(mostThreads())}); err != nil {
			return err
		}
	}
	return (&keeper.Rest{Grant: grant, Envelope: e}).CarryOut(ctx, of)
}

// discard kills what is left in the group of a container, and removes the group.
func (g *groups) discard(ctx context.Context, id cluster.ContainerID, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return g.root.Discard(ctx, id.String())
}

// empty waits for the last supervisors, which may not have exited yet, and removes their group. It fails if a container
// is left.
func (g *groups) empty(ctx context.Context) error {
	names, err := g.root.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != g.supervisors.Name() {
			return fmt.Errorf("remove control group %s: container %s is still there", g.root.Place(), name)
		}
	}
	for {
		pids, err := g.supervisors.Procs()
		if err != nil || len(pids) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove control group %s: %d supervisors are still there: %w", g.root.Place(), len(pids),
				ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return g.supervisors.Remove(ctx)
}

// remove removes the groups, which are empty.
func (g *groups) remove(ctx context.Context) error { return g.root.Remove(ctx) }

// accountIO finds out whether the kernel counts disk transfers of containers, on the device of the state directory.
// Without it they are unknown, which is no reason not to run.
func (g *groups) accountIO() {
	device := deviceOf(g.dir)
	if device == "" {
		g.diskUnknown = "the state directory is on no disk"
		return
	}
	if err := g.root.AccountIO(device); err != nil {
		g.diskUnknown = err.Error()
		g.log.Debug("disk transfers are not counted", "error", err)
		return
	}
	if version, _ := g.root.Has(cgroup.IO); version == cgroup.V1 {
		g.counted = device
	}
}
