package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/input"
)

// input returns the input of an attached command; nil for none. A task that may run again gets no input, because the
// input could not be read a second time.
func (o *runOptions) input(from io.Reader) (io.Reader, error) {
	if o.detach || o.stage.Stdin != "" {
		return nil, nil
	}
	file, ok := from.(*os.File)
	if !ok {
		return nil, nil
	}
	reader, waiting := readable(file)
	if reader != nil && o.retry.times > 0 {
		if waiting {
			return nil, command.Usagef(
				"retry %d: must be 0 for a command that reads its standard input, which cannot be read again: give a file "+
					"with --stdin, or add </dev/null", o.retry.times)
		}
		return nil, nil
	}
	return reader, nil
}

// readable returns a reader for a file that may have content; nil for the null device, an empty file and no file.
// waiting says that there is content now.
func readable(file *os.File) (r io.Reader, waiting bool) {
	info, err := file.Stat()
	if err != nil {
		return nil, false
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		at, err := file.Seek(0, io.SeekCurrent)
		if err != nil || at >= info.Size() {
			return nil, false
		}
		return file, true
	case terminal.Is(file):
		return foreground{file}, false
	case mode&fs.ModeCharDevice != 0:
		if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(info, null) {
			return nil, false
		}
		return file, true
	case mode.IsDir():
		return nil, false
	}
	poll := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}
	_, err = unix.Poll(poll, 0)
	return file, err == nil && poll[0].Revents&unix.POLLIN != 0
}

// foreground is a terminal that is read only while this process is in the foreground. A command that a shell has put
// into the background must continue there and not be stopped by a read.
type foreground struct{ file *os.File }

func (t foreground) Read(p []byte) (int, error) {
	signal.Ignore(syscall.SIGTTIN) // so reading in the background fails
	for {
		n, err := t.file.Read(p)
		if n > 0 || !errors.Is(err, syscall.EIO) {
			return n, err
		}
		time.Sleep(time.Second)
	}
}

// checkStdin returns an error if the input file of a command cannot be read. The name of a file with placeholders is
// not known yet.
func checkStdin(name, dir string) error {
	if name == "" || strings.Contains(name, "{") {
		return nil
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, name)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer is no reason to wait
	if err != nil {
		return command.Usagef("stdin %q: %w", name, errors.Unwrap(err))
	}
	return file.Close()
}

// feed sends input to the job until the input or ctx ends. If the daemon ends, feed waits for the next daemon.
func (a *attached) feed(ctx context.Context, from io.Reader) {
	source := input.NewSource(from)
	defer source.Stop()
	for {
		c, err := a.client.Input(ctx, a.id)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { c.Close() })
			err = source.Send(c)
			stop()
		}
		switch code := api.KindOf(err); {
		case ctx.Err() != nil, code == api.Invalid, code == api.NotFound:
			return // The job has ended.
		case err == nil:
			if err := source.Err(); err != nil {
				fmt.Fprintf(a.err, "bellows: job %d: its input ends here: %v\n", a.id, err)
			}
			return
		case input.Foreign(err), code != 0 && code != api.Unavailable:
			fmt.Fprintf(a.err, "bellows: job %d: its input ends within %v: %v\n", a.id, input.Patience, err)
			return
		}
		if !wait(ctx, place.RedialPace) {
			return
		}
	}
}
