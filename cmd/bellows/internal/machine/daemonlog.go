package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable/statedir"
)

const (
	daemonLogSize = 10 << 20 // bytes of a log at most
	daemonLogsOld = 3        // older logs that are kept
)

// daemonLog is the log of a detached daemon. When it has reached its size, it is renamed to NAME.1 and a new log
// begins; NAME.1 becomes NAME.2, and so on, and the oldest log is removed.
type daemonLog struct {
	mu     sync.Mutex
	path   string
	most   int64
	file   *os.File
	size   int64
	stderr bool // standard error goes to this log too
}

func openDaemonLog(path string, most int64) (*daemonLog, error) {
	l := &daemonLog{path: path, most: most}
	return l, l.open()
}

// becomeStderr makes standard error the log, also after a rotation: the runtime writes there when this program dies.
func (l *daemonLog) becomeStderr() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stderr = true
	l.follow()
}

func (l *daemonLog) follow() {
	if l.stderr {
		_ = unix.Dup3(int(l.file.Fd()), int(os.Stderr.Fd()), 0) // on an error, standard error stays as it was
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

// Write writes a line. If no new log can be opened, it continues the old one.
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

// name returns the name of the log i rotations ago.
func (l *daemonLog) name(i int) string {
	if i == 0 {
		return l.path
	}
	return fmt.Sprintf("%s.%d", l.path, i)
}
