package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/fault"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// workloadFileVersion is the version of the compact workload format that is read and written.
const workloadFileVersion = 1

// longestLine is how long a line of a workload file may be, in bytes.
const longestLine = 1 << 28

// ClusterShape is equal nodes.
type ClusterShape struct {
	Nodes int
	Node  resource.Vector // each
}

// Header is what a workload file says of itself.
type Header struct {
	// Unit is what times are written in: s, ms, us or ns. 0 is the largest in which all of them are whole numbers.
	Unit time.Duration
	// Cluster is one on which the workload makes sense; nil if nobody said.
	Cluster *ClusterShape
}

// headerLine is the first line of a workload file.
type headerLine struct {
	Version int               `json:"bellows_workload"`
	Units   map[string]string `json:"units"`
	Cluster *clusterLine      `json:"cluster,omitempty"`
}

type clusterLine struct {
	Nodes int               `json:"nodes"`
	Node  []resource.Amount `json:"node"`
}

// timeUnits are what times may be written in, the largest first.
var timeUnits = []struct {
	name string
	unit time.Duration
}{{"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", time.Nanosecond}}

// fixedUnits are those of which a file has no choice.
var fixedUnits = map[string]string{"cpu": "millicores", "memory": "bytes", "disk": "bytes/s", "network": "bytes/s"}

// Writer writes a workload file, job by job.
type Writer struct {
	out  io.Writer
	unit time.Duration
	jobs int
	seen map[cluster.JobID]bool
	last timeline.Time
	line []byte
}

// NewWriter writes the header. The unit of h must be given.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	line := headerLine{Version: workloadFileVersion, Units: map[string]string{}}
	for name, unit := range fixedUnits {
		line.Units[name] = unit
	}
	for _, u := range timeUnits {
		if u.unit == h.Unit {
			line.Units["time"] = u.name
		}
	}
	if line.Units["time"] == "" {
		return nil, fmt.Errorf("workload file: unit %v: must be 1s, 1ms, 1µs or 1ns", h.Unit)
	}
	if h.Cluster != nil {
		if err := h.Cluster.check(); err != nil {
			return nil, fmt.Errorf("workload file: %w", err)
		}
		line.Cluster = &clusterLine{h.Cluster.Nodes, h.Cluster.Node[:]}
	}
	text, err := json.Marshal(line)
	if err != nil {
		return nil, fmt.Errorf("workload file: %w", err)
	}
	w := &Writer{out: out, unit: h.Unit, seen: map[cluster.JobID]bool{}, last: timeline.Earliest, line: append(text, '\n')}
	return w, w.flush()
}

func (c *ClusterShape) check() error {
	if c.Nodes < 1 || c.Nodes > 1<<20 {
		return fmt.Errorf("cluster nodes %d: must be 1 to %d", c.Nodes, 1<<20)
	}
	return checkVector("cluster node", c.Node)
}

func checkVector(what string, v resource.Vector) error {
	for k, a := range v {
		most := cluster.MostMemory
		if resource.Kind(k) == resource.CPU {
			most = cluster.MostCores * resource.Core
		}
		if a < 0 || a > most {
			return fmt.Errorf("%s %v %d: must be 0 to %d", what, resource.Kind(k), a, most)
		}
	}
	return nil
}

func (w *Writer) flush() error {
	if _, err := w.out.Write(w.line); err != nil {
		return fmt.Errorf("workload file: write %d bytes: %w", len(w.line), err)
	}
	return nil
}

// Write adds a job. Jobs come in the order of submission; one that waits for another comes after it.
func (w *Writer) Write(j *Job) error {
	if err := checkPlace(j, w.jobs, w.seen, w.last); err != nil {
		return fmt.Errorf("write job %d of the workload: %w", w.jobs+1, err)
	}
	if err := checkWritable(j); err != nil {
		return fmt.Errorf("write job %d of the workload: %w", w.jobs+1, err)
	}
	e := jobEncoder{unit: w.unit, line: w.line[:0]}
	e.job(j, w.jobs)
	if e.err != nil {
		return fmt.Errorf("write job %q: %w", j.Name, e.err)
	}
	w.jobs++
	w.seen[j.ID] = true
	if j.After < 0 {
		w.last = j.Submitted
	}
	w.line = append(e.line, '\n')
	if len(w.line) > longestLine {
		return fmt.Errorf("write job %q: it takes %d bytes, more than %d", j.Name, len(w.line), longestLine)
	}
	return w.flush()
}

// Close writes the last line, which tells a whole file from part of one. It does not close what is written to.
func (w *Writer) Close() error {
	w.line = fmt.Appendf(w.line[:0], "{\"jobs\":%d}\n", w.jobs)
	return w.flush()
}

