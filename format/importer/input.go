package importer

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/format/workload"
)

// Limits of the values in a file, far above any plausible value. They are the limits of package workload.
const (
	mostSeconds = 10 * 365 * 24 * 3600 // a time or a duration
	mostTasks   = 1 << 22              // of a stage, and instances in a line
	mostCores   = 1_000_000            // of a task
	mostBytes   = 1e18                 // of anything
	longestLine = 1 << 28
	longestName = 200
)

// input is one file, or several that follow each other, read line by line.
type input struct {
	name    string
	parts   []Source // that follow
	growing bool     // a program appends to the file: it may end anywhere
	in      *bufio.Reader
	options *Options
	notes   *notes
	line    int
	read    int64 // bytes
	closer  io.Closer
	without *fault.Fault // the first reason for which something of the file was left out
}

// open opens the first of parts, of which there is at least one.
func open(parts []Source, growing bool, o *Options, n *notes) (*input, error) {
	in := &input{parts: parts, growing: growing, options: o, notes: n}
	return in, in.openNext()
}

// openNext opens the next part.
func (in *input) openNext() error {
	s := in.parts[0]
	in.name, in.line, in.parts = s.Name, 0, in.parts[1:]
	data, err := workload.Unpack(s.Data, s.Name)
	switch {
	case err != nil && in.endsBy(err):
		data = io.NopCloser(strings.NewReader(""))
	case err != nil && !fault.Is(err):
		return worldError{err}
	case err != nil:
		return err
	}
	in.closer = data
	in.in = bufio.NewReaderSize(&counted{from: data, in: in}, 256<<10)
	return nil
}

func (in *input) close() { in.closer.Close() }

// endsBy reports whether err says that a compressed file was cut off, and the file may be.
func (in *input) endsBy(err error) bool {
	if !in.growing || !workload.IsTruncated(err) {
		return false
	}
	in.notes.add("compressed logs were cut off; what is whole is imported", 1)
	in.doubt(err)
	return true
}

// doubt keeps the first reason for which something of the file was left out.
func (in *input) doubt(err error) {
	if f := new(fault.Fault); in.without == nil && errors.As(err, &f) {
		in.without = f
	}
}

// leaveOut leaves out a record of a log that is wrong or contradicts the others, which err says. The rest counts.
func (in *input) leaveOut(err error) {
	in.doubt(err)
	in.notes.leaveOut(err)
}

// nothing is the fault of a log of which nothing is left.
func (in *input) nothing(must string) error {
	if in.without != nil {
		return in.fault("%s, but it has none: %s", must, in.without.What)
	}
	return in.fault("%s", must)
}

// counted reports the progress of reading.
type counted struct {
	from io.Reader
	in   *input
	end  bool // was reached
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	if c.end {
		return 0, io.EOF
	}
	n, err := c.from.Read(p)
	c.in.read += int64(n)
	if c.in.options.Progress != nil {
		c.in.options.Progress(c.in.read)
	}
	if most := c.in.options.total.read(c.in, n); most != nil {
		return n, most
	}
	if err != nil && c.in.endsBy(err) {
		err, c.end = io.EOF, true
	}
	return n, err
}

// next returns the next line without its end; io.EOF says that there is none. The text is valid until the next call.
func (in *input) next() (string, error) {
	for {
		text, err := in.nextOfPart()
		if err != io.EOF || len(in.parts) == 0 {
			return text, err
		}
		in.close()
		if err := in.openNext(); err != nil {
			return "", err
		}
	}
}

func (in *input) nextOfPart() (string, error) {
	in.line++
	var long []byte
	for {
		part, err := in.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if long = append(long, part...); len(long) > longestLine {
				return "", in.fault("line: must be at most %d bytes long", longestLine)
			}
			continue
		case err == io.EOF && len(part)+len(long) == 0:
			return "", io.EOF
		case err != nil && err != io.EOF:
			return "", in.broken(err)
		}
		text := append(long, part...)
		if in.line == 1 {
			text = []byte(strings.TrimPrefix(string(text), "\ufeff"))
		}
		return strings.TrimRight(string(text), "\r\n"), nil
	}
}

// lines passes each line on, without its end. The text is valid during the call.
func (in *input) lines(each func(text string) error) error {
	for {
		text, err := in.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = each(text)
		}
		if err != nil {
			return err
		}
	}
}

// cells passes on each line of a file without a head as a row. width returns an error if a line must not have that many
// cells.
func (in *input) cells(separator string, columns []string, width func(cells int) error, each func(*row) error) error {
	at := columnsAt(columns)
	return in.lines(func(text string) error {
		r := &row{in: in, cells: strings.Split(text, separator), at: at}
		if err := width(len(r.cells)); err != nil {
			return err
		}
		return r.done(each)
	})
}

// broken is an error of reading; a fault in the compressed data also names the line at which it showed.
func (in *input) broken(err error) error {
	var f *fault.Fault
	if errors.As(err, &f) {
		return in.fault("%s", f.What)
	}
	return worldError{fmt.Errorf("read %s: %w", in.name, err)}
}

