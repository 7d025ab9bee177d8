package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Group is one group: a directory of the same name in every hierarchy in use. Several goroutines may call its methods
// at once. No lock is held while the kernel works, with one exception: Apply and Reclaim of one group wait for each
// other, as long as their contexts allow.
type Group struct {
	host    *Host
	name    string
	dirs    map[Controller]string
	version map[Controller]Version
	unified string // Directory in the version 2 hierarchy, "" if there is none.
	inner   string // Directory of the inner group that Enclose made, "" if there is none.
	id      Identity
	slow    chan struct{} // Contains one token while a write that can take long is under way.
}

// newGroup fills in identity; the directories exist.
func newGroup(h *Host, name string, dirs map[Controller]string, version map[Controller]Version,
	unified string) (*Group, error) {
	g := &Group{host: h, name: name, dirs: dirs, version: version, unified: unified, slow: make(chan struct{}, 1)}
	id, err := identify(g.dir(), h.boot)
	if err != nil {
		return nil, fmt.Errorf("open group %s: %w", name, err)
	}
	g.id = id
	return g, nil
}

// Name is the name Create or Open was given.
func (g *Group) Name() string { return g.name }

// Identity distinguishes this group from later groups of the same path.
func (g *Group) Identity() Identity { return g.id }

// Has reports whether c bounds and measures the group, and in which version.
func (g *Group) Has(c Controller) (v Version, ok bool) {
	v, ok = g.version[c]
	return v, ok
}

// BoundsAll reports whether the kernel bounds and counts all transfers of the group: version 2 does, because it knows
// the owner of each page that it writes, if the memory controller is in the same hierarchy.
func (g *Group) BoundsAll() bool {
	io, _ := g.Has(IO)
	memory, _ := g.Has(Memory)
	return io == V2 && memory == V2
}

// Unified returns the group's directory in the version 2 hierarchy; ok is false if the group is not in one.
func (g *Group) Unified() (dir string, ok bool) { return g.unified, g.unified != "" }

// dir is the directory that represents the group: its inode is the identity, and it lists the children.
func (g *Group) dir() string {
	for _, c := range Controllers() {
		if g.version[c] == V1 {
			return g.dirs[c]
		}
	}
	return g.unified
}

// each returns every directory of the group once.
func (g *Group) each() []string {
	var out []string
	for _, c := range Controllers() {
		if dir, ok := g.dirs[c]; ok && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	if g.unified != "" && !slices.Contains(out, g.unified) {
		out = append(out, g.unified)
	}
	return out
}

// child returns the group called name below g, whether or not it exists.
func (g *Group) child(name string, version map[Controller]Version) *Group {
	c := &Group{host: g.host, name: name, dirs: map[Controller]string{}, version: version, slow: make(chan struct{}, 1)}
	for k := range version {
		c.dirs[k] = filepath.Join(g.dirs[k], name)
	}
	if g.unified != "" {
		c.unified = filepath.Join(g.unified, name)
	}
	return c
}

// cpusetFiles are the files that a version 1 cpuset needs before it accepts a process.
var cpusetFiles = []string{"cpuset.cpus", "cpuset.mems"}

// whole returns an error unless everything that makeDirs makes exists.
func (g *Group) whole() error {
	for _, dir := range g.each() {
		if _, err := os.Stat(dir); err != nil {
			return err
		}
	}
	if g.version[Cpuset] != V1 {
		return nil
	}
	for _, file := range cpusetFiles {
		path := filepath.Join(g.dirs[Cpuset], file)
		if text, err := readFile(path); err != nil {
			return err
		} else if len(bytes.TrimSpace(text)) == 0 {
			return fmt.Errorf("%s is empty: %w", path, ErrGone)
		}
	}
	return nil
}

// makeDirs makes the missing directories and returns the directories it made. A version 1 cpuset starts without CPUs
// and memory nodes and accepts no process until it has some, so it gets its parent's.
func (g *Group) makeDirs() (made []string, err error) {
	for _, dir := range g.each() {
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return made, fmt.Errorf("make group: %w", err)
		}
		made = append(made, dir)
	}
	if g.version[Cpuset] != V1 {
		return made, nil
	}
	dir := g.dirs[Cpuset]
	for _, file := range cpusetFiles {
		if strings.TrimSpace(slurp(dir, file)) != "" {
			continue
		}
		if err := writeFile(filepath.Join(dir, file), strings.TrimSpace(slurp(filepath.Dir(dir), file))); err != nil {
			return made, fmt.Errorf("make group: %w", err)
		}
	}
	return made, nil
}

