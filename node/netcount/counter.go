package netcount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Reading is how much a group has transferred since Attach began to count it.
type Reading struct {
	Received, Sent int64 // bytes
}

// Counter reads the counters of one group. Several goroutines may use it at once.
type Counter struct {
	counts *ebpf.Map
	// Resumed says that the programs were attached before, so that the counters do not begin at 0 now.
	Resumed bool
}

// allowMulti is BPF_F_ALLOW_MULTI of linux/bpf.h: programs that others attach to the group, its ancestors or
// descendants run, too.
const allowMulti = 1 << 1

// Attach counts for the group in dir, a directory of the version 2 hierarchy. If the group is counted already, it
// goes on with the same counters. The error says why this is not possible: an old kernel, or a process without
// CAP_SYS_ADMIN.
func Attach(dir string) (*Counter, error) {
	if err := able(); err != nil {
		return nil, err
	}
	return count(dir, attach)
}

// able returns an error if this process or this kernel cannot count for any group.
func able() error {
	if !privileged() {
		return errors.New("count network bytes: it needs CAP_SYS_ADMIN")
	}
	return sound("/proc")
}

// Begin is Attach for a new group, on a machine where Try has succeeded: it does not look for programs that are
// attached already, which takes most of the time.
func Begin(dir string) (*Counter, error) { return count(dir, begin) }

// count opens the group in dir for one of attach and begin.
func count(dir string, how func(group int, except int32) (*Counter, error)) (*Counter, error) {
	group, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("count network bytes: %w", err)
	}
	defer group.Close()
	c, err := how(int(group.Fd()), loopback)
	if err != nil {
		return nil, fmt.Errorf("count network bytes of %s: %w", dir, explain(err))
	}
	return c, nil
}

// Try attaches to the group in dir and detaches again: an error says why Attach does not work here.
func Try(dir string) error {
	c, err := Attach(dir)
	if err != nil {
		return err
	}
	defer c.Close()
	group, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("count network bytes: %w", err)
	}
	defer group.Close()
	if err := abandon(int(group.Fd())); err != nil {
		return fmt.Errorf("stop counting network bytes of %s: %w", dir, err)
	}
	return nil
}

// Check returns why Attach would not work for groups below the one in dir, as far as that is known without attaching:
// it loads the programs, and lists those of the group.
func Check(dir string) error {
	if err := able(); err != nil {
		return err
	}
	_, err := count(dir, check)
	return err
}

