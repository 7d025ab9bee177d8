package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Held is what a group holds that only swap can take.
type Held struct {
	// AnonBytes is anonymous memory and memory shared between processes, which the kernel counts among page cache.
	AnonBytes, SwapBytes int64
	// AnonRefaults counts pages that came back from swap soon after they went; 0 where the kernel does not tell.
	AnonRefaults int64
}

// Gauge reads Held again and again, at a fraction of what Read costs: it keeps the files open. It is not for several
// goroutines at once. Close it.
type Gauge struct {
	name       string
	stat, swap int // swap is -1 where memory.stat tells it
	keys       [4]string
	buffer     [8192]byte
}

// Gauge opens a gauge; nothing in it depends on the group's name later on.
func (g *Group) Gauge() (*Gauge, error) {
	dir := g.dirs[Memory]
	out := &Gauge{name: g.name, stat: -1, swap: -1, keys: [4]string{"total_rss", "total_shmem", "total_workingset_refault_anon", "total_swap"}}
	var err error
	if out.stat, err = unix.Open(filepath.Join(dir, "memory.stat"), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("measure group %s: %w", g.name, err)
	}
	if g.version[Memory] == V2 {
		out.keys = [4]string{"anon", "shmem", "workingset_refault_anon", ""}
		// Without swap in the kernel there is no such file, and nothing swapped.
		if out.swap, err = unix.Open(filepath.Join(dir, "memory.swap.current"), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			out.swap = -1
		}
	}
	return out, nil
}

// Read returns what is held now. The error is ErrGone once the group is removed.
func (g *Gauge) Read() (Held, error) {
	text, err := g.text(g.stat)
	if err != nil {
		return Held{}, err
	}
	h := Held{AnonBytes: field(text, g.keys[0]) + field(text, g.keys[1]), AnonRefaults: field(text, g.keys[2])}
	if g.keys[3] != "" {
		h.SwapBytes = field(text, g.keys[3])
	} else if g.swap >= 0 {
		if text, err = g.text(g.swap); err != nil {
			return Held{}, err
		}
		h.SwapBytes, _ = strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	}
	return h, nil
}

func (g *Gauge) text(fd int) ([]byte, error) {
	n, err := unix.Pread(fd, g.buffer[:], 0)
	if errors.Is(err, unix.ENODEV) {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("measure group %s: %w", g.name, err)
	}
	return g.buffer[:n], nil
}

// Close closes the files.
func (g *Gauge) Close() {
	unix.Close(g.stat)
	if g.swap >= 0 {
		unix.Close(g.swap)
	}
}

// field returns the number behind a word at the beginning of a line, 0 if there is none.
func field(text []byte, key string) int64 {
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if len(line) > len(key) && line[len(key)] == ' ' && string(line[:len(key)]) == key {
			n, err := strconv.ParseInt(string(line[len(key)+1:]), 10, 64)
			if err != nil || n < 0 {
				return 0
			}
			return n
		}
	}
	return 0
}
