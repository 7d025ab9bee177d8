package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/statedir"
)

const (
	daemonLogSize = 10 << 20 // bytes of a log at most
	daemonLogsOld = 3        // logs that are kept beside the one that is written
)

// daemonLog is the log of a daemon that nobody watches: when it has reached its size it gets another name, NAME.1, and a new
// is begun; NAME.1 becomes NAME.2 then, and so on, and the oldest goes.
type daemonLog struct {
	mu     sync.Mutex
	path   string
	most   int64
	file   *os.File
	size   int64
	stderr bool // standard error is this log too
}

func openDaemonLog(path string, most int64) (*daemonLog, error) {
	l := &daemonLog{path: path, most: most}
	return l, l.open()
}

// becomeStderr lets what the runtime has to say when this program dies go to the log, also after it has turned.
func (l *daemonLog) becomeStderr() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stderr = true
	l.follow()
}

func (l *daemonLog) follow() {
	if l.stderr {
		_ = unix.Dup3(int(l.file.Fd()), int(os.Stderr.Fd()), 0) // else it goes where it went before
	}
}

func (l *daemonLog) open() error {
	file, err := statedir.Open(l.path, os.O_APPEND)
	if err != nil {
		return fmt.Errorf("open the log of the daemon: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("open the log of the daemon: %w", err), file.Close())
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.size = file, info.Size()
	l.follow()
	return nil
}

// Write writes a line. If no new log can be begun the old one is written on.
func (l *daemonLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(line)) > l.most {
		_ = l.turn()
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

// turn begins a new log.
func (l *daemonLog) turn() error {
	for i := daemonLogsOld; i > 0; i-- {
		if err := os.Rename(l.name(i-1), l.name(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.open()
}

// name is that of the log i turns ago.
func (l *daemonLog) name(i int) string {
	if i == 0 {
		return l.path
	}
	return fmt.Sprintf("%s.%d", l.path, i)
}
