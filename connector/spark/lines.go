package spark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// A launcher and its JVM speak in lines of JSON. Commands go to the standard input of the JVM.

// command is an order to a JVM.
type command struct {
	Do         string `json:"do"` // attach, park, forget, or end
	Attachment int64  `json:"attachment,omitempty"`
	Key        string `json:"key,omitempty"` // of the application
	Name       string `json:"name,omitempty"`
	Payload    []byte `json:"payload,omitempty"` // that the application has enrolled with
	Left       int64  `json:"left,omitempty"`    // memory of the container that is not used, bytes; only to attach anew
}

// report is what a JVM says, in the file that the variable ReportsVariable names.
type report struct {
	Is string `json:"is"` // ready, active, parked, failed, left, keeps, broken, or audit
	// of ready
	Spark string `json:"spark"`
	Scala string `json:"scala"`
	Java  string `json:"java"`
	// of active, failed and left
	Attachment int64  `json:"attachment"`
	Full       bool   `json:"full"`  // the JVM knew nothing of the application before
	Error      string `json:"error"` // for people; also of broken
	Why        string `json:"why"`   // of left, for people
	Cause      string `json:"cause"` // of failed: unreachable, refused, failed, or empty
	// of keeps
	Keys []string `json:"keys"`
	audit
}

// Environment variables of the JVM.
const (
	ReportsVariable = "BELLOWS_REPORTS" // path of the file for reports
	CoresVariable   = "BELLOWS_CORES"   // how many tasks run at once
)

// encode returns the line of a command.
func encode(c command) []byte {
	line, err := json.Marshal(c)
	if err != nil {
		panic(err) // It has only texts and numbers.
	}
	return append(line, '\n')
}

// decode reads the line of a report.
func decode(line []byte) (r report, err error) {
	if err = json.Unmarshal(line, &r); err != nil {
		err = fmt.Errorf("a report of the JVM: %w: %.200q", err, line)
	}
	return r, err
}

// mostLine bounds a line of output that is kept together, bytes.
const mostLine = 64 << 10

// output is what a JVM prints into a pipe. It is copied in lines, each of which begins with a label, which says to what
// it belongs.
type output struct {
	pipe *os.File
	to   io.Writer

	mu     sync.Mutex // what follows
	label  string
	part   []byte // of a line whose end has not come
	buffer [pipeSize]byte
}

// pipeSize is how much a pipe holds, bytes.
const pipeSize = 64 << 10

// newOutput copies from a pipe, which it closes in the end.
func newOutput(pipe *os.File, to io.Writer) *output { return &output{pipe: pipe, to: to} }

// copy copies until the pipe ends.
func (o *output) copy() {
	defer o.pipe.Close()
	raw, err := o.pipe.SyscallConn()
	for open := true; open && err == nil; {
		err = raw.Read(func(fd uintptr) bool {
			var n int
			n, open = o.take(int(fd))
			return n > 0 || !open
		})
	}
}

// take prints a piece of what is in the pipe. It returns how many bytes that were; open is false if no more will come.
func (o *output) take(fd int) (n int, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		n, err := syscall.Read(fd, o.buffer[:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return 0, true
		case err != nil || n == 0:
			return 0, false
		}
		o.write(o.buffer[:n])
		return n, true
	}
}

// own says to whom lines belong from now on. What is in the pipe belongs to whom was before, and so does a part of a
// line: when the JVM says that it has parked, its last lines may not have been read yet.
func (o *output) own(label string) {
	if raw, err := o.pipe.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // It fails if the pipe has ended.
			for left := pipeSize; left > 0; {
				n, _ := o.take(int(fd))
				if n == 0 {
					break
				}
				left -= n
			}
		})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.part) > 0 {
		o.print()
	}
	o.label = label
}

// write prints the lines of a text, and keeps what is no whole line.
func (o *output) write(text []byte) {
	for len(text) > 0 {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		o.part, text = append(o.part, line...), rest
		if ended || len(o.part) >= mostLine {
			o.print()
		}
	}
}

// print prints a line. Whoever cannot be written to, loses it: the JVM must not wait.
func (o *output) print() {
	line := make([]byte, 0, len(o.label)+len(o.part)+4)
	if o.label != "" {
		line = append(append(append(line, '['), o.label...), "] "...)
	}
	_, _ = o.to.Write(append(append(line, o.part...), '\n'))
	o.part = o.part[:0]
}
