package main

import (
	"bufio"
	"bytes"
	"io"
	"os"

	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/fault"
	"github.com/bellows-rm/bellows/jobfile"
	"github.com/bellows-rm/bellows/workload"
)

// Formats of a file with a workload.
const (
	formatAuto     = "auto"     // found in the content
	formatBellows  = "bellows"  // job files
	formatWorkload = "workload" // compact
	formatDSS      = "dss"      // of the YARN-ME authors' simulator
)

var workloadFormats = []string{formatAuto, formatBellows, formatWorkload, formatDSS}

// workloadFile is a file with a workload, whose format is known.
type workloadFile struct {
	name, format string
	in           *bufio.Reader
	close        func()
	// jobs is set for the compact format, whose header has been read.
	jobs *workload.Reader
}

// openWorkload opens a file, - for standard input, packed or not, and finds out what it is if format is auto.
func openWorkload(name, format string) (f *workloadFile, err error) {
	file := os.Stdin
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return nil, command.Usagef("workload: %w", err)
		}
	}
	content, err := workload.Unpack(file, name)
	if err != nil {
		file.Close()
		return nil, faultOf(err)
	}
	f = &workloadFile{name: name, format: format, close: func() { content.Close(); file.Close() }}
	f.in = bufio.NewReaderSize(content, 64<<10)
	// An error of Peek comes again when the file is read.
	start, _ := f.in.Peek(4 << 10)
	if format == formatAuto {
		f.format = formatOf(start)
	}
	if f.format == formatWorkload {
		if f.jobs, err = workload.NewReader(f.in, name); err != nil {
			f.close()
			return nil, faultOf(err)
		}
	}
	return f, nil
}

// formatOf tells the format of a file from its first bytes. What is none of the others is a job file, whose reader says
// what is wrong with it.
func formatOf(start []byte) string {
	switch {
	case workload.IsFile(start):
		return formatWorkload
	case bytes.HasPrefix(bytes.TrimLeft(start, "\ufeff \t\r\n"), []byte("{")) &&
		(bytes.Contains(start, []byte(`"job.`)) || bytes.Contains(start, []byte(`"am.type"`))):
		return formatDSS
	}
	return formatBellows
}

// faultOf marks what is wrong with a file as the user's mistake.
func faultOf(err error) error {
	if fault.Is(err) {
		return command.Usage(err)
	}
	return err
}

// read reads the workload. Profiles that a job file names are looked up, unless that is nil.
func (f *workloadFile) read(profiles jobfile.Profiles) (*workload.Workload, error) {
	defer f.close()
	var w *workload.Workload
	var err error
	switch f.format {
	case formatWorkload:
		w, err = f.rest()
	case formatDSS:
		w, err = workload.ReadDSS(f.in, f.name)
	default:
		w, err = jobfile.Read(f.in, f.name, profiles)
	}
	return w, faultOf(err)
}

// rest reads the jobs behind the header.
func (f *workloadFile) rest() (*workload.Workload, error) {
	w := &workload.Workload{}
	for {
		j, err := f.jobs.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		w.Jobs = append(w.Jobs, *j)
	}
	if len(w.Jobs) == 0 {
		return nil, &fault.Fault{File: f.name, What: "jobs: must be at least one, but the file holds none"}
	}
	return w, nil
}
