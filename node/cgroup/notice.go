package cgroup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Means is a way in which the kernel notifies that a group waits for memory, or soon will.
type Means string

const (
	// Threshold is version 1's notice that usage, page cache included, has reached an amount; see Watcher.Near. It
	// arrives in the middle of the allocation, before any process waits.
	Threshold Means = "threshold"
	// PressureLevel is version 1's memory.pressure_level at level medium: the kernel has begun to swap or to write back.
	// Page cache alone does not raise it.
	PressureLevel Means = "pressure level"
	// MemoryEvents is version 2's memory.events: usage has reached a bound, because of page cache or other memory.
	MemoryEvents Means = "memory.events"
	// Stall is a pressure stall trigger (PSI): processes waited for memory for longer than StallMicros in a window of
	// WindowMicros. It works on hybrid hosts too.
	Stall Means = "pressure stall"
)

// The stall that Watcher registers for. Without the right to set resources (CAP_SYS_RESOURCE) the kernel accepts only
// windows of whole multiples of two seconds.
const (
	StallMicros  = 50_000
	WindowMicros = 2_000_000
)

// Notice is a hint to read the group.
type Notice struct {
	Group *Group
	Means Means // the means that came first
}

// Watcher receives the kernel's notices that groups wait for memory. One goroutine waits for all groups. Meanwhile
// several goroutines may call the other methods at once.
type Watcher struct {
	poll   int
	wake   int // eventfd that ends a wait
	events [64]unix.EpollEvent

	mu     sync.Mutex
	next   uint64
	bySlot map[uint64]*source
	groups map[*Group]*watched
}

// watched is a group that the watcher watches.
type watched struct {
	told  bool // notified, and silent until Rearm
	fixed []*source
	near  []*source
}

// all calls do with every source of a group. A source may be nil.
func (at *watched) all(do func(*source)) {
	if at == nil {
		return
	}
	for _, sources := range [][]*source{at.fixed, at.near} {
		for _, s := range sources {
			do(s)
		}
	}
}

// source is one open descriptor that becomes ready when a group waits for memory.
type source struct {
	group  *Group
	means  Means
	slot   uint64
	fd     int // polled
	event  int // the file that the eventfd watches, -1 if fd is that file
	counts bool
	ready  uint32
}

// NewWatcher returns a watcher. The caller closes it.
func NewWatcher() (*Watcher, error) {
	w := &Watcher{bySlot: map[uint64]*source{}, groups: map[*Group]*watched{}}
	var err error
	if w.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("watch groups: epoll: %w", err)
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(w.poll)
		return nil, fmt.Errorf("watch groups: eventfd: %w", err)
	}
	if err := unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, w.wake, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		w.Close()
		return nil, fmt.Errorf("watch groups: epoll: %w", err)
	}
	return w, nil
}

// Close frees the watcher's descriptors. It must not be called during Wait. Afterwards Wait must not be called, and
// the other methods do nothing.
func (w *Watcher) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.bySlot {
		s.close()
	}
	w.bySlot, w.groups = nil, nil
	unix.Close(w.poll)
	unix.Close(w.wake)
}

// Wait waits for notices until one arrives, d has passed or Wake is called, and returns the notices, perhaps none.
// After a notice the group is silent until Rearm. The caller owns the slice. Wait blocks its thread: a thread of high
// priority is notified at once.
func (w *Watcher) Wait(d time.Duration) []Notice {
	n, err := unix.EpollWait(w.poll, w.events[:], int((max(0, d)+time.Millisecond-1)/time.Millisecond))
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	if err != nil {
		panic(fmt.Sprintf("watch groups: epoll: %v", err)) // happens only to descriptors that are no longer ours
	}
	return w.noticesOf(w.events[:n])
}

// Wake ends the wait under way, or the next.
func (w *Watcher) Wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups != nil {
		_, _ = unix.Write(w.wake, binary.NativeEndian.AppendUint64(nil, 1))
	}
}

// wakeSlot is the slot of the eventfd that ends a wait.
const wakeSlot = 0

func (w *Watcher) noticesOf(events []unix.EpollEvent) (notices []Notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		slot := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
		if slot == wakeSlot {
			var eight [8]byte
			_, _ = unix.Read(w.wake, eight[:])
			continue
		}
		s, ok := w.bySlot[slot]
		if !ok || w.groups[s.group].told {
			continue
		}
		w.groups[s.group].told = true
		notices = append(notices, Notice{s.group, s.means})
	}
	return notices
}

