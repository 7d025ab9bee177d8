package swap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/durable/statedir"
)

// Ledger makes swap and records what it made, in a state directory. Concurrent commands take turns.
type Ledger struct {
	machine Machine
	dir     string
}

// entry is one file or device that was made. It is recorded before it has a name, so a recorded one need not exist.
type entry struct {
	Path string          `json:"path"`
	Kind Kind            `json:"kind"`
	Size resource.Amount `json:"size_bytes"`
	File *FileID         `json:"file,omitempty"`
	Zram *zramID         `json:"zram,omitempty"`
	// Since are the counters when it was made.
	Since Counters `json:"since"`
}

// NewLedger returns the ledger of a state directory, which need not exist.
func NewLedger(m Machine, state string) *Ledger { return &Ledger{m, state} }

func (l *Ledger) path() string { return filepath.Join(l.dir, "swap.json") }

// FilePath is the path of a swap file for which the user chose none.
func (l *Ledger) FilePath() string { return filepath.Join(l.dir, "swapfile") }

func (l *Ledger) read() (all []entry, err error) {
	_, err = readRecord(l.path(), "record of swap that was made", &all)
	return all, err
}

func (l *Ledger) write(all []entry) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = durable.Write(l.path(), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("record the swap that was made: %w", err)
	}
	return nil
}

// locked runs change while no other process can change the ledger.
func (l *Ledger) locked(change func() error) error {
	if os.Geteuid() != 0 {
		return refuse("swap needs root to be made or removed: run the same with sudo")
	}
	if err := statedir.Make(l.dir); err != nil {
		return err
	}
	f, err := statedir.Open(filepath.Join(l.dir, "swap.lock"), 0)
	if err != nil {
		return fmt.Errorf("lock the record of swap: %w", err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return errors.New("another command is creating or removing swap: wait until it has ended")
		}
		return fmt.Errorf("lock the record of swap: %w", err)
	}
	return change()
}

// note adds an entry and removes the entries that it proves to be gone.
func (l *Ledger) note(e entry) error {
	all, err := l.read()
	if err != nil {
		return err
	}
	// A missing file may be on a disk that is not mounted; a missing zram device is gone for good.
	all = slices.DeleteFunc(all, func(o entry) bool { return o.Path == e.Path || o.Kind == Zram && !l.exists(&o) })
	return l.write(append(all, e))
}

// strike removes an entry if its file or device is gone.
func (l *Ledger) strike(e *entry) error {
	all, err := l.read()
	if err != nil || l.exists(e) {
		return err
	}
	return l.write(slices.DeleteFunc(all, func(o entry) bool { return o.Path == e.Path }))
}

// exists reports whether the file or device of e is still there, and is not another one of the same name.
func (l *Ledger) exists(e *entry) bool {
	switch {
	case e.Kind == Zram && e.Zram != nil:
		n, ok := zramNumber(e.Path)
		if !ok {
			return false
		}
		size := l.machine.text(fmt.Sprintf("sys/block/zram%d/disksize", n))
		if size == "" || l.machine.identifyZram(n) != *e.Zram {
			return false
		}
		// where the kernel has no sequence numbers
		return e.Zram.Sequence != "" || size == strconv.FormatInt(int64(e.Size), 10)
	case e.Kind == File && e.File != nil:
		id, err := identify(unix.AT_FDCWD, e.Path, 0)
		return err == nil && id.same(*e.File)
	}
	return false
}

// Devices returns the swap devices of the machine, which of them are ours, and ours that are off, as after a restart of
// the machine.
func (l *Ledger) Devices() ([]Device, error) {
	all, err := l.machine.Devices()
	if err != nil {
		return nil, err
	}
	entries, err := l.read()
	if err != nil {
		return nil, err
	}
	counters, counted := l.machine.Counters()
	for i := range entries {
		e := &entries[i]
		if !l.exists(e) {
			continue
		}
		at := slices.IndexFunc(all, func(d Device) bool { return d.Path == e.Path })
		if at < 0 {
			all = append(all, Device{Path: e.Path, Kind: e.Kind, Size: e.Size, Ours: true})
			continue
		}
		all[at].Ours = true
		if counted == nil && e.Kind == File && onlyFile(all) && e.Since.Boot == counters.Boot {
			n := counters.ToDisks(e.Since)
			all[at].Written = &n
		}
	}
	return all, nil
}

// onlyFile reports whether everything that swapping writes to disks goes to one file.
func onlyFile(all []Device) bool {
	disks := 0
	for i := range all {
		if all[i].On && all[i].Kind != Zram {
			disks++
		}
	}
	return disks == 1
}

// CreateFile makes a swap file and turns it on, to be filled after all existing swap; an empty path means FilePath.
func (l *Ledger) CreateFile(path string, size resource.Amount) (d Device, err error) {
	if path == "" {
		path = l.FilePath()
	}
	err = l.locked(func() error {
		if path, err = cleanPath(path); err != nil {
			return err
		}
		if err := l.checkForgotten(path); err != nil {
			return err
		}
		since, err := l.machine.Counters()
		if err != nil {
			return err
		}
		e := entry{Path: path, Kind: File, Size: size, Since: since}
		err = MakeFile(path, size, AsLast, func(id FileID) error {
			e.File = &id
			return l.note(e)
		})
		if err != nil && e.File != nil {
			return errors.Join(err, l.strike(&e))
		}
		return err
	})
	return l.find(path, err)
}

