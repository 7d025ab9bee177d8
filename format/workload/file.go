package workload

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/format/fault"
)

// workloadFileVersion is the version of workload files.
const workloadFileVersion = 2

// longestLine is the largest length of a line of a workload file, in bytes.
const longestLine = 1 << 28

// ClusterShape describes a cluster of equal nodes.
type ClusterShape struct {
	Nodes int
	Node  resource.Vector // of each node
}

// Header is the description of a workload file.
type Header struct {
	// Cluster is a cluster that suits the workload; nil if unknown.
	Cluster *ClusterShape
}

// headerLine is the first line of a workload file.
type headerLine struct {
	Version int          `json:"bellows_workload"`
	Cluster *clusterLine `json:"cluster,omitempty"`
}

// jobRecord is a job on a line of its own.
type jobRecord struct {
	*cluster.Job
	After *int `json:"after,omitempty"` // index in the file, from 0; if omitted, the job is submitted at its time
	// Truth names, per stage, the truth of its tasks, which is on an earlier line; "" is as estimated.
	Truth []string `json:"truth,omitempty"`
}

// truthRecord is the truth of tasks, on a line of its own, with a name that any number of stages can refer to.
type truthRecord struct {
	Name  string       `json:"truth_profile"`
	Truth *truthFields `json:"truth"`
}

// truthFields is a StageTruth in a file: a value for all tasks and a list with one for each are fields of their own, of
// which a file has one.
type truthFields struct {
	Durations     []time.Duration     `json:"durations_ns,omitempty"`
	Duration      time.Duration       `json:"duration_ns,omitempty"`
	Fresh         []time.Duration     `json:"fresh_ns,omitempty"`
	First         []time.Duration     `json:"first_ns,omitempty"`
	IdealMemory   resource.Amount     `json:"ideal_memory_bytes,omitempty"`
	Elasticity    *cluster.Elasticity `json:"elasticity,omitempty"`
	IdealMemories []resource.Amount   `json:"ideal_memories_bytes,omitempty"`
	Phases        []cluster.Phase     `json:"phases,omitempty"`
	TaskPhases    [][]cluster.Phase   `json:"task_phases,omitempty"`
	Heap          *Heap               `json:"heap,omitempty"`
}

func fieldsOf(t *StageTruth) *truthFields {
	f := &truthFields{Fresh: t.Fresh, First: t.First, Elasticity: t.Elasticity, Heap: t.Heap}
	split(t.Duration, &f.Durations, &f.Duration)
	split(t.IdealMemory, &f.IdealMemories, &f.IdealMemory)
	split(t.Phases, &f.TaskPhases, &f.Phases)
	return f
}

// split puts values into the list that has one for each task, or into the value for all tasks.
func split[T any](p PerTask[T], each *[]T, all *T) {
	if p.Differs() {
		*each = p.Values()
	} else {
		*all, _ = p.Of(0)
	}
}

func (f *truthFields) truth() StageTruth {
	t := StageTruth{Duration: eachOrAll(f.Durations, f.Duration), Fresh: f.Fresh, First: f.First, Elasticity: f.Elasticity,
		IdealMemory: eachOrAll(f.IdealMemories, f.IdealMemory), Heap: f.Heap}
	if t.Phases = ForEach(f.TaskPhases); len(f.TaskPhases) == 0 && len(f.Phases) > 0 {
		t.Phases = ForAll(f.Phases)
	}
	return t
}

// eachOrAll returns the values for each task, or else the value for all; 0 means none.
func eachOrAll[T ~int64](each []T, all T) PerTask[T] {
	if len(each) > 0 || all == 0 {
		return ForEach(each)
	}
	return ForAll(all)
}

type clusterLine struct {
	Nodes int               `json:"nodes"`
	Node  []resource.Amount `json:"node"`
}

// Writer writes a workload file, job by job.
type Writer struct {
	out    io.Writer
	jobs   int
	seen   map[cluster.JobID]bool
	last   timeline.Time
	truths map[[sha256.Size]byte]string // names of the written truths, by content
}

// NewWriter returns a writer after writing the header.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	line := headerLine{Version: workloadFileVersion}
	if h.Cluster != nil {
		if err := h.Cluster.check(); err != nil {
			return nil, fmt.Errorf("workload file: %w", err)
		}
		line.Cluster = &clusterLine{h.Cluster.Nodes, h.Cluster.Node.Listed()}
	}
	w := &Writer{out: out, seen: map[cluster.JobID]bool{}, last: timeline.Earliest, truths: map[[sha256.Size]byte]string{}}
	return w, w.line(&line)
}

func (c *ClusterShape) check() error {
	if c.Nodes < 1 || c.Nodes > 1<<20 {
		return fmt.Errorf("cluster nodes %d: must be 1 to %d", c.Nodes, 1<<20)
	}
	return checkVector("cluster node", c.Node)
}

