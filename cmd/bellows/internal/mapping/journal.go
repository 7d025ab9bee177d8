package mapping

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/door/cli/command"
)

// journal keeps results in a file: a line that says whose they are, and one line with each result. It is only ever
// appended to, so that whatever ends the command leaves at most one incomplete line, which the next one removes.
type journal struct {
	file  *os.File
	head  head
	known map[int]known // by the number of the input
	lines bytes.Buffer  // that were not written yet
	size  int64
}

// head is the first line of a journal.
type head struct {
	Version  int    `json:"bellows_map"`
	Function string `json:"function"`
	Path     string `json:"path"`
	Form     string `json:"form"`
	Key      string `json:"key"` // of the application: the next command ends what the last one left
}

// record is another line.
type record struct {
	Input  int    `json:"input"`
	Sum    string `json:"sha256"` // of the arguments
	Result []byte `json:"result"`
}

// known is where a result is.
type known struct {
	at   int64
	size int
	sum  string
}

// openJournal opens a journal, or begins one.
func openJournal(path string, h head) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, command.Usagef("resume: %w", err)
	}
	j := &journal{file: file, known: map[int]known{}}
	if err := j.open(h); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("resume %s: %w", path, err)
	}
	return j, nil
}

func (j *journal) open(h head) error {
	info, err := j.file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return command.Usagef("must be a regular file")
	}
	if err := unix.Flock(int(j.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return command.Usagef("another command uses it")
	}
	if err := j.read(); err != nil {
		return err
	}
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	if j.size == 0 {
		h.Version, h.Key = 1, rand.Text()
		j.head = h
		return errors.Join(j.line(h), j.write())
	}
	h.Version, h.Key = j.head.Version, j.head.Key
	if j.head != h {
		return command.Usagef("has results of function %q in %s with inputs that are %s: give those, or another file",
			j.head.Function, j.head.Path, j.head.Form)
	}
	return nil
}

// read reads the lines that are complete.
func (j *journal) read() error {
	r := bufio.NewReader(j.file)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 1 {
			if err := json.Unmarshal(line, &j.head); err != nil || j.head.Version != 1 {
				return command.Usagef("line 1: must be what `bellows map` wrote")
			}
			j.size = int64(len(line))
			continue
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return command.Usagef("line %d: must be what `bellows map` wrote", n)
		}
		j.known[r.Input] = known{j.size, len(line), r.Sum}
		j.size += int64(len(line))
	}
}

// result returns the result of an input, if there is one.
func (j *journal) result(in *input) (result []byte, ok bool, err error) {
	k, ok := j.known[in.number]
	if !ok {
		return nil, false, nil
	}
	if k.sum != sum(in.arguments) {
		return nil, false, command.Usagef(
			"input %d %s: is another one than that whose result %s has: give the same inputs, or another file", in.number,
			in.shown, j.file.Name())
	}
	line := make([]byte, k.size)
	if _, err := j.file.ReadAt(line, k.at); err != nil {
		return nil, false, fmt.Errorf("resume: %w", err)
	}
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, false, fmt.Errorf("resume %s: %w", j.file.Name(), err)
	}
	return r.Result, true, nil
}

// add adds a result. It is kept once write has returned.
func (j *journal) add(number int, sum string, result []byte) error {
	return j.line(record{number, sum, result})
}

func (j *journal) line(v any) error {
	text, err := json.Marshal(v)
	j.lines.Write(text)
	j.lines.WriteByte('\n')
	return err
}

// write writes what was added.
func (j *journal) write() error {
	n, err := j.file.WriteAt(j.lines.Bytes(), j.size)
	j.size += int64(n)
	j.lines.Reset()
	if err != nil {
		return fmt.Errorf("keep results: %w", err)
	}
	return nil
}

// close ends the use of the journal.
func (j *journal) close() error { return errors.Join(j.file.Sync(), j.file.Close()) }

// sum returns what tells arguments from others.
func sum(arguments []byte) string {
	s := sha256.Sum256(arguments)
	return hex.EncodeToString(s[:])
}
