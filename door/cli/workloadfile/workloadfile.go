// Package workloadfile opens files with workloads in any format that commands read, compressed or not.
package workloadfile

import (
	"bufio"
	"bytes"
	"os"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/format/jobfile"
	"github.com/bellows-rm/bellows/format/workload"
)

// Formats of a file with a workload.
const (
	Auto    = "auto"     // recognised by its content
	Bellows = "bellows"  // job files
	Compact = "workload" // compact
	DSS     = "dss"      // traces of the YARN-ME authors' simulator
)

// Formats are the names of all formats.
var Formats = []string{Auto, Bellows, Compact, DSS}

// File is a file with a workload, whose format is known.
type File struct {
	name   string
	Format string // one of Formats except Auto
	in     *bufio.Reader
	Close  func()
	// Jobs is set for the compact format, whose header has been read.
	Jobs *workload.Reader
}

// Open opens a file, - for standard input, compressed or not, and recognises its format if format is auto.
func Open(name, format string) (f *File, err error) {
	file := os.Stdin
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return nil, command.Usagef("workload: %w", err)
		}
	}
	content, err := workload.Unpack(file, name)
	if err != nil {
		file.Close()
		return nil, FaultOf(err)
	}
	f = &File{name: name, Format: format, Close: func() { content.Close(); file.Close() }}
	f.in = bufio.NewReaderSize(content, 64<<10)
	// An error of Peek is returned again when the file is read.
	start, _ := f.in.Peek(4 << 10)
	if format == Auto {
		f.Format = formatOf(start)
	}
	if f.Format == Compact {
		if f.Jobs, err = workload.NewReader(f.in, name); err != nil {
			f.Close()
			return nil, FaultOf(err)
		}
	}
	return f, nil
}

// formatOf returns the format of a file by its first bytes. A file of no other format counts as a job file, whose
// reader reports what is wrong with it.
func formatOf(start []byte) string {
	switch {
	case workload.IsFile(start):
		return Compact
	case bytes.HasPrefix(bytes.TrimLeft(start, "\ufeff \t\r\n"), []byte("{")) &&
		(bytes.Contains(start, []byte(`"job.`)) || bytes.Contains(start, []byte(`"am.type"`))):
		return DSS
	}
	return Bellows
}

// FaultOf marks an error in a file as the user's mistake.
func FaultOf(err error) error {
	if fault.Is(err) {
		return command.Usage(err)
	}
	return err
}

// Read reads the workload. It looks up the profiles that a job file names, unless profiles is nil.
func (f *File) Read(profiles jobfile.Profiles) (*workload.Workload, error) {
	defer f.Close()
	var w *workload.Workload
	var err error
	switch f.Format {
	case Compact:
		w, err = f.Jobs.Rest()
	case DSS:
		w, err = workload.ReadDSS(f.in, f.name)
	default:
		w, err = jobfile.Read(f.in, f.name, profiles)
	}
	return w, FaultOf(err)
}
