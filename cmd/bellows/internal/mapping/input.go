package mapping

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/executor"
)

// input is one input of the function.
type input struct {
	number    int // from 1
	shown     string
	arguments []byte
}

// mostShown bounds what is shown of an input, in bytes.
const mostShown = 40

func openInput(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, command.Usagef("file: %w", err)
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		_ = file.Close()
		return nil, command.Usagef("file %s: must not be a folder", path)
	}
	return file, nil
}

// readInputs sends the inputs that r has to a channel, and closes it.
func (o *options) readInputs(ctx context.Context, r io.Reader, to chan<- input) error {
	defer close(to)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, executor.MostArguments)
	if o.null {
		lines.Split(splitZeros)
	}
	number := 0
	for lines.Scan() {
		number++
		in := input{number: number, shown: shown(lines.Bytes())}
		var err error
		if in.arguments, err = o.arguments(lines.Bytes()); err != nil {
			return fmt.Errorf("input %d %s: %w", number, in.shown, err)
		}
		select {
		case to <- in:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	switch err := lines.Err(); err {
	case nil:
		return nil
	case bufio.ErrTooLong:
		return command.Usagef("input %d: must have less than %d MiB: pass the name of a file", number+1,
			executor.MostArguments>>20)
	default:
		return fmt.Errorf("read input %d: %w", number+1, err)
	}
}

// splitZeros is a bufio.SplitFunc for inputs that end with a zero byte.
func splitZeros(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// arguments returns what the function gets of an input.
func (o *options) arguments(line []byte) ([]byte, error) {
	switch {
	case o.bytes:
		return bytes.Clone(line), nil
	case o.json && !json.Valid(line):
		return nil, command.Usagef("must be a JSON value; without --json it is a text")
	case o.json:
		return bytes.Clone(line), nil
	case !utf8.Valid(line):
		return nil, command.Usagef("must be text in UTF-8; with --bytes it is any bytes")
	}
	return json.Marshal(string(line))
}

// shown returns an input as messages show it.
func shown(line []byte) string {
	if len(line) <= mostShown {
		return fmt.Sprintf("%q", line)
	}
	return fmt.Sprintf("%q...", line[:mostShown])
}