// checkForgotten says what to do about a file of ours that is off.
func (l *Ledger) checkForgotten(path string) error {
	all, err := l.Devices()
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.Path == path && d.Ours && !d.On {
			return refuse("file %s: was made by `bellows swap create` before and is off: `bellows swap remove %s` first", path,
				path)
		}
	}
	return nil
}

// find returns the device at path, unless err is an error already.
func (l *Ledger) find(path string, err error) (Device, error) {
	if err != nil {
		return Device{}, err
	}
	all, err := l.Devices()
	if err != nil {
		return Device{}, err
	}
	for _, d := range all {
		if d.Path == path {
			return d, nil
		}
	}
	return Device{}, fmt.Errorf("swap to %s: it no longer exists", path)
}

// CreateZram adds a zram device of size bytes, before compression, that is filled before all disks; algorithm "" means
// the kernel's preference.
func (l *Ledger) CreateZram(size resource.Amount, algorithm string) (d Device, err error) {
	path := ""
	err = l.locked(func() error {
		if err := l.checkZram(size); err != nil {
			return err
		}
		size -= size % resource.Amount(os.Getpagesize())
		since, err := l.machine.Counters()
		if err != nil {
			return err
		}
		number, err := addZram()
		if err != nil {
			return err
		}
		path = fmt.Sprintf("/dev/zram%d", number)
		id := l.machine.identifyZram(number)
		e := entry{Path: path, Kind: Zram, Size: size, Zram: &id, Since: since}
		if err := l.note(e); err != nil {
			return errors.Join(err, removeZram(number))
		}
		if err := setUpZram(number, size, algorithm); err != nil {
			return errors.Join(err, removeZram(number), l.strike(&e))
		}
		return nil
	})
	return l.find(path, err)
}

func (l *Ledger) checkZram(size resource.Amount) error {
	if err := checkSize(size); err != nil {
		return err
	}
	memory, err := l.machine.Memory()
	if err != nil {
		return err
	}
	if size > mostZram*memory.Total {
		return refuse("size %s: zram is memory, and more than twice the machine's, %s, could not be filled",
			resource.FormatMemory(size), resource.FormatMemory(memory.Total))
	}
	return nil
}

// Remove turns off a file or device of ours, which brings its pages back, and removes it. The pages must fit into
// memory. When ctx ends it returns, and the process should end too, which makes the kernel give up once it has finished
// with a program. Then the device may be on or off, and is still ours. The error is ErrRefused if the device never was
// ours.
func (l *Ledger) Remove(ctx context.Context, path string) error {
	return l.locked(func() error {
		path, err := cleanPath(path)
		if err != nil {
			return err
		}
		entries, err := l.read()
		if err != nil {
			return err
		}
		at := slices.IndexFunc(entries, func(e entry) bool { return e.Path == path && l.exists(&e) })
		if at < 0 {
			return refuse("device %s: was not made by `bellows swap create`; `bellows swap status` lists the devices "+
				"that were", path)
		}
		return l.remove(ctx, &entries[at])
	})
}

func (l *Ledger) remove(ctx context.Context, e *entry) error {
	devices, err := l.machine.Devices()
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(devices, func(d Device) bool { return d.Path == e.Path }); at >= 0 {
		if err := l.checkFits(devices, at); err != nil {
			return err
		}
		if err := l.turnOff(ctx, e.Path); err != nil {
			return fmt.Errorf("stop swapping to %s: %w", e.Path, err)
		}
	}
	if e.Kind == Zram {
		n, _ := zramNumber(e.Path)
		err = removeZram(n)
	} else {
		err = os.Remove(e.Path)
	}
	if err != nil {
		return fmt.Errorf("remove swap: %w", err)
	}
	return l.strike(e)
}

// checkFits refuses to turn off a device whose pages do not fit into memory.
func (l *Ledger) checkFits(devices []Device, at int) error {
	memory, err := l.machine.Memory()
	if err != nil {
		return err
	}
	used, margin, available := devices[at].Used, memory.Total/marginShare, memory.Available
	if z := devices[at].Compressed; z != nil {
		available += z.Memory // is freed page by page
	}
	if used > available-margin {
		return fmt.Errorf("device %s: its %s do not fit into the %s of available memory: end programs that use memory "+
			"first", devices[at].Path, resource.FormatMemory(used), resource.FormatMemory(max(0, available-margin)))
	}
	return nil
}

// turnOff is turnOffUnless, again where pages did not fit the limit of their control group: the kernel then kills a
// program there, gives up, and swaps on. What the program had in swap is free as soon as it is gone.
func (l *Ledger) turnOff(ctx context.Context, path string) error {
	const pause, tries = 100 * time.Millisecond, 50
	left := l.used(path)
	for try := 0; ; try++ {
		err := turnOffUnless(ctx, path)
		if !errors.Is(err, unix.ENOMEM) {
			return err
		}
		if now := l.used(path); now < left {
			left, try = now, 0
		}
		if try >= tries {
			return fmt.Errorf("%s do not come back into memory: %w", resource.FormatMemory(left), err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// used is what a device that is on holds, bytes.
func (l *Ledger) used(path string) resource.Amount {
	devices, _ := l.machine.Devices()
	for i := range devices {
		if devices[i].Path == path {
			return devices[i].Used
		}
	}
	return 0
}

// turnOffUnless is TurnOff until ctx ends.
func turnOffUnless(ctx context.Context, path string) error {
	done := make(chan error, 1)
	go func() { done <- TurnOff(path) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