func checkVector(what string, v resource.Vector) error {
	for k, a := range v {
		if kind := resource.Kind(k); a < 0 || a > kind.Most() {
			return fmt.Errorf("%s %v %d: must be 0 to %d", what, kind, a, kind.Most())
		}
	}
	return nil
}

// line writes a value on a line of its own.
func (w *Writer) line(v any) error {
	text, err := json.Marshal(v)
	switch {
	case err != nil:
		return fmt.Errorf("workload file: %w", err)
	case len(text) >= longestLine:
		return fmt.Errorf("workload file: a line takes %d bytes: must be less than %d", len(text), longestLine)
	}
	if _, err := w.out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("workload file: write %d bytes: %w", len(text)+1, err)
	}
	return nil
}

// Write adds a job. Jobs must come in the order of submission, and after the job that they wait for.
func (w *Writer) Write(j *Job) error {
	if err := checkPlace(j, w.jobs, w.seen, w.last); err != nil {
		return fmt.Errorf("write job %d of the workload: %w", w.jobs+1, err)
	}
	if err := checkWritable(j); err != nil {
		return fmt.Errorf("write job %d of the workload: %w", w.jobs+1, err)
	}
	for i := range j.Stages {
		for _, a := range j.Stages[i].Args {
			if !utf8.ValidString(a) { // which JSON would change
				return fmt.Errorf("write job %q: command %q: must be UTF-8", j.Name, cluster.Clip(a))
			}
		}
	}
	record := jobRecord{Job: &j.Job}
	if j.After >= 0 {
		record.After = &j.After
	} else {
		w.last = j.Submitted
	}
	for i := range j.Truth {
		name, err := w.truth(&j.Truth[i])
		if err != nil {
			return err
		}
		record.Truth = append(record.Truth, name)
	}
	if !slices.ContainsFunc(record.Truth, func(name string) bool { return name != "" }) {
		record.Truth = nil
	}
	w.jobs++
	w.seen[j.ID] = true
	return w.line(&record)
}

// truth returns the name of a truth. A new truth gets a name and is written.
func (w *Writer) truth(t *StageTruth) (name string, err error) {
	if t.IsZero() {
		return "", nil
	}
	fields := fieldsOf(t)
	text, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("workload file: %w", err)
	}
	key := sha256.Sum256(text)
	name, known := w.truths[key]
	if known {
		return name, nil
	}
	name = strconv.Itoa(len(w.truths) + 1)
	w.truths[key] = name
	return name, w.line(&truthRecord{Name: name, Truth: fields})
}

// Close writes the last line, which distinguishes a complete file from a truncated one. It does not close the
// underlying writer.
func (w *Writer) Close() error {
	return w.line(struct {
		Jobs int `json:"jobs"`
	}{w.jobs})
}

// checkPlace checks a job against those before it.
func checkPlace(j *Job, before int, seen map[cluster.JobID]bool, last timeline.Time) error {
	switch {
	case seen[j.ID]:
		return fmt.Errorf("id %d: another job has it", j.ID)
	case j.After < -1 || j.After >= before:
		return fmt.Errorf("after %d: must be the index of a job above this one, 0 to %d", j.After, before-1)
	case j.After < 0 && j.Submitted < last:
		return fmt.Errorf("at %v: must not be before the time of the job above", time.Duration(j.Submitted))
	case j.Submitted < 0 || time.Duration(j.Submitted) > cluster.LongestTime:
		return fmt.Errorf("at %v: must be 0s to %v", time.Duration(j.Submitted), cluster.LongestTime)
	}
	return nil
}

// checkWritable checks the contents of a job, for writing and reading.
func checkWritable(j *Job) error {
	filled := j.AssumingProfiles()
	if err := filled.Check(); err != nil {
		return err
	}
	if len(j.Behind) > 0 {
		return fmt.Errorf("job %q: waits for parts of a recording, which no file holds", j.Name)
	}
	if j.Open {
		return fmt.Errorf("job %q open true: must be false, because jobs that grow are not simulated", j.Name)
	}
	if err := j.CheckNames(); err != nil {
		return err
	}
	return j.CheckTruth()
}