// fault is a mistake in the line that was read last.
func (in *input) fault(format string, operands ...any) error {
	return fault.At(in.name, in.line, format, operands...)
}

func (in *input) faultAt(line int, format string, operands ...any) error {
	return fault.At(in.name, line, format, operands...)
}

// table reads lines of cells after a head that names them.
type table struct {
	in      *input
	record  func() ([]string, error) // the next line; io.EOF at the end
	columns map[string]int
	width   int
}

// table reads a file of comma-separated values; quoted values may contain commas. See separated for the columns.
func (in *input) table(columns ...string) (*table, error) {
	c := csv.NewReader(in.in)
	c.FieldsPerRecord = -1
	c.ReuseRecord = true
	return in.withHead(func() ([]string, error) { return in.record(c) }, columns)
}

// separated reads a file of values that are never quoted. A column that begins with ? may be missing; one with several
// names, separated by |, may have any of them, and is known by the first.
func (in *input) separated(by string, columns ...string) (*table, error) {
	return in.withHead(func() ([]string, error) {
		text, err := in.next()
		return strings.Split(text, by), err
	}, columns)
}

// withHead reads the head of the file and looks for the columns.
func (in *input) withHead(record func() ([]string, error), columns []string) (*table, error) {
	t := &table{in: in, record: record, columns: map[string]int{}}
	head, err := t.record()
	if err == io.EOF {
		return nil, in.faultAt(1, "head: must name the columns %s, but the file is empty", strings.Join(columns, ", "))
	}
	if err != nil {
		return nil, err
	}
	t.width = len(head)
	for i := range head {
		head[i] = strings.TrimSpace(head[i])
	}
	for _, want := range columns {
		all, optional := strings.CutPrefix(want, "?")
		names := strings.Split(all, "|")
		at := slices.IndexFunc(head, func(cell string) bool { return slices.Contains(names, cell) })
		if at < 0 && !optional {
			return nil, in.fault("head: must name the column %s; it names %s", strings.Join(names, " or "),
				cluster.Clip(strings.Join(head, ", ")))
		}
		if at >= 0 {
			t.columns[names[0]] = at
		}
	}
	return t, nil
}

// record returns the next line of comma-separated values.
func (in *input) record(c *csv.Reader) ([]string, error) {
	cells, err := c.Read()
	if err == io.EOF {
		return nil, io.EOF
	}
	var wrong *csv.ParseError
	if errors.As(err, &wrong) {
		return nil, in.faultAt(wrong.Line, "columns: %v", wrong.Err)
	}
	if err != nil {
		in.line++
		return nil, in.broken(err)
	}
	in.line, _ = c.FieldPos(0)
	if in.line == 1 {
		cells[0] = strings.TrimPrefix(cells[0], "\ufeff")
	}
	return cells, nil
}

// rows passes each row on.
func (t *table) rows(each func(*row) error) error {
	at := func(name string) int {
		if i, ok := t.columns[name]; ok {
			return i
		}
		return -1
	}
	for {
		cells, err := t.record()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if len(cells) != t.width {
			return t.in.fault("columns: must be %d as in the head, but are %d", t.width, len(cells))
		}
		r := &row{in: t.in, cells: cells, at: at}
		if err := r.done(each); err != nil {
			return err
		}
	}
}

// row reads the cells of one line and keeps the first error.
type row struct {
	in    *input
	cells []string
	at    func(name string) int
	err   error
}

// done returns the first error of handling a row: of its cells, or of each.
func (r *row) done(each func(*row) error) error {
	err := each(r)
	if r.err != nil {
		return r.err
	}
	return err
}

// once returns a name that must not be in seen, which has the line of each name, and adds it. where says in a word or
// two where the name must be unique.
func (r *row) once(column string, seen map[string]int, where string) string {
	name := r.named(column)
	if first, twice := seen[name]; twice {
		r.fail(column, "given twice%s, first in line %d", where, first)
	}
	seen[name] = r.in.line
	return name
}

// columnsAt returns the index of names in a list, for lines without a head.
func columnsAt(names []string) func(string) int {
	return func(name string) int { return slices.Index(names, name) }
}

// text returns a cell, "" if the column is missing.
func (r *row) text(name string) string {
	if i := r.at(name); i >= 0 && i < len(r.cells) {
		return strings.TrimSpace(r.cells[i])
	}
	return ""
}

func (r *row) fail(name, must string, operands ...any) {
	if r.err == nil {
		r.err = r.in.fault("%s %q: %s", name, cluster.Clip(r.text(name)), fmt.Sprintf(must, operands...))
	}
}

// namedOr is named, with otherwise for a column that the file does not have.
func (r *row) namedOr(name, otherwise string) string {
	if r.at(name) < 0 {
		return otherwise
	}
	return r.named(name)
}

// named returns a cell as a name, which must not be empty.
func (r *row) named(name string) string {
	text := r.text(name)
	if text == "" {
		r.fail(name, "must not be empty")
	}
	return plainName(text)
}

