// Package boundeddisk is a disk of a stated speed, for studies of real programs. All that is read from the disk and written
// to it, by whom and how ever, passes through one queue that serves so many bytes per second: direct transfers, and those
// that the kernel makes for its page cache. What is in the page cache costs nothing, as with any disk.
package boundeddisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/internal/fusedisk"
	"github.com/bellows-rm/bellows/resource"
)

// prefix begins the names of the disks' folders; the number of the process follows.
const prefix = "bellows-bounded-disk-"

// Disk is a bounded disk with an ext4, mounted at Path.
type Disk struct {
	*fusedisk.Disk
	content *content
	speed   resource.Amount
}

// New makes a disk of the given size, bytes, and speed, bytes per second, with a file below parent as its content. It
// works in a process that does not end before Remove.
func New(parent string, size, speed resource.Amount) (d *Disk, err error) {
	file, err := os.CreateTemp(parent, prefix+"content-")
	if err == nil {
		err = errors.Join(os.Remove(file.Name()), file.Truncate(int64(size))) // it goes with the process
	}
	if err != nil {
		return nil, fmt.Errorf("make the content of a disk: %w", err)
	}
	d = &Disk{content: &content{file: file, size: int64(size)}, speed: speed}
	if d.Disk, err = fusedisk.New(parent, prefix, d.content); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	const journal = 16
	if err = d.Format(journal); err == nil {
		err = d.Mount(d.File())
	}
	if err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	d.content.queue.bound(float64(speed))
	return d, nil
}

// Remove removes the disk with all that is on it.
func (d *Disk) Remove() error { return errors.Join(d.Close(), d.content.file.Close()) }

// Sweep removes disks that killed processes have left behind, and returns their number.
func Sweep() (int, error) {
	swept, err := fusedisk.Sweep(prefix)
	n := 0
	for _, at := range swept {
		if filepath.Base(at) == "fuse" {
			n++
		}
	}
	return n, err
}

// Meter is what a disk has transferred since it was made.
type Meter struct {
	Read, Written resource.Amount
}

// Total is what was transferred in either direction.
func (m Meter) Total() resource.Amount { return m.Read + m.Written }

// Meter returns what the disk has transferred so far. A transfer counts when it is done.
func (d *Disk) Meter() Meter { return d.content.queue.read() }

// Hasten lets the disk be as fast as it can while do runs, to prepare what is measured later.
func (d *Disk) Hasten(do func() error) error {
	d.content.queue.bound(0)
	defer d.content.queue.bound(float64(d.speed))
	err := do()
	unix.Sync()
	return err
}

// content is the disk as fusedisk serves it.
type content struct {
	file  *os.File
	size  int64
	queue queue
}

func (c *content) Size() int64 { return c.size }

func (c *content) ReadAt(block []byte, offset int64) error {
	c.queue.pass(len(block), false)
	_, err := c.file.ReadAt(block, offset)
	return err
}

func (c *content) WriteAt(block []byte, offset int64) error {
	c.queue.pass(len(block), true)
	_, err := c.file.WriteAt(block, offset)
	return err
}

// Flush implements fusedisk.Content: the disk ends with its process and need not survive a loss of power.
func (c *content) Flush() error { return nil }

// queue serves transfers one after the other.
type queue struct {
	mu    sync.Mutex
	speed float64   // bytes per second; 0 is no bound
	free  time.Time // when it has served all that has come
	meter Meter
}

// late is how far behind its schedule the queue may be and catch up, so that transfers which were woken late, and the time
// from one transfer to the next, cost no speed. It is what may pass at once after a pause.
const late = 100 * time.Millisecond

// pass waits until n bytes have been served.
func (q *queue) pass(n int, write bool) {
	q.mu.Lock()
	until := q.schedule(time.Now(), n)
	q.mu.Unlock()
	time.Sleep(time.Until(until))
	q.mu.Lock()
	if write {
		q.meter.Written += resource.Amount(n)
	} else {
		q.meter.Read += resource.Amount(n)
	}
	q.mu.Unlock()
}

// schedule returns when n bytes that come now have been served.
func (q *queue) schedule(now time.Time, n int) time.Time {
	if q.speed == 0 {
		return now
	}
	takes := time.Duration(float64(n) / q.speed * float64(time.Second))
	if earliest := now.Add(-late); q.free.Before(earliest) {
		q.free = earliest
	}
	q.free = q.free.Add(takes)
	return q.free
}

func (q *queue) bound(speed float64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.speed, q.free = speed, time.Time{}
}

func (q *queue) read() Meter {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.meter
}
