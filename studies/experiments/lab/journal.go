package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// journal keeps the results of the simulations of an experiment, one line of JSON each, so that an interrupted
// experiment continues where it stopped. Its first line identifies the experiment; a journal of another experiment, or
// of other settings, is begun anew.
type journal struct {
	file *os.File
	kept map[string][]json.RawMessage // per part, the results in the file when it was opened
}

// journalHead is the first line.
type journalHead struct {
	Version    int    `json:"bellows_journal"`
	Experiment string `json:"experiment"`
	Runs       int    `json:"runs"`
	Full       bool   `json:"full"`
	Seed       uint64 `json:"seed"`
	Program    string `json:"program"`
}

// journalLine is any other line.
type journalLine struct {
	Part string          `json:"part"`
	Of   json.RawMessage `json:"of"`
}

// openJournal continues the journal in the file, or begins one.
func openJournal(name string, head journalHead) (*journal, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	j := &journal{file: file, kept: map[string][]json.RawMessage{}}
	good, err := j.read(head)
	if err == nil {
		err = j.file.Truncate(good)
	}
	if err == nil {
		_, err = j.file.Seek(good, io.SeekStart)
	}
	if err == nil && good == 0 {
		err = j.write(head)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("read the journal %s: %w", name, err)
	}
	return j, nil
}

// read reads the journal and returns the length in bytes of its valid part, which is 0 if its first line is another. A
// torn line ends the valid part.
func (j *journal) read(want journalHead) (good int64, err error) {
	lines := bufio.NewReader(j.file)
	for first := true; ; first = false {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return good, nil
		case err != nil:
			return 0, err
		}
		if first {
			var head journalHead
			if json.Unmarshal(line, &head) != nil || head != want {
				return 0, nil
			}
		} else {
			var l journalLine
			if json.Unmarshal(line, &l) != nil {
				return good, nil
			}
			j.kept[l.Part] = append(j.kept[l.Part], bytes.Clone(l.Of))
		}
		good += int64(len(line))
	}
}

// keep records the result of a simulation.
func (j *journal) keep(part string, of any) error {
	text, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return j.write(journalLine{part, text})
}

func (j *journal) write(v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = j.file.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// close closes the journal, and removes it if it is no longer needed.
func (j *journal) close(served bool) error {
	err := j.file.Close()
	if served && err == nil {
		err = os.Remove(j.file.Name())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("close the journal: %w", err)
	}
	return nil
}