// checkPlace checks a job against those before it.
func checkPlace(j *Job, before int, seen map[cluster.JobID]bool, last timeline.Time) error {
	switch {
	case seen[j.ID]:
		return fmt.Errorf("id %d: another job has it", j.ID)
	case j.After < -1 || j.After >= before:
		return fmt.Errorf("after %d: must be the index of a job that stands before this one, 0 to %d", j.After, before-1)
	case j.After < 0 && j.Submitted < last:
		return fmt.Errorf("at %v: must not be before that of the job before", time.Duration(j.Submitted))
	case j.Submitted < 0 || time.Duration(j.Submitted) > cluster.LongestTime:
		return fmt.Errorf("at %v: must be 0s to %v", time.Duration(j.Submitted), cluster.LongestTime)
	}
	return nil
}

// checkWritable checks what a job holds, whichever way it goes.
func checkWritable(j *Job) error {
	filled := j.AssumingProfiles()
	if err := filled.Check(); err != nil {
		return err
	}
	for _, n := range []struct{ field, text string }{{"name", j.Name}, {"queue", j.Queue}, {"owner", j.Owner}} {
		if n.text != "" && !cluster.IsName(n.text) {
			return fmt.Errorf("%s %q: must be at most %d printable characters", n.field, cluster.Clip(n.text), cluster.LongestName)
		}
	}
	if j.Weight > cluster.MostWeight {
		return fmt.Errorf("weight %v: must be at most %d", j.Weight, cluster.MostWeight)
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		if s.Name != "" && !cluster.IsName(s.Name) {
			return fmt.Errorf("stage %d name %q: must be at most %d printable characters", i, cluster.Clip(s.Name), cluster.LongestName)
		}
		if _, err := j.CheckBreathing(i); err != nil {
			return fmt.Errorf("stage %d %w", i, err)
		}
	}
	return j.CheckTruth()
}

// Write writes w as a workload file, without compression.
func Write(out io.Writer, w *Workload, h Header) error {
	if h.Unit == 0 {
		h.Unit = w.timeUnit()
	}
	to, err := NewWriter(out, h)
	if err != nil {
		return err
	}
	for i := range w.Jobs {
		if err := to.Write(&w.Jobs[i]); err != nil {
			return err
		}
	}
	return to.Close()
}

// timeUnit returns the largest unit in which all times are whole numbers.
func (w *Workload) timeUnit() time.Duration {
	at := 0
	see := func(d time.Duration) {
		for at < len(timeUnits)-1 && d%timeUnits[at].unit != 0 {
			at++
		}
	}
	phases := func(all []Phase) {
		for i := range all {
			see(all[i].Duration)
		}
	}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		see(time.Duration(j.Submitted))
		for s := range j.Stages {
			see(j.Stages[s].Duration)
		}
		for s := range j.Truth {
			t := &j.Truth[s]
			see(t.Duration)
			for _, d := range t.Durations {
				see(d)
			}
			phases(t.Phases)
			for _, p := range t.TaskPhases {
				phases(p)
			}
		}
	}
	return timeUnits[at].unit
}

// Save writes w into a file, whole or not at all: it is written beside its place and renamed. The file is packed
// as its name says; see CompressionOf.
func Save(path string, w *Workload, h Header) error {
	return SaveFile(path, CompressionOf(path), func(out io.Writer) error { return Write(out, w, h) })
}

