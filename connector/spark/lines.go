package spark

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// A launcher and its JVM speak in lines of JSON. Commands go to the standard input of the JVM.

// command is an order to a JVM.
type command struct {
	Do         string `json:"do"` // attach, park, forget, or end
	Attachment int64  `json:"attachment,omitempty"`
	Key        string `json:"key,omitempty"` // of the application
	Name       string `json:"name,omitempty"`
	Payload    []byte `json:"payload,omitempty"` // that the application has enrolled with
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

// printer copies lines, and begins each with a label, which says to what it belongs.
type printer struct {
	mu    sync.Mutex
	to    io.Writer
	label string
	part  []byte // of a line whose end has not come
}

// own says to whom lines belong from now on: a part of a line belongs to whom was before.
func (p *printer) own(label string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush()
	p.label = label
}

// Write implements io.Writer.
func (p *printer) Write(text []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = len(text)
	for len(text) > 0 {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		p.part, text = append(p.part, line...), rest
		if ended || len(p.part) >= mostLine {
			p.print()
		}
	}
	return n, nil
}

// flush prints the part of a line.
func (p *printer) flush() {
	if len(p.part) > 0 {
		p.print()
	}
}

// print prints a line. Whoever cannot be written to, loses it: the JVM must not wait.
func (p *printer) print() {
	line := make([]byte, 0, len(p.label)+len(p.part)+4)
	if p.label != "" {
		line = append(append(append(line, '['), p.label...), "] "...)
	}
	_, _ = p.to.Write(append(append(line, p.part...), '\n'))
	p.part = p.part[:0]
}
