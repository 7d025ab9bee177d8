package boundeddisk

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/fusedisk"
)

// Command is the first argument of a program that shall be the server of a disk: its main function passes the other
// arguments to Serve, and exits with the result.
const Command = "bounded-disk"

// prefix begins the names of the disks' folders; the number of the server's process follows.
const prefix = "bellows-bounded-disk-"

// The orders of a server.
const (
	meterOrder  = "meter"
	hastenOrder = "hasten" // no bound
	boundOrder  = "bound"
)

// Serve makes a disk and serves it until the end of the orders on standard input. args are the arguments of New.
func Serve(args []string) (code int) {
	if err := serve(args); err != nil {
		fmt.Fprintln(os.Stderr, "bounded disk:", err)
		return 1
	}
	return 0
}

func serve(args []string) (err error) {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments: must be a folder, a size and a speed", len(args))
	}
	size, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	speed, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	if _, err := fusedisk.Sweep(prefix); err != nil {
		return err
	}
	file, err := os.CreateTemp(args[0], prefix+"content-")
	if err != nil {
		return err
	}
	defer file.Close()
	if err := errors.Join(os.Remove(file.Name()), file.Truncate(size)); err != nil { // it goes with the process
		return err
	}
	c := &content{file: file, size: size}
	d, err := fusedisk.New(args[0], prefix, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	const journal = 16 // MiB
	if err := d.Format(journal); err != nil {
		return err
	}
	if err := d.Mount(d.File()); err != nil {
		return err
	}
	answers := json.NewEncoder(os.Stdout)
	c.arm.Set(fusedisk.Pace{Rate: speed})
	if err := answers.Encode(d.Path()); err != nil {
		return err
	}
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		switch orders.Text() {
		case hastenOrder:
			c.arm.Set(fusedisk.Pace{})
		case boundOrder:
			c.arm.Set(fusedisk.Pace{Rate: speed})
		}
		if err := answers.Encode(Meter{resource.Amount(c.read.Load()), resource.Amount(c.written.Load())}); err != nil {
			return err
		}
	}
	return nil
}

// content is the disk as fusedisk serves it.
type content struct {
	file          *os.File
	size          int64
	arm           fusedisk.Arm
	read, written atomic.Int64
}

// Size implements fusedisk.Content.
func (c *content) Size() int64 { return c.size }

// ReadAt implements fusedisk.Content.
func (c *content) ReadAt(block []byte, offset int64) error {
	c.arm.Move(offset, int64(len(block)))
	c.read.Add(int64(len(block)))
	_, err := c.file.ReadAt(block, offset)
	return err
}

// WriteAt implements fusedisk.Content.
func (c *content) WriteAt(block []byte, offset int64) error {
	c.arm.Move(offset, int64(len(block)))
	c.written.Add(int64(len(block)))
	_, err := c.file.WriteAt(block, offset)
	return err
}

// Flush implements fusedisk.Content: the disk ends with its process and need not survive a loss of power.
func (c *content) Flush() error { return nil }
