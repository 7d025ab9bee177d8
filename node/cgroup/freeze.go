package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// freezeState is how far the freezing of a group has come.
type freezeState int

const (
	thawed freezeState = iota
	freezing
	frozen
)

// frozen reads the state.
func (g *Group) frozen() (freezeState, error) {
	switch g.version[Freezer] {
	case V1:
		text, err := os.ReadFile(filepath.Join(g.dirs[Freezer], "freezer.state"))
		if err != nil {
			return thawed, err
		}
		switch strings.TrimSpace(string(text)) {
		case "FROZEN":
			return frozen, nil
		case "FREEZING":
			return freezing, nil
		}
		return thawed, nil
	case V2:
		events, err := os.ReadFile(filepath.Join(g.dirs[Freezer], "cgroup.events"))
		if err != nil {
			return thawed, err
		}
		is, ok := parseKeyed(string(events)).first("frozen").Get()
		if !ok {
			return thawed, unsupported(Freezer, "cgroup.freeze")
		}
		if is == 1 {
			return frozen, nil
		}
		if strings.TrimSpace(slurp(g.dirs[Freezer], "cgroup.freeze")) == "1" {
			return freezing, nil
		}
		return thawed, nil
	}
	return thawed, unsupported(Freezer, "freezing")
}

// setFrozen requests a state without waiting for it.
func (g *Group) setFrozen(want freezeState) error {
	switch g.version[Freezer] {
	case V1:
		return writeFile(filepath.Join(g.dirs[Freezer], "freezer.state"),
			map[freezeState]string{thawed: "THAWED", frozen: "FROZEN"}[want])
	case V2:
		return writeFile(filepath.Join(g.dirs[Freezer], "cgroup.freeze"),
			map[freezeState]string{thawed: "0", frozen: "1"}[want])
	}
	return unsupported(Freezer, "freezing")
}

// Freeze stops every process and waits until all have stopped. If ctx ends first, Freeze thaws the group again, so that
// no group stays half frozen. A frozen process keeps its memory. In version 1 a frozen process dies of SIGKILL only
// after it is thawed.
func (g *Group) Freeze(ctx context.Context) error {
	err := g.reach(ctx, frozen)
	if err == nil {
		return nil
	}
	if back := g.setFrozen(thawed); back != nil && !errors.Is(back, ErrUnsupported) {
		err = errors.Join(err, back)
	}
	return fmt.Errorf("freeze group %s: %w", g.name, err)
}

// AskFreeze requests what Freeze waits for.
func (g *Group) AskFreeze() error {
	if err := g.setFrozen(frozen); err != nil {
		return fmt.Errorf("freeze group %s: %w", g.name, err)
	}
	return nil
}

// Frozen reports whether a freeze was requested, and whether every process is frozen.
func (g *Group) Frozen() (requested, done bool) {
	is, err := g.frozen()
	return err == nil && is != thawed, err == nil && is == frozen
}

// Thaw lets the processes run again and waits until they do.
func (g *Group) Thaw(ctx context.Context) error {
	if err := g.reach(ctx, thawed); err != nil {
		return fmt.Errorf("thaw group %s: %w", g.name, err)
	}
	return nil
}

// stuck is how long a freeze may take before a thaw in between.
const stuck = 50 * time.Millisecond

// reach requests a state and waits for it. The version 1 kernel can miss a process that forks meanwhile; repeating
// the request catches it. A thread that executes a program waits for the end of the other threads of its process,
// which do not end while they are frozen: only a thaw in between lets such a process go on.
func (g *Group) reach(ctx context.Context, want freezeState) error {
	pause := newPause(200*time.Microsecond, 5*time.Millisecond)
	patience, since := stuck, time.Now()
	for {
		if want == frozen && time.Since(since) > patience {
			if err := g.setFrozen(thawed); err != nil {
				return err
			}
			if err := pause.wait(ctx); err != nil {
				return err
			}
			patience, since = 2*patience, time.Now() // Many processes on a busy machine can take longer to freeze.
		}
		if err := g.setFrozen(want); err != nil {
			return err
		}
		is, err := g.frozen()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return ErrGone
		}
		if err != nil || is == want {
			return err
		}
		if err := pause.wait(ctx); err != nil {
			return err
		}
	}
}

// pause is the time between two reads of a state that the kernel sends no notice of; it doubles from first to last.
type pause struct{ next, last time.Duration }

func newPause(first, last time.Duration) *pause { return &pause{first, last} }

func (p *pause) wait(ctx context.Context) error {
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	p.next = min(2*p.next, p.last)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