// number returns a number from least to most.
func (r *row) number(name string, least, most float64) float64 {
	v, ok := parseNumber(r.text(name), least, most)
	if !ok {
		r.fail(name, "must be a number from %.10g to %.10g", least, most)
		return least
	}
	return v
}

// numberOr is number, with otherwise for a cell that is empty or -.
func (r *row) numberOr(name string, least, most, otherwise float64) float64 {
	if r.missing(name) {
		return otherwise
	}
	return r.number(name, least, most)
}

// missing reports whether a cell is empty or -.
func (r *row) missing(name string) bool {
	text := r.text(name)
	return text == "" || text == "-"
}

// quantity returns a value from 0 to most that parse reads, 0 for a cell that is empty or -. must says what parse
// accepts.
func (r *row) quantity(name string, parse func(text string) (v float64, ok bool), most float64, must string) float64 {
	if r.missing(name) {
		return 0
	}
	v, ok := parse(r.text(name))
	if !ok || !(v >= 0 && v <= most) {
		r.fail(name, "must be %s, from 0 to %.10g", must, most)
		return 0
	}
	return v
}

// whole returns a whole number from least to most, which may be written with a fraction of zero.
func (r *row) whole(name string, least, most int64) int64 {
	v, ok := parseNumber(r.text(name), float64(least), float64(most))
	if !ok || v != math.Trunc(v) {
		r.fail(name, "must be a whole number from %d to %d", least, most)
		return least
	}
	return int64(v)
}

// parseNumber reads a number from least to most; NaN and infinity are not accepted.
func parseNumber(text string, least, most float64) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && v >= least && v <= most
}

// plainName makes a name of any text: printable, not too long.
func plainName(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text))
	if len(text) <= longestName {
		return text
	}
	short := text[:longestName]
	for len(short) > 0 && short[len(short)-1]&0xC0 == 0x80 || strings.HasSuffix(short, string(unicode.ReplacementChar)) {
		short = short[:len(short)-1]
	}
	return strings.TrimSpace(strings.ToValidUTF8(short, ""))
}

// fileName is the name of a file without the endings of its name, for what is named by nothing else.
func (in *input) fileName() string {
	folder, name := path.Split(in.name)
	if short, _, _ := strings.Cut(name, "."); short != "" {
		name = short
	}
	return plainName(folder + name)
}

// seconds returns a duration, in whole milliseconds.
func seconds(s float64) time.Duration {
	return time.Duration(math.Round(s*1000)) * time.Millisecond
}

// amount returns a whole amount.
func amount(v float64) resource.Amount { return resource.Amount(math.Round(min(v, mostBytes))) }

// notes counts what was left out or repaired.
type notes struct {
	order []string
	count map[string]int
	said  []string
	left  int   // records that were left out
	first error // what was wrong with the first
	// ends are the ends without success, also of tasks that were left out, and unasked counts the tasks whose request
	// for memory is not in the file.
	ends    map[profile.App]Ends
	unasked int
}

// Ends counts tasks that ended without success.
type Ends struct {
	All       int
	ForMemory int // those that ended for want of memory, as far as the file says so
}

// And returns e with one more.
func (e Ends) And(forMemory bool) Ends {
	e.All++
	if forMemory {
		e.ForMemory++
	}
	return e
}

// ended counts the end of a task without success.
func (n *notes) ended(app profile.App, forMemory bool) { n.endings(app, Ends{}.And(forMemory)) }

// endings counts several.
func (n *notes) endings(app profile.App, more Ends) {
	if more.All == 0 {
		return
	}
	if n.ends == nil {
		n.ends = map[profile.App]Ends{}
	}
	is := n.ends[app]
	n.ends[app] = Ends{is.All + more.All, is.ForMemory + more.ForMemory}
}

// say adds a sentence.
func (n *notes) say(sentence string) { n.said = append(n.said, sentence) }

func (n *notes) add(what string, times int) {
	if times == 0 {
		return
	}
	if n.count == nil {
		n.count = map[string]int{}
	}
	if n.count[what] == 0 {
		n.order = append(n.order, what)
	}
	n.count[what] += times
}

func (n *notes) leaveOut(err error) {
	if n.left++; n.first == nil {
		n.first = err
	}
}

// sentences returns the notes, in the order of their first occurrence.
func (n *notes) sentences() []string {
	var all []string
	for _, what := range n.order {
		all = append(all, fmt.Sprintf("%s: %d", what, n.count[what]))
	}
	if n.left > 0 {
		all = append(all, fmt.Sprintf(
			"records are wrong or contradict the rest of their log, and were left out: %d, first %v", n.left, n.first))
	}
	return append(all, n.said...)
}

// IsWorld reports whether err says that a file could not be read, as opposed to a mistake in a file or an option.
func IsWorld(err error) bool {
	var w worldError
	return errors.As(err, &w)
}

// worldError is a failure to read a file.
type worldError struct{ err error }

func (w worldError) Error() string { return w.err.Error() }
func (w worldError) Unwrap() error { return w.err }
