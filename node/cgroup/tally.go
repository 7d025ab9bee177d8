package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Transfers is what processes have read from disks and written to them, as the kernel counts it for each process: a
// write counts when it makes a page of the cache dirty, whereas the counters of groups have it late (version 2) or,
// unless the process waits for the disk, never (version 1). What is read from the cache does not count.
type Transfers struct {
	Read, Written int64 // bytes
	// Cancelled is how much of Written never went to a disk, because the file was removed or cut before, bytes.
	Cancelled int64
}

// Plus returns the sum.
func (a Transfers) Plus(b Transfers) Transfers {
	return Transfers{a.Read + b.Read, a.Written + b.Written, a.Cancelled + b.Cancelled}
}

// above returns how much a exceeds b, each part by itself and at least 0.
func (a Transfers) above(b Transfers) Transfers {
	return Transfers{max(0, a.Read-b.Read), max(0, a.Written-b.Written), max(0, a.Cancelled-b.Cancelled)}
}

// TransfersOf returns what a process, all its threads, and the children that it has waited for have transferred. It
// also works for a process that has ended and was not waited for. The error is ErrUnsupported if the kernel does not
// count it, fs.ErrPermission if this process may not read it; any other error means that there is no such process.
func TransfersOf(pid int) (Transfers, error) {
	file, err := unix.Open(transfersFile(pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Stat(filepath.Dir(transfersFile(pid))); gone == nil {
			return Transfers{}, ErrUnsupported
		}
	}
	if err != nil {
		return Transfers{}, err
	}
	defer unix.Close(file)
	var buffer [1024]byte
	return transfersIn(file, buffer[:])
}

func transfersFile(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid), "io") }

// transfersIn reads the open file of a process again.
func transfersIn(file int, buffer []byte) (Transfers, error) {
	n, err := unix.Pread(file, buffer, 0)
	if err != nil {
		return Transfers{}, err
	}
	return parseProcessIO(buffer[:n])
}

// Tally adds up what the processes of a group transfer, including children that have ended: when a parent waits for a
// child, the kernel adds the child's transfers to the parent's. What a process for which no parent waits transfers
// between the last reading and its end is missing. One goroutine at a time may use it.
type Tally struct {
	group *Group
	procs string // lists the processes
	last  map[int]tallied
	total Transfers
	// list is the open file procs, and spare the number of further files of processes that may stay open; both are 0
	// unless KeepOpen was called.
	list, spare int
	buffer      [8192]byte
}

// filesKept is the number of files of processes that a tally keeps open.
const filesKept = 4

// KeepOpen makes readings cheaper: up to five files stay open until Close.
func (t *Tally) KeepOpen() {
	list, err := unix.Open(t.procs, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		t.list, t.spare = list, filesKept
	}
}

// Close closes what KeepOpen has opened. The tally is not used any more.
func (t *Tally) Close() {
	if t.list > 0 {
		unix.Close(t.list)
	}
	for _, p := range t.last {
		p.close()
	}
	t.list, t.last = 0, nil
}

// tallied is one process at one reading.
type tallied struct {
	kinship
	has  Transfers
	file int // with what it has transferred; 0 if it is not open
}

func (p tallied) close() {
	if p.file > 0 {
		unix.Close(p.file)
	}
}

// kinship is the parent and the begin of a process. It is read only for processes that have transferred something,
// and for their ancestors: reading it costs more than reading what a process has transferred. The zero kinship was
// not read.
type kinship struct {
	parent int
	born   int64 // since the machine's start, in the kernel's unit: with the id it identifies the process
	ended  bool  // and its parent has not waited for it
}

// mostTallied bounds the work of one reading. Of more processes, those with the lowest ids are read.
const mostTallied = 1000

// Tally begins to count; the first reading includes everything that the processes transferred before. The error is
// ErrUnsupported if the kernel does not count the transfers of processes. It is ErrGone if the group does not exist,
// and fs.ErrPermission if this process may not read what the group's processes transfer.
func (g *Group) Tally() (*Tally, error) {
	pids, err := g.Procs()
	if err != nil {
		return nil, err
	}
	for _, pid := range append(pids, os.Getpid()) {
		if _, err := TransfersOf(pid); errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrUnsupported) {
			return nil, fmt.Errorf("read what process %d transfers: %w", pid, err)
		}
	}
	dir := g.unified // Version 1 sorts the processes for each reader.
	if dir == "" {
		dir = g.dir()
	}
	return &Tally{group: g, procs: filepath.Join(g.home(dir), "cgroup.procs")}, nil
}

// Read returns what was transferred so far. The error is ErrGone, or fs.ErrPermission if a process has gained rights
// that hide what it transfers.
func (t *Tally) Read() (Transfers, error) {
	pids, err := t.processes()
	if err != nil {
		return t.total, err
	}
	now := make(map[int]tallied, len(pids))
	for _, pid := range pids {
		p, err := t.look(pid)
		if errors.Is(err, fs.ErrPermission) {
			t.drop(now, t.last)
			return t.total, fmt.Errorf("read what process %d transfers: %w", pid, err)
		}
		if err == nil { // Otherwise it has ended.
			now[pid] = p
		}
	}
	t.keepEnded(now)
	for pid, p := range now {
		if p.has != (Transfers{}) {
			t.trace(now, pid)
		}
	}
	taken := t.taken(now)
	for pid, p := range now {
		before := t.last[pid]
		if !before.lives(now, pid) {
			before.has = Transfers{}
		}
		t.total = t.total.Plus(p.has.above(before.has).above(taken[pid]))
	}
	t.drop(t.last, now)
	t.last = now
	return t.total, nil
}