// SaveFile creates or replaces a file with what write writes, packed by c, whole or not at all.
func SaveFile(path string, c Compression, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	buffered := bufio.NewWriterSize(f, 256<<10)
	packed, err := pack(buffered, c)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := write(packed); err != nil {
		return err
	}
	for _, finish := range []func() error{packed.Close, buffered.Flush, func() error { return f.Chmod(0o644) }, f.Sync, f.Close,
		func() error { return os.Rename(f.Name(), path) }} {
		if err := finish(); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

// IsFile reports whether the first bytes of a file, unpacked, are those of a workload file.
func IsFile(start []byte) bool { return bytes.HasPrefix(start, []byte(`{"bellows_workload":`)) }

// Reader reads a workload file, job by job.
type Reader struct {
	Header Header

	file string
	in   *bufio.Reader
	line int
	jobs int
	seen map[cluster.JobID]bool
	last timeline.Time
	err  error
}

// NewReader reads the header. Name is used in errors, which are a *fault.Fault if the file is wrong.
func NewReader(in io.Reader, name string) (*Reader, error) {
	r := &Reader{file: name, in: bufio.NewReaderSize(in, 64<<10), seen: map[cluster.JobID]bool{}, last: timeline.Earliest}
	text, err := r.next()
	if err != nil {
		return nil, err
	}
	// The version decides what the rest means, so it is looked at alone first.
	var version struct {
		Version *int `json:"bellows_workload"`
	}
	if err := json.Unmarshal(text, &version); err != nil || version.Version == nil {
		return nil, r.fault("must be a workload file, but its first line is no header with bellows_workload")
	}
	if *version.Version != workloadFileVersion {
		return nil, r.fault("bellows_workload %d: must be %d, the version of the format", *version.Version, workloadFileVersion)
	}
	var h headerLine
	if err := fault.DecodeLine(text, &h); err != nil {
		return nil, r.fault("header %s", jsonFault(err))
	}
	if err := r.Header.read(&h); err != nil {
		return nil, r.fault("header %v", err)
	}
	return r, nil
}

func (h *Header) read(line *headerLine) error {
	for _, u := range timeUnits {
		if u.name == line.Units["time"] {
			h.Unit = u.unit
		}
	}
	if h.Unit == 0 {
		return fmt.Errorf("units time %q: must be s, ms, us or ns", cluster.Clip(line.Units["time"]))
	}
	for name, unit := range line.Units {
		if name != "time" && fixedUnits[name] != unit {
			return fmt.Errorf("units %q %q: must be %q", cluster.Clip(name), cluster.Clip(unit), fixedUnits[name])
		}
	}
	if c := line.Cluster; c != nil {
		h.Cluster = &ClusterShape{Nodes: c.Nodes}
		if copy(h.Cluster.Node[:], c.Node) != len(c.Node) {
			return fmt.Errorf("cluster node: must have %d numbers at most", resource.NumKinds)
		}
		return h.Cluster.check()
	}
	return nil
}

// Next returns the next job; io.EOF says that there is none, and that the file is whole.
func (r *Reader) Next() (*Job, error) {
	if r.err != nil {
		return nil, r.err
	}
	j, err := r.job()
	r.err = err
	return j, err
}

func (r *Reader) job() (*Job, error) {
	text, err := r.next()
	if err != nil {
		return nil, err
	}
	if end := []byte(`{"jobs":`); bytes.HasPrefix(text, end) {
		return nil, r.end(text)
	}
	var l jobLine
	if err := fault.DecodeLine(text, &l); err != nil {
		return nil, r.fault("job %s", jsonFault(err))
	}
	d := jobDecoder{unit: r.Header.Unit}
	j := d.job(&l, r.jobs)
	if d.err != nil {
		return nil, r.fault("%v", d.err)
	}
	if err := checkPlace(j, r.jobs, r.seen, r.last); err != nil {
		return nil, r.fault("job %q %v", j.Name, err)
	}
	if err := checkWritable(j); err != nil {
		return nil, r.fault("%v", err)
	}
	r.jobs++
	r.seen[j.ID] = true
	if j.After < 0 {
		r.last = j.Submitted
	}
	return j, nil
}

// end reads the last line.
func (r *Reader) end(text []byte) error {
	var last struct {
		Jobs int `json:"jobs"`
	}
	if err := fault.DecodeLine(text, &last); err != nil {
		return r.fault("last line %s", jsonFault(err))
	}
	if last.Jobs != r.jobs {
		return r.fault("jobs %d: must be how many the file holds, %d", last.Jobs, r.jobs)
	}
	if more, err := r.in.ReadByte(); err == nil {
		r.line++
		return r.fault("must end after the line with jobs, but goes on with %q", more)
	} else if err != io.EOF {
		return r.broken(err)
	}
	return io.EOF
}

// next returns the next line, without its end.
func (r *Reader) next() ([]byte, error) {
	r.line++
	var text []byte
	for {
		part, err := r.in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > longestLine:
			return nil, r.fault("must be at most %d bytes long", longestLine)
		case err == nil:
			return text[:len(text)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, r.fault("the file is truncated after %d jobs: it must end in a line with jobs", r.jobs)
		default:
			return nil, r.broken(err)
		}
	}
}

// broken is an error of what is read from.
func (r *Reader) broken(err error) error {
	var f *fault.Fault
	if errors.As(err, &f) {
		return r.fault("%s", f.What)
	}
	return fmt.Errorf("read workload %s: %w", r.file, err)
}

func (r *Reader) fault(format string, operands ...any) error {
	return fault.At(r.file, r.line, format, operands...)
}

// jsonFault puts an error of package json into words that speak of the file.
func jsonFault(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Sprintf("%s: must not be a %s", cluster.Clip(wrong.Field), wrong.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "must be a JSON object, but the line ends within it"
	}
	return cluster.Clip(strings.TrimPrefix(err.Error(), "json: "))
}

// Read reads a workload file; see docs/formats.md. Name is used in errors, which are a *fault.Fault if it is wrong.
func Read(in io.Reader, name string) (*Workload, Header, error) {
	r, err := NewReader(in, name)
	if err != nil {
		return nil, Header{}, err
	}
	w := &Workload{}
	for {
		j, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, r.Header, err
		}
		w.Jobs = append(w.Jobs, *j)
	}
	if len(w.Jobs) == 0 {
		return nil, r.Header, fault.At(name, 0, "jobs: must be at least one, but the file holds none")
	}
	return w, r.Header, nil
}

// inUnits returns n units, ok if that is in range.
func inUnits(n int64, unit time.Duration) (time.Duration, bool) {
	if n > math.MaxInt64/int64(unit) || n < math.MinInt64/int64(unit) {
		return 0, false
	}
	return time.Duration(n) * unit, true
}
