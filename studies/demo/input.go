package demo

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/bellows-rm/bellows/core/resource"
)

// input is a file of log lines that jobs of the mix sort.
type input struct {
	name  string
	lines int
	seed  uint64
}

// inputs are all files of the demonstration, some 175 MB. The tasks of a job, and several jobs, read the same file.
var inputs = []input{
	{"small.log", 1_000_000, 7},
	{"medium.log", 1_250_000, 11},
	{"large.log", 1_550_000, 13},
}

// lineBytes is the length of every line, its end included.
const lineBytes = 46

func (f input) size() int64 { return int64(f.lines) * lineBytes }

// ideal is the memory with which the whole file fits the buffer of GNU sort: the text, sort's record per line, and the
// memory of the process.
func (f input) ideal() resource.Amount {
	const perLine = 48
	need := resource.Amount(f.size()) + resource.Amount(f.lines)*perLine + overhead + 2*resource.MiB
	return (need + resource.MiB - 1) / resource.MiB * resource.MiB
}

// overhead is the part of a task's grant that is not the buffer of its sort: the {memory-24MiB} of the mix. It is for
// the program and for the page cache of its spilled data.
const overhead = 24 * resource.MiB

// write writes lines such as "1977326743 GET /item/12276/page26 200 mozilla". The same input gives the same bytes on
// every machine.
func (f input) write(w io.Writer) error {
	// The minimal standard generator of Park and Miller: short, and independent of libraries that may change.
	const multiplier, modulus = 16807, 1<<31 - 1
	out := bufio.NewWriterSize(w, 1<<20)
	x := f.seed
	line := []byte("0000000000 GET /item/00000/page00 200 mozilla\n")
	for range f.lines {
		x = x * multiplier % modulus
		y := x * multiplier % modulus
		digits(line[0:10], x)
		digits(line[21:26], y%40_000)
		digits(line[31:33], y%50)
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// digits writes n into all of to, with leading zeros.
func digits(to []byte, n uint64) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = byte('0' + n%10)
		n /= 10
	}
}

// writeInputs makes all files in dir.
func writeInputs(dir string) error {
	for _, f := range inputs {
		if err := writeInput(filepath.Join(dir, f.name), f); err != nil {
			return fmt.Errorf("write the input: %w", err)
		}
	}
	return nil
}

func writeInput(path string, f input) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := f.write(file); err != nil {
		file.Close()
		return err
	}
	// Written to disk now, so that write-back does not disturb the measurement.
	if err := file.Sync(); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