// drop closes files of one reading that are not open for another.
func (t *Tally) drop(from, other map[int]tallied) {
	for pid, p := range from {
		if p.file > 0 && other[pid].file != p.file {
			p.close()
			t.spare++
		}
	}
}

// processes lists the processes of the group, as many as are read.
func (t *Tally) processes() ([]int, error) {
	var text []byte
	n, err := len(t.buffer), error(nil)
	if t.list > 0 {
		n, err = unix.Pread(t.list, t.buffer[:], 0)
	}
	if text = t.buffer[:max(0, n)]; n == len(t.buffer) { // It was not read, or not to its end.
		text, err = os.ReadFile(t.procs)
	}
	if err != nil {
		return nil, fmt.Errorf("list processes of group %s: %w", t.group.name, ErrGone)
	}
	pids := parseProcs(string(text))
	return pids[:min(len(pids), mostTallied)], nil
}

// look reads what a process has transferred. The file of a process that was in the last reading stays open if spare
// allows it.
func (t *Tally) look(pid int) (tallied, error) {
	was, known := t.last[pid]
	if was.file > 0 {
		if has, err := transfersIn(was.file, t.buffer[:]); err == nil {
			return tallied{was.kinship, has, was.file}, nil
		}
		was, known = tallied{}, false // It has ended, and another process has the id.
	}
	if !known || t.spare == 0 {
		has, err := TransfersOf(pid)
		if was.has.above(has) != (Transfers{}) { // Another process has the id.
			was = tallied{}
		}
		return tallied{was.kinship, has, 0}, err
	}
	file, err := unix.Open(transfersFile(pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return tallied{}, err
	}
	has, err := transfersIn(file, t.buffer[:])
	if err != nil {
		unix.Close(file)
		return tallied{}, err
	}
	if was.has.above(has) != (Transfers{}) {
		was = tallied{}
	}
	t.spare--
	return tallied{was.kinship, has, file}, nil
}

// keepEnded adds processes that the group no longer lists because they have ended, but for which no parent has
// waited: the kernel has not added their transfers to the parent's yet.
func (t *Tally) keepEnded(now map[int]tallied) {
	for pid, was := range t.last {
		if _, listed := now[pid]; listed || was.has == (Transfers{}) {
			continue
		}
		k, err := kinshipOf(pid)
		if err != nil || !k.ended || k.born != was.born {
			continue
		}
		has, err := TransfersOf(pid)
		// The file of a process that has ended belongs to root. The kernel will add the rest to the parent's transfers.
		if err != nil {
			has = was.has
		}
		now[pid] = tallied{k, has, was.file}
	}
}

// trace reads the kinship of a process and of its ancestors in the group, unless it is known. If the parent has
// ended, it is read again, because the process then has another parent.
func (t *Tally) trace(now map[int]tallied, pid int) {
	for range mostTallied { // Processes whose ids were used before could seem to be ancestors of each other.
		p, there := now[pid]
		if !there {
			return
		}
		_, had := t.last[p.parent]
		if _, has := now[p.parent]; p.born == 0 || had && !has {
			k, err := kinshipOf(pid)
			if err != nil || p.born != 0 && p.born != k.born {
				return // It has ended.
			}
			p.kinship = k
			now[pid] = p
		}
		pid = p.parent
	}
}

// taken returns what the processes that have ended since the last reading had transferred by that reading, for each
// process whose counters include it now: their nearest ancestor in the group that still runs, which has waited for
// them.
func (t *Tally) taken(now map[int]tallied) map[int]Transfers {
	out := map[int]Transfers{}
	for pid, p := range t.last {
		if p.has == (Transfers{}) || p.lives(now, pid) {
			continue
		}
		gone := p.has
		for {
			parent, known := t.last[p.parent]
			if !known || parent.born > p.born { // its parent was not in the group, or another process has the id
				break
			}
			if parent.lives(now, p.parent) {
				out[p.parent] = out[p.parent].Plus(gone)
				break
			}
			p = parent
		}
	}
	return out
}

// lives reports whether the process is in a reading.
func (p tallied) lives(now map[int]tallied, pid int) bool {
	n, is := now[pid]
	return is && (n.born == p.born || p.born == 0)
}

// kinshipOf reads the kinship of a process.
func kinshipOf(pid int) (kinship, error) {
	file, err := unix.Open(filepath.Join("/proc", strconv.Itoa(pid), "stat"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return kinship{}, err
	}
	defer unix.Close(file)
	var buffer [1024]byte
	n, err := unix.Read(file, buffer[:])
	if err != nil {
		return kinship{}, err
	}
	return parseKinship(buffer[:n])
}