// check loads the programs of both directions for no group.
func check(group int, except int32) (*Counter, error) {
	counts, err := newCounts()
	if err != nil {
		return nil, err
	}
	defer counts.Close()
	for d := range directions {
		p, err := ebpf.NewProgram(d.program(counts, except))
		if err != nil {
			return nil, err
		}
		p.Close()
		if err := d.each(group, func(*ebpf.Program) error { return nil }); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Read returns the counters, also after the group was removed.
func (c *Counter) Read() (Reading, error) {
	var n [numDirections]uint64
	for d := range directions {
		if err := c.counts.Lookup(uint32(d), &n[d]); err != nil {
			return Reading{}, fmt.Errorf("read network bytes: %w", err)
		}
	}
	return Reading{Received: int64(n[received]), Sent: int64(n[sent])}, nil
}

// Close ends reading. The kernel counts until the group is removed. A nil counter has nothing to close.
func (c *Counter) Close() error {
	if c == nil {
		return nil
	}
	return c.counts.Close()
}

// attach finds the counters of a group, or attaches programs with new ones. A process that was killed before it
// attached the second program has left the first alone: that is replaced. Packets of the device with the index except
// do not count.
func attach(group int, except int32) (*Counter, error) {
	found := [numDirections]*ebpf.Map{}
	for d := range directions {
		m, err := d.find(group)
		if err != nil {
			return nil, err
		}
		if m != nil {
			defer m.Close()
		}
		found[d] = m
	}
	if same(found) {
		counts, err := found[received].Clone()
		return &Counter{counts: counts, Resumed: true}, err
	}
	for d := range directions {
		if err := d.detach(group); err != nil {
			return nil, err
		}
	}
	c, err := begin(group, except)
	if err != nil {
		return nil, err
	}
	if err := findable(group); err != nil {
		return nil, errors.Join(err, abandon(group), c.Close())
	}
	return c, nil
}

// begin attaches programs to a group that has none of ours.
func begin(group int, except int32) (*Counter, error) {
	counts, err := newCounts()
	if err != nil {
		return nil, err
	}
	for d := range directions {
		if err := d.attach(group, counts, except); err != nil {
			return nil, errors.Join(err, abandon(group), counts.Close())
		}
	}
	return &Counter{counts: counts}, nil
}

// abandon detaches our programs.
func abandon(group int) (err error) {
	for d := range directions {
		err = errors.Join(err, d.detach(group))
	}
	return err
}

// findable returns an error if a later process could not find the programs: then each would attach its own.
func findable(group int) error {
	for d := range directions {
		m, err := d.find(group)
		if err != nil {
			return err
		}
		if m == nil {
			return fmt.Errorf("the kernel does not report the names of programs: Linux 4.15 or later is needed")
		}
		m.Close()
	}
	return nil
}

// same reports whether the programs of both directions count in one map.
func same(found [numDirections]*ebpf.Map) bool {
	var ids [numDirections]ebpf.MapID
	for d, m := range found {
		if m == nil {
			return false
		}
		info, err := m.Info()
		if err != nil {
			return false
		}
		ids[d], _ = info.ID()
	}
	return ids[received] == ids[sent]
}

// each calls do with each of our programs of a direction that is attached to a group.
func (d direction) each(group int, do func(*ebpf.Program) error) error {
	attached, err := link.QueryPrograms(link.QueryOptions{Target: group, Attach: d.where()})
	if err != nil {
		return err
	}
	for _, a := range attached.Programs {
		p, err := ebpf.NewProgramFromID(a.ID)
		if errors.Is(err, os.ErrNotExist) {
			continue // It was detached a moment ago.
		}
		if err != nil {
			return err
		}
		info, err := p.Info()
		if err == nil && info.Type == ebpf.CGroupSKB && info.Name == d.name() {
			err = do(p)
		}
		if err = errors.Join(err, p.Close()); err != nil {
			return err
		}
	}
	return nil
}

// find returns the counters of our program of a direction, nil if none is attached.
func (d direction) find(group int) (counts *ebpf.Map, err error) {
	err = d.each(group, func(p *ebpf.Program) error {
		info, err := p.Info()
		if err != nil || counts != nil {
			return err
		}
		ids, _ := info.MapIDs()
		if len(ids) != 1 {
			return nil
		}
		counts, err = ebpf.NewMapFromID(ids[0])
		return err
	})
	return counts, err
}

// attach attaches our program of a direction.
func (d direction) attach(group int, counts *ebpf.Map, except int32) error {
	p, err := ebpf.NewProgram(d.program(counts, except))
	if err != nil {
		return err
	}
	defer p.Close()
	err = link.RawAttachProgram(link.RawAttachProgramOptions{Target: group, Program: p, Attach: d.where(),
		Flags: allowMulti})
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%w: %w", errTaken, err)
	}
	return err
}

// detach detaches our programs of a direction.
func (d direction) detach(group int) error {
	return d.each(group, func(p *ebpf.Program) error {
		return link.RawDetachProgram(link.RawDetachProgramOptions{Target: group, Program: p, Attach: d.where()})
	})
}

// errTaken is returned by attach if the kernel loads the program but refuses to attach it.
var errTaken = errors.New(
	"CAP_NET_ADMIN is missing, or a BPF program on this group or an ancestor permits no second program")

// privileged reports whether this process has CAP_SYS_ADMIN in its user namespace. Without it, some kernels attach
// programs, but no process finds them again.
func privileged() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	return unix.Capget(&head, &sets[0]) == nil && sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// explain adds to an error what is missing.
func explain(err error) error {
	switch {
	case errors.Is(err, errTaken):
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("the kernel has no BPF programs for control groups (CONFIG_CGROUP_BPF, Linux 4.15), or not "+
			"in a user namespace: %w", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("this needs the initial user namespace, and before Linux 5.11 a higher limit of locked "+
			"memory (ulimit -l): %w", err)
	}
	return err
}

// sound returns an error if the kernel may assign sockets to no group: kernels before Linux 5.15 stop assigning them
// once the version 1 controller net_cls or net_prio is used. The counters would stay at 0.
func sound(proc string) error {
	text, err := os.ReadFile(filepath.Join(proc, "cgroups"))
	if err != nil {
		return fmt.Errorf("count network bytes: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "net_cls" && f[0] != "net_prio" || f[1] == "0" {
			continue
		}
		if release, err := os.ReadFile(filepath.Join(proc, "sys/kernel/osrelease")); err != nil ||
			olderThan(string(release), 5, 15) {
			return fmt.Errorf("count network bytes: kernels before Linux 5.15 cannot count while the version 1 "+
				"controller %s is mounted", f[0])
		}
	}
	return nil
}

// olderThan compares the release of a kernel, such as 6.1.0-18-amd64; one that cannot be read is old.
func olderThan(release string, major, minor int) bool {
	f := strings.SplitN(release, ".", 3)
	if len(f) < 2 {
		return true
	}
	digits := strings.TrimRight(f[1], "\n")
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i]
	}
	x, err := strconv.Atoi(f[0])
	y, err2 := strconv.Atoi(digits)
	return err != nil || err2 != nil || x < major || x == major && y < minor
}
