package cgroup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Means is a way in which the kernel gives notice that a group waits for memory.
type Means string

const (
	// PressureLevel is version 1's memory.pressure_level at level medium: the kernel has begun to swap or to write back.
	// Page cache alone does not raise it.
	PressureLevel Means = "pressure level"
	// MemoryEvents is version 2's memory.events: usage ran against a bound, for page cache too.
	MemoryEvents Means = "memory.events"
	// Stall is a pressure stall trigger (PSI): processes waited for memory for longer than StallMicros in a window of
	// WindowMicros. It works on hybrid hosts too.
	Stall Means = "pressure stall"
)

// The stall that Watcher asks to hear of. Without the right to set resources (CAP_SYS_RESOURCE) the kernel takes windows of
// whole multiples of two seconds only.
const (
	StallMicros  = 50_000
	WindowMicros = 2_000_000
)

// Watcher hears from the kernel when groups wait for memory. One goroutine serves all groups; a notice is only a hint to
// look: whoever gets it reads the group. Its methods may be called from several goroutines at once.
type Watcher struct {
	poll    int
	wake    int // eventfd that ends the goroutine
	notices chan *Group
	closing chan struct{}
	done    chan struct{}

	mu     sync.Mutex
	next   uint64
	bySlot map[uint64]*source
	told   map[*Group]bool // silent until Rearm
}

// source is one open descriptor that becomes ready when a group waits for memory.
type source struct {
	group  *Group
	slot   uint64
	fd     int // polled
	event  int // the file that the eventfd is about, -1 if fd is that file
	counts bool
	ready  uint32
}

// NewWatcher starts a watcher. Close it.
func NewWatcher() (*Watcher, error) {
	w := &Watcher{notices: make(chan *Group), closing: make(chan struct{}), done: make(chan struct{}), bySlot: map[uint64]*source{}, told: map[*Group]bool{}}
	var err error
	if w.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("watch groups: epoll: %w", err)
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(w.poll)
		return nil, fmt.Errorf("watch groups: eventfd: %w", err)
	}
	if err := unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, w.wake, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		unix.Close(w.poll)
		unix.Close(w.wake)
		return nil, fmt.Errorf("watch groups: epoll: %w", err)
	}
	go w.listen()
	return w, nil
}

// Notices delivers groups that wait for memory. After a notice the same group is silent until Rearm. The channel is closed
// by Close.
func (w *Watcher) Notices() <-chan *Group { return w.notices }

// Add begins to watch g and returns by what means; none is not an error, because readings at intervals find the same
// later. Remove it before the group is removed.
func (w *Watcher) Add(g *Group) []Means {
	var all []Means
	for _, m := range []struct {
		means Means
		open  func(*Group) (*source, error)
	}{{PressureLevel, openPressureLevel}, {MemoryEvents, openMemoryEvents}, {Stall, openStall}} {
		s, err := m.open(g)
		if err != nil {
			continue
		}
		if w.add(s) {
			all = append(all, m.means)
		}
	}
	return all
}

func (w *Watcher) add(s *source) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	s.slot = w.next
	if err := unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, s.fd, s.interest()); err != nil {
		s.close()
		return false
	}
	w.bySlot[s.slot] = s
	return true
}

// interest asks for one notice; slot 0 is the eventfd that ends the goroutine.
func (s *source) interest() *unix.EpollEvent {
	return &unix.EpollEvent{Events: s.ready | unix.EPOLLONESHOT, Fd: int32(uint32(s.slot)), Pad: int32(uint32(s.slot >> 32))}
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
	delete(w.told, g)
	for slot, s := range w.bySlot {
		if s.group == g {
			delete(w.bySlot, slot)
			s.close() // which takes it out of the poll
		}
	}
}

// Rearm asks to hear of g again, of what happens from now on.
func (w *Watcher) Rearm(g *Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.told, g)
	for _, s := range w.bySlot {
		if s.group == g {
			s.drain()
			_ = unix.EpollCtl(w.poll, unix.EPOLL_CTL_MOD, s.fd, s.interest())
		}
	}
}

// drain forgets what was already told.
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

// Close ends the watcher and its goroutine. Nothing else may be called afterwards.
func (w *Watcher) Close() {
	close(w.closing)
	_, _ = unix.Write(w.wake, binary.NativeEndian.AppendUint64(nil, 1))
	<-w.done
	for _, s := range w.bySlot {
		s.close()
	}
	unix.Close(w.poll)
	unix.Close(w.wake)
}

// listen passes notices on. While nobody takes one the kernel keeps what else happens.
func (w *Watcher) listen() {
	defer close(w.done)
	defer close(w.notices)
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(w.poll, events, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		for _, g := range w.groupsOf(events[:n]) {
			select {
			case w.notices <- g:
			case <-w.closing:
			}
		}
		select {
		case <-w.closing:
			return
		default:
		}
	}
}

func (w *Watcher) groupsOf(events []unix.EpollEvent) []*Group {
	w.mu.Lock()
	defer w.mu.Unlock()
	var groups []*Group
	for _, e := range events {
		slot := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
		if s, ok := w.bySlot[slot]; ok && !w.told[s.group] {
			w.told[s.group] = true
			groups = append(groups, s.group)
		}
	}
	return groups
}

// openPressureLevel registers an eventfd for version 1's pressure level.
func openPressureLevel(g *Group) (*source, error) {
	if g.version[Memory] != V1 {
		return nil, unsupported(Memory, "memory.pressure_level")
	}
	dir := g.dirs[Memory]
	level, err := unix.Open(filepath.Join(dir, "memory.pressure_level"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(level)
		return nil, err
	}
	if err := writeFile(filepath.Join(dir, "cgroup.event_control"), fmt.Sprintf("%d %d medium", fd, level)); err != nil {
		unix.Close(level)
		unix.Close(fd)
		return nil, err
	}
	return &source{group: g, fd: fd, event: level, ready: unix.EPOLLIN}, nil
}

// openMemoryEvents opens version 2's counters, whose changes are told as exceptional conditions.
func openMemoryEvents(g *Group) (*source, error) {
	if g.version[Memory] != V2 {
		return nil, unsupported(Memory, "memory.events")
	}
	fd, err := unix.Open(filepath.Join(g.dirs[Memory], "memory.events"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s := &source{group: g, fd: fd, event: -1, counts: true, ready: unix.EPOLLPRI}
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
	return &source{group: g, fd: fd, event: -1, ready: unix.EPOLLPRI}, nil
}