// Write writes w as a workload file, without compression.
func Write(out io.Writer, w *Workload, h Header) error {
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

// Save writes w to a file atomically: it writes a temporary file in the same folder and renames it. The compression
// depends on the name of the file; see CompressionOf.
func Save(path string, w *Workload, h Header) error {
	return SaveFile(path, CompressionOf(path), func(out io.Writer) error { return Write(out, w, h) })
}

// SaveFile creates or replaces a file atomically with what write writes, compressed by c. It returns once a loss of
// power cannot undo that.
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
	for _, finish := range []func() error{packed.Close, buffered.Flush, func() error { return f.Chmod(0o644) }, f.Sync,
		f.Close, func() error { return durable.Rename(f.Name(), path) }} {
		if err := finish(); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

// IsFile reports whether the first bytes of a file, decompressed, are those of a workload file.
func IsFile(start []byte) bool { return bytes.HasPrefix(start, []byte(`{"bellows_workload":`)) }

// Reader reads a workload file, job by job.
type Reader struct {
	Header Header

	file   string
	truths map[string]StageTruth // by name
	in     *bufio.Reader
	line   int
	jobs   int
	seen   map[cluster.JobID]bool
	last   timeline.Time
	err    error
}

// NewReader reads the header. Name is used in errors, which are a *fault.Fault if the file is wrong.
func NewReader(in io.Reader, name string) (*Reader, error) {
	r := &Reader{file: name, truths: map[string]StageTruth{}, in: bufio.NewReaderSize(in, 64<<10),
		seen: map[cluster.JobID]bool{}, last: timeline.Earliest}
	text, err := r.next()
	if err != nil {
		return nil, err
	}
	// The version decides the meaning of everything else, so it is read first.
	var version struct {
		Version *int `json:"bellows_workload"`
	}
	if err := json.Unmarshal(text, &version); err != nil || version.Version == nil {
		return nil, r.fault("must be a workload file, but its first line is no header with bellows_workload")
	}
	if *version.Version != workloadFileVersion {
		return nil, r.fault("bellows_workload %d: must be %d, the version of the format", *version.Version,
			workloadFileVersion)
	}
	var h headerLine
	if err := fault.DecodeLine(text, &h); err != nil {
		return nil, r.fault("header %s", fault.OfJSON(err))
	}
	if err := r.Header.read(&h); err != nil {
		return nil, r.fault("header %v", err)
	}
	return r, nil
}

func (h *Header) read(line *headerLine) error {
	if c := line.Cluster; c != nil {
		h.Cluster = &ClusterShape{Nodes: c.Nodes}
		if copy(h.Cluster.Node[:], c.Node) != len(c.Node) {
			return fmt.Errorf("cluster node: must have %d numbers at most", resource.NumKinds)
		}
		return h.Cluster.check()
	}
	return nil
}

// Next returns the next job; io.EOF says that there are no more jobs and that the file is complete.
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
	if bytes.HasPrefix(text, []byte(`{"truth_profile":`)) {
		if err := r.truth(text); err != nil {
			return nil, err
		}
		return r.job()
	}
	j, err := r.decode(text)
	if err != nil {
		return nil, err
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

// truth stores the truth on a line for the stages that follow.
func (r *Reader) truth(text []byte) error {
	var record truthRecord
	if err := fault.DecodeLine(text, &record); err != nil {
		return r.fault("truth profile %s", fault.OfJSON(err))
	}
	if _, twice := r.truths[record.Name]; twice || record.Name == "" || record.Truth == nil {
		return r.fault("truth_profile %q: must be a name of its own, together with the field truth",
			cluster.Clip(record.Name))
	}
	r.truths[record.Name] = record.Truth.truth()
	return nil
}

// decode reads a job. Stages that name the same truth share it.
func (r *Reader) decode(text []byte) (*Job, error) {
	j := &Job{After: -1}
	record := jobRecord{Job: &j.Job}
	if err := fault.DecodeLine(text, &record); err != nil {
		return nil, r.fault("job %s", fault.OfJSON(err))
	}
	if record.After != nil {
		if j.After = *record.After; j.After < 0 {
			return nil, r.fault("job %q after %d: must be the index of a job", cluster.Clip(j.Name), j.After)
		}
	}
	if record.Truth != nil {
		j.Truth = make([]StageTruth, len(record.Truth))
	}
	for i, name := range record.Truth {
		if t, known := r.truths[name]; known {
			j.Truth[i] = t
		} else if name != "" {
			return nil, r.fault("job %q truth %q: must be the name of a truth profile in a line above", cluster.Clip(j.Name),
				cluster.Clip(name))
		}
	}
	if len(j.Truth) == len(j.Stages) && !slices.ContainsFunc(j.Truth, func(t StageTruth) bool { return !t.IsZero() }) {
		j.Truth = nil // all is as estimated, and was written as such
	}
	return j, nil
}

// end reads the last line.
func (r *Reader) end(text []byte) error {
	var last struct {
		Jobs int `json:"jobs"`
	}
	if err := fault.DecodeLine(text, &last); err != nil {
		return r.fault("last line %s", fault.OfJSON(err))
	}
	if last.Jobs != r.jobs {
		return r.fault("jobs %d: must be the number of jobs in the file, %d", last.Jobs, r.jobs)
	}
	if more, err := r.in.ReadByte(); err == nil {
		r.line++
		return r.fault("must end after the line with jobs, but continues with %q", more)
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

// broken converts an error of reading the file.
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

// Rest reads the remaining jobs, of which there must be at least one.
func (r *Reader) Rest() (*Workload, error) {
	w := &Workload{}
	for {
		j, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		w.Jobs = append(w.Jobs, *j)
	}
	if len(w.Jobs) == 0 {
		return nil, fault.At(r.file, 0, "jobs: must be at least one, but the file holds none")
	}
	return w, nil
}