// Apply sets limits, in the order that the kernel needs. On an error the writes before the failed one remain in force,
// with one exception: memory and swap of version 1, which take two writes, both have their old bounds again. If a
// memory bound is lowered below usage, the kernel reclaims during the write, perhaps for seconds; ctx bounds that time.
// The error is ErrBusy if usage did not come down (version 1), and ErrUnsupported if the group lacks a controller or
// file that the limits need. In version 2 the kernel kills processes if a memory bound is below what it can reclaim:
// lower usage first, with Reclaim.
func (g *Group) Apply(ctx context.Context, want Limits) error {
	have := g.State()
	writes, err := Plan(have, want)
	if err != nil {
		return fmt.Errorf("limit group %s: %w", g.name, err)
	}
	for i, w := range writes {
		if err := g.write(ctx, w); err != nil {
			if back, ok := undo(have, writes[:i], w); ok {
				// Raising is quick, unless the write that failed is still under way.
				soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				err = errors.Join(err, g.write(soon, back))
				cancel()
			}
			return fmt.Errorf("limit group %s: %w", g.name, err)
		}
	}
	return nil
}

// ApplyCounted is Apply without the bound on swap where the kernel does not count swap, and cannot bound it.
func (g *Group) ApplyCounted(ctx context.Context, want Limits) error {
	err := g.Apply(ctx, want)
	if errors.Is(err, ErrUnsupported) {
		want.SwapBytes = Limit{}
		err = g.Apply(ctx, want)
	}
	return err
}

// RaiseMemory raises the memory bound at once, in the caller's thread: the kernel has nothing to reclaim. It reports
// whether it raised the bound. It does not, and returns no error, if bytes is less than the current bound or an earlier
// write is under way.
func (g *Group) RaiseMemory(bytes int64) (raised bool, err error) {
	have := g.State()
	now := have.MemoryBytes
	if g.version[Memory] == V2 {
		now = g.MemoryLimit()
	}
	if bytes < now.Or(NoLimit) {
		return false, nil
	}
	writes, err := Plan(have, Limits{MemoryBytes: At(bytes)})
	if err != nil {
		return false, fmt.Errorf("limit group %s: %w", g.name, err)
	}
	select {
	case g.slow <- struct{}{}:
	default:
		return false, nil
	}
	defer func() { <-g.slow }()
	for _, w := range writes {
		if err := g.writeAtOnce(w); err != nil {
			return false, fmt.Errorf("limit group %s: %w", g.name, err)
		}
	}
	return true, nil
}

// undo returns the write that reverts the first of a pair after the second, failed, has failed. Swapping can lower
// memory where it cannot lower memory and swap together.
func undo(have State, done []Write, failed Write) (back Write, ok bool) {
	if len(done) == 0 || failed.File != memsw || done[len(done)-1].File != memoryV1 {
		return Write{}, false
	}
	return Write{Memory, memoryV1, orMinusOne(have.MemoryBytes.Or(NoLimit))}, true
}

// write does one write of Apply.
func (g *Group) write(ctx context.Context, w Write) error {
	if w.Controller == Memory {
		return g.writeSlow(ctx, w)
	}
	return g.writeAtOnce(w)
}