// Add starts to watch g and returns the means. None is not an error, because readings at intervals find the same later.
// Call Remove before the group is removed.
func (w *Watcher) Add(g *Group) (all []Means) {
	var sources []*source
	for _, open := range []func(*Group) (*source, error){openPressureLevel, openMemoryEvents, openStall} {
		if s, err := open(g); err == nil {
			sources = append(sources, s)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		for _, s := range sources {
			s.close()
		}
		return nil
	}
	at := &watched{}
	w.groups[g] = at
	for _, s := range sources {
		if w.add(s) {
			at.fixed, all = append(at.fixed, s), append(all, s.means)
		}
	}
	return all
}

// Near requests notices when usage reaches one of these amounts, in place of the amounts of the call before. It takes
// the kernel some milliseconds. The error is ErrUnsupported except in version 1.
func (w *Watcher) Near(g *Group, amounts ...int64) error {
	var near []*source
	for _, bytes := range amounts {
		s, err := openThreshold(g, bytes)
		if err != nil {
			for _, s := range near {
				s.close()
			}
			return fmt.Errorf("watch group %s: %w", g.name, err)
		}
		near = append(near, s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.groups[g]
	if !ok { // removed meanwhile
		for _, s := range near {
			s.close()
		}
		return nil
	}
	for _, s := range at.near {
		w.drop(s)
	}
	at.near = nil
	for _, s := range near {
		if w.add(s) {
			at.near = append(at.near, s)
		}
	}
	return nil
}

// add adds s to the poll, or closes s if that fails.
func (w *Watcher) add(s *source) bool {
	w.next++
	s.slot = w.next
	if err := unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, s.fd, s.interest()); err != nil {
		s.close()
		return false
	}
	w.bySlot[s.slot] = s
	return true
}

func (w *Watcher) drop(s *source) {
	delete(w.bySlot, s.slot)
	s.close() // closing takes it out of the poll
}

// interest requests one notice.
func (s *source) interest() *unix.EpollEvent {
	return &unix.EpollEvent{Events: s.ready | unix.EPOLLONESHOT, Fd: int32(uint32(s.slot)),
		Pad: int32(uint32(s.slot >> 32))}
}

func (s *source) close() {
	unix.Close(s.fd)
	if s.event >= 0 {
		unix.Close(s.event)
	}
}

// Remove stops watching g.
func (w *Watcher) Remove(g *Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups[g].all(w.drop)
	delete(w.groups, g)
}

// Rearm requests a notice of g for what happens from now on.
func (w *Watcher) Rearm(g *Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.groups[g]
	if !ok {
		return
	}
	at.told = false
	at.all(func(s *source) {
		s.drain()
		_ = unix.EpollCtl(w.poll, unix.EPOLL_CTL_MOD, s.fd, s.interest())
	})
}

// drain drops notices that were delivered already.
func (s *source) drain() {
	var eight [8]byte
	switch {
	case s.event >= 0:
		_, _ = unix.Read(s.fd, eight[:])
	case s.counts: // reading the file acknowledges the change
		var text [512]byte
		_, _ = unix.Pread(s.fd, text[:], 0)
	}
}

func openThreshold(g *Group, bytes int64) (*source, error) {
	return openEvent(g, Threshold, "memory.usage_in_bytes", fmt.Sprint(bytes))
}

func openPressureLevel(g *Group) (*source, error) {
	return openEvent(g, PressureLevel, "memory.pressure_level", "medium")
}

// openEvent registers an eventfd with version 1's memory controller.
func openEvent(g *Group, means Means, file, condition string) (*source, error) {
	if g.version[Memory] != V1 {
		return nil, unsupported(Memory, file)
	}
	dir := g.dirs[Memory]
	about, err := unix.Open(filepath.Join(dir, file), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(about)
		return nil, err
	}
	if err := writeFile(filepath.Join(dir, "cgroup.event_control"),
		fmt.Sprintf("%d %d %s", fd, about, condition)); err != nil {
		unix.Close(about)
		unix.Close(fd)
		return nil, err
	}
	return &source{group: g, means: means, fd: fd, event: about, ready: unix.EPOLLIN}, nil
}

// openMemoryEvents opens version 2's counters; the kernel signals their changes as exceptional conditions.
func openMemoryEvents(g *Group) (*source, error) {
	if g.version[Memory] != V2 {
		return nil, unsupported(Memory, "memory.events")
	}
	fd, err := unix.Open(filepath.Join(g.dirs[Memory], "memory.events"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s := &source{group: g, means: MemoryEvents, fd: fd, event: -1, counts: true, ready: unix.EPOLLPRI}
	s.drain()
	return s, nil
}

// openStall opens a pressure stall trigger.
func openStall(g *Group) (*source, error) {
	if g.unified == "" {
		return nil, unsupported(Memory, "memory.pressure")
	}
	fd, err := unix.Open(filepath.Join(g.unified, "memory.pressure"), unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if _, err := unix.Write(fd, fmt.Appendf(nil, "some %d %d\x00", StallMicros, WindowMicros)); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &source{group: g, means: Stall, fd: fd, event: -1, ready: unix.EPOLLPRI}, nil
}
