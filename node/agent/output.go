package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/durable"
)

// DefaultOutputLimit is how many bytes of each of the two outputs of a task's run are kept.
const DefaultOutputLimit = 128 << 20

const (
	// wholeShares is the number of tasks in a job that may each keep the whole limit; the tasks of larger jobs share
	// the limits of that many.
	wholeShares = 8
	// leastOutput is how many bytes of each output are kept at least, however many tasks there are.
	leastOutput = 64 << 10
	// outputBlock is the unit in which output is dropped: files have holes of whole blocks only.
	outputBlock = 4096
	// readerPatience is how long a program waits for a reader of its output that makes no progress.
	readerPatience = 10 * time.Second
	// readersCome is how long after its start a program waits for readers of output that would have to be dropped.
	readersCome = 3 * time.Second
)

// outputShare returns how many bytes of each output of a task are kept, given the number of tasks in its job and the
// limit of a single task.
func outputShare(limit int64, tasks int) int64 {
	return min(limit, max(leastOutput, limit*wholeShares/int64(max(1, tasks))))
}

// output copies the output of a program to a file and keeps the first and the last half of a limit. What is between
// them becomes a hole in the file, so that every byte stays at its offset, and readers see how much was dropped. Output
// that arrives while the disk is nearly full becomes a hole, too.
//
// A reader that must not lose output keeps a read lock (fcntl, of the open file) on the file from its position on.
// Nothing is dropped there, and the program waits, as it would for the reader of a pipe, unless the reader makes no
// progress for readerPatience.
type output struct {
	from  *os.File // the pipe that the program writes into
	to    *os.File
	limit int64
	begun time.Time
	ended chan struct{} // closed when nothing waits for readers any more

	at      int64 // offset of the next byte
	cut     int64 // in the second half, everything before this is dropped
	leaving bool  // output is dropped, up to the next block
	whole   bool  // the file system has no holes: only the end can be dropped
	stuck   int64 // position of a reader that is no longer waited for, -1 if there is none
}

// newOutput returns the output for the file at path, and the end of the pipe for the program. The file must be
// missing, or empty: what another program has printed is of another run, perhaps of another user.
func newOutput(path string, as cluster.Credentials, limit int64) (*output, *os.File, error) {
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return nil, nil, err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, nil, err
	}
	at, err := to.Seek(0, io.SeekEnd)
	if err == nil && at > 0 {
		err = fmt.Errorf("%s has the output of another run", path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, to.Close())
	}
	from, pipe, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, to.Close())
	}
	err = unix.SetNonblock(int(pipe.Fd()), false) // programs expect writes to block
	o := &output{from: from, to: to, limit: limit, begun: time.Now(), ended: make(chan struct{}), cut: blocks(limit / 2),
		stuck: -1}
	// Programs open /dev/stdout; for that they must own the pipe.
	if err == nil && os.Geteuid() == 0 {
		err = pipe.Chown(int(as.UID), int(as.GID))
	}
	if err != nil {
		return nil, nil, errors.Join(err, o.close(), pipe.Close())
	}
	return o, pipe, nil
}

func (o *output) close() error { return errors.Join(o.from.Close(), o.to.Close()) }

// copy copies until no process has the pipe open any more, or until finish.
func (o *output) copy() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := o.from.Read(buffer)
		o.write(buffer[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.drain(buffer)
			break
		}
		if err != nil {
			break
		}
	}
	if info, err := o.to.Stat(); err == nil && info.Size() < o.at {
		_ = o.to.Truncate(o.at) // so that readers see that the end was dropped
	}
	_ = o.close()
}

// drain copies the present content of the pipe.
func (o *output) drain(buffer []byte) {
	_ = o.from.SetReadDeadline(time.Time{})
	raw, err := o.from.SyscallConn()
	if err != nil {
		return
	}
	const most = 1 << 20 // bytes: more than a pipe contains, and a bound if a program continues to print
	for left := most; left > 0; {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			n, err = unix.Read(int(fd), buffer)
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		o.write(buffer[:n])
		left -= n
	}
}

// write takes in the output of the program. It never fails: it drops what it cannot write.
func (o *output) write(p []byte) {
	for len(p) > 0 {
		n := len(p)
		if inside := o.at % outputBlock; inside > 0 {
			n = min(n, int(outputBlock-inside)) // in the same way as the beginning of the block
		} else if o.leaving = !o.hasRoom(); o.leaving {
			n = min(n, outputBlock)
		}
		if !o.leaving {
			if _, err := o.to.WriteAt(p[:n], o.at); err != nil {
				o.leaving = true
			}
		}
		o.at += int64(n)
		p = p[n:]
	}
	o.trim()
}

// hasRoom reports whether a block may be written at a place where the disk has none yet.
func (o *output) hasRoom() bool {
	return !(o.whole && o.at >= o.limit) && hasRoom(o.to)
}

// hasRoom reports whether the disk of a file has more space left than output must leave to other files: a tenth of it,
// at most 256 MiB.
func hasRoom(f *os.File) bool {
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &disk); err != nil {
		return true // unknown
	}
	const most = 256 << 20
	size := uint64(disk.Bsize)
	return disk.Bavail > min(disk.Blocks/10, most/size)
}

// trim drops what is before the second half of the limit, in steps of a worthwhile size.
func (o *output) trim() {
	end := blocks(o.at - (o.limit - o.limit/2))
	if o.whole || end-o.cut < max(outputBlock, o.limit/64) || !o.awaitReaders(end) {
		return
	}
	err := unix.Fallocate(int(o.to.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, o.cut, end-o.cut)
	if err != nil {
		o.whole = true
		return
	}
	o.cut = end
}

// blocks returns n rounded down to whole blocks.
func blocks(n int64) int64 { return n - n%outputBlock }

// awaitReaders waits for readers that have not read everything before end. It returns false if the program has ended:
// then nothing needs to be dropped any more.
func (o *output) awaitReaders(end int64) bool {
	place, since := int64(-1), time.Now()
	for {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: o.cut, Len: end - o.cut}
		free := unix.FcntlFlock(o.to.Fd(), unix.F_OFD_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK
		switch {
		case free && time.Since(o.begun) >= readersCome:
			return true
		case free:
		case lock.Start == o.stuck:
			return true
		case lock.Start != place:
			place, since = lock.Start, time.Now()
		case time.Since(since) >= readerPatience:
			o.stuck = place
			return true
		}
		select {
		case <-o.ended:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// outputs are the outputs of a program.
type outputs struct {
	all     []*output
	copying sync.WaitGroup
}

// add returns the end of a pipe for a program whose output goes to the file at path.
func (o *outputs) add(path string, as cluster.Credentials, limit int64) (*os.File, error) {
	one, pipe, err := newOutput(path, as, limit)
	if err == nil {
		o.all = append(o.all, one)
	}
	return pipe, err
}

// begin copies the program's output from now on.
func (o *outputs) begin() {
	for _, one := range o.all {
		o.copying.Go(one.copy)
	}
}

// finish copies the rest, after all processes of the container have ended.
func (o *outputs) finish() {
	for _, one := range o.all {
		close(one.ended)
		_ = one.from.SetReadDeadline(time.Now()) // A process that left the container may keep the pipe open for ever.
	}
	o.copying.Wait()
}