// writeAtOnce does a write that takes the kernel no time.
func (g *Group) writeAtOnce(w Write) error {
	if err := g.widen(w); err != nil {
		return err
	}
	path, _ := g.File(w.Controller, w.File)
	return writeFile(path, w.Content)
}

// writeSlow waits for its turn and then writes to a file of the memory, as long as ctx allows.
func (g *Group) writeSlow(ctx context.Context, w Write) error {
	path, _ := g.File(Memory, w.File)
	select {
	case g.slow <- struct{}{}:
	case <-ctx.Done():
		return &WriteError{Path: path, Content: w.Content, Err: fmt.Errorf("an earlier write is still under way: %w",
			ctx.Err())}
	}
	if err := g.widen(w); err != nil {
		<-g.slow
		return err
	}
	return writeSlowly(ctx, path, w.Content, func() { <-g.slow })
}

// reclaimBytesMin is the smallest amount of one request, so that a large amount does not end in many small requests.
const reclaimBytesMin = 1 << 20

// Reclaim requests that the kernel free bytes of the group's memory, by writing it to swap or back to files. It returns
// ErrBusy if the kernel could reclaim less, and ErrUnsupported in version 1 and before Linux 5.19. Kernels before 6.8
// reclaim far more than one large request says, up to everything. Therefore each request is for a quarter of what
// remains, and Reclaim stops as soon as usage has come down by bytes.
func (g *Group) Reclaim(ctx context.Context, bytes int64) error {
	if g.version[Memory] != V2 {
		return fmt.Errorf("reclaim from group %s: %w", g.name, unsupported(Memory, "memory.reclaim"))
	}
	usage := func() int64 { return parseCount(slurp(g.dirs[Memory], "memory.current")).Or(NoLimit) }
	goal := usage() - bytes
	for asked := int64(0); asked < bytes && usage() > goal; {
		remaining := min(bytes-asked, usage()-goal)
		part := min(remaining, max(remaining/4, reclaimBytesMin))
		err := g.writeSlow(ctx, Write{Memory, "memory.reclaim", strconv.FormatInt(part, 10)})
		if err != nil {
			return fmt.Errorf("reclaim from group %s: %d bytes remain: %w", g.name, remaining, err)
		}
		asked += part
	}
	return nil
}

// noRate is a bound on transfers that never takes effect: 1 TB/s.
const noRate = 1_000_000_000_000

// AccountIO makes a version 1 kernel count the bytes that this group reads from and writes to device ("254:0"). It
// sets a bound that never takes effect. Some kernels then count the transfers of all groups on the device, others,
// such as Linux 6.1, only the transfers of groups that have a bound themselves. Version 2 always counts.
func (g *Group) AccountIO(device string) error {
	if g.version[IO] != V1 {
		return nil
	}
	for _, file := range []string{"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"} {
		if err := writeFile(filepath.Join(g.dirs[IO], file), fmt.Sprintf("%s %d", device, int64(noRate))); err != nil {
			return fmt.Errorf("group %s: %w", g.name, err)
		}
	}
	return nil
}

// Procs returns the processes in the group itself, in every hierarchy, without the processes of groups below it, other
// than its inner group.
func (g *Group) Procs() ([]int, error) {
	var pids []int
	for _, dir := range g.homes() {
		text, err := readFile(filepath.Join(dir, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil, fmt.Errorf("list processes of group %s: %w", g.name, ErrGone)
		}
		if err != nil {
			return nil, fmt.Errorf("list processes of group %s: %w", g.name, err)
		}
		pids = append(pids, parseProcs(string(text))...)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// JoinFiles returns the files that a process writes to in order to join the group: "0" or its own pid. What the process
// allocates and executes from then on is in the group. There is one file per hierarchy; the process must write all of
// them.
func (g *Group) JoinFiles() []string {
	var files []string
	for _, dir := range g.homes() {
		files = append(files, filepath.Join(dir, "cgroup.procs"))
	}
	return files
}
