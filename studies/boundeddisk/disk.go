// Package boundeddisk is a disk of a stated speed, for studies of real programs. All transfers from and to the disk,
// direct ones and the kernel's own for its page cache, pass through one queue that serves a fixed number of bytes per
// second. Reads that the page cache can answer cost nothing, as with any disk.
//
// A process of its own serves the disk. A process that used a disk which it serves itself could deadlock: while one
// of its threads waits for the disk in a page fault or between fork and exec, Go cannot stop that thread, and stops
// all other threads.
package boundeddisk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/fusedisk"
)

// Disk is a bounded disk with an ext4, mounted at Path.
type Disk struct {
	path  string
	speed resource.Amount

	mu      sync.Mutex
	server  *exec.Cmd
	orders  io.WriteCloser // one per line; the server removes the disk when they end
	answers *json.Decoder
}

// Need says in one clause what this machine lacks for a bounded disk; empty if nothing is known to be missing.
func Need() string { return fusedisk.Need() }

// New makes a disk of the given size, bytes, and speed, bytes per second, with a file below parent as its content. It
// starts this program again, with Command as its first argument, as the server, which removes the disk also if this
// process is killed.
func New(parent string, size, speed resource.Amount) (d *Disk, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d = &Disk{speed: speed, server: exec.Command(self, Command, parent, strconv.FormatInt(int64(size), 10),
		strconv.FormatInt(int64(speed), 10))}
	d.server.Dir, d.server.Stderr = "/", os.Stderr
	d.server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends the programs that use the disk first
	d.orders, err = d.server.StdinPipe()
	var out io.ReadCloser
	if err == nil {
		out, err = d.server.StdoutPipe()
	}
	if err == nil {
		err = d.server.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the server of a disk: %w", err)
	}
	d.answers = json.NewDecoder(out)
	if err := d.answers.Decode(&d.path); err != nil {
		return nil, errors.Join(errors.New("the disk cannot be made"), d.Remove())
	}
	return d, nil
}

// Path returns where the file system is mounted.
func (d *Disk) Path() string { return d.path }

// Remove removes the disk with all that is on it.
func (d *Disk) Remove() error { return errors.Join(d.orders.Close(), d.server.Wait()) }

// Meter is what a disk has transferred since it was made.
type Meter struct {
	Read    resource.Amount `json:"read_bytes"`
	Written resource.Amount `json:"written_bytes"`
}

// Total is what was transferred in either direction.
func (m Meter) Total() resource.Amount { return m.Read + m.Written }

// Meter returns what the disk has transferred so far. A transfer counts when it is done.
func (d *Disk) Meter() (Meter, error) { return d.order(meterOrder) }

// order sends an order to the server, and returns its answer.
func (d *Disk) order(word string) (m Meter, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err = fmt.Fprintln(d.orders, word); err == nil {
		err = d.answers.Decode(&m)
	}
	if err != nil {
		return m, fmt.Errorf("the server of the disk: %w", err)
	}
	return m, nil
}

// Hasten lets the disk be as fast as it can while do runs, to prepare what is measured later.
func (d *Disk) Hasten(do func() error) error {
	if _, err := d.order(hastenOrder); err != nil {
		return err
	}
	err := errors.Join(do(), fusedisk.Sync(d.path))
	_, bound := d.order(boundOrder)
	return errors.Join(err, bound)
}
