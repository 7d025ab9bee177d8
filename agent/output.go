package agent

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/durable"
)

// DefaultOutputLimit is how much is kept, in bytes, of each of the two outputs of a run of a task.
const DefaultOutputLimit = 128 << 20

const (
	// wholeShares is how many tasks of a job may print as much as is kept; those of larger jobs share what is kept of so many.
	wholeShares = 8
	// leastOutput is what is kept of each output, bytes, however many there are.
	leastOutput = 64 << 10
	// outputBlock is what output is left out in: files have holes of whole blocks only.
	outputBlock = 4096
	// readerPatience is how long a program is held up by a reader of its output that does not get on.
	readerPatience = 10 * time.Second
	// readersCome is how long after its start a program waits for the readers of what would have to be left out.
	readersCome = 3 * time.Second
)

// outputShare is how much is kept, in bytes, of each output of a task of a job with so many tasks, if limit is for a task alone.
func outputShare(limit int64, tasks int) int64 {
	return min(limit, max(leastOutput, limit*wholeShares/int64(max(1, tasks))))
}

// output brings what a program prints into a file, of which it keeps the first and the last half of a limit. What is between
// them becomes a hole in the file, so that every byte stays at its offset, and whoever reads sees how much was left out. What
// comes while the disk is nearly full becomes a hole too.
//
// A reader that must not lose anything holds a read lock (fcntl, of the open file) on all of the file from its place on.
// Nothing is left out there, and the program waits, as it would for the reader of a pipe, unless the reader does not get on
// for readerPatience.
type output struct {
	from  *os.File // the pipe that the program writes into
	to    *os.File
	limit int64
	begun time.Time
	ended chan struct{} // closed when nothing waits for readers any more

	at      int64 // offset of the next byte
	cut     int64 // in the second half, all before this is left out
	leaving bool  // what comes is left out, up to the next block
	whole   bool  // the file system has no holes: nothing can be left out but the end
	stuck   int64 // place of a reader that is no longer waited for, -1 if there is none
}

// newOutput returns the output that goes to the file at path and the end of the pipe that is for the program.
func newOutput(path string, as cluster.Credentials, limit int64) (*output, *os.File, error) {
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return nil, nil, err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, nil, err
	}
	at, err := to.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, nil, errors.Join(err, to.Close())
	}
	from, pipe, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, to.Close())
	}
	err = unix.SetNonblock(int(pipe.Fd()), false) // programs expect to be held up
	o := &output{from: from, to: to, limit: limit, begun: time.Now(), ended: make(chan struct{}), at: at, cut: blocks(limit / 2), stuck: -1}
	// Programs open /dev/stdout, and for that the pipe must be theirs.
	if err == nil && os.Geteuid() == 0 {
		err = pipe.Chown(int(as.UID), int(as.GID))
	}
	if err != nil {
		return nil, nil, errors.Join(err, o.close(), pipe.Close())
	}
	return o, pipe, nil
}

func (o *output) close() error { return errors.Join(o.from.Close(), o.to.Close()) }

// copy copies until no process has the pipe any more, or until finish.
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
		_ = o.to.Truncate(o.at) // so that it is seen that the end was left out
	}
	_ = o.close()
}

// drain copies what is in the pipe now.
func (o *output) drain(buffer []byte) {
	_ = o.from.SetReadDeadline(time.Time{})
	raw, err := o.from.SyscallConn()
	if err != nil {
		return
	}
	const most = 1 << 20 // bytes: more than a pipe holds, and no end to whoever goes on printing
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

// write takes in what the program printed. It never fails: what cannot be written is left out.
func (o *output) write(p []byte) {
	for len(p) > 0 {
		n := len(p)
		if inside := o.at % outputBlock; inside > 0 {
			n = min(n, int(outputBlock-inside)) // as the block began
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

// hasRoom tells whether a block may be written at a place where the disk has none yet.
func (o *output) hasRoom() bool {
	return !(o.whole && o.at >= o.limit) && hasRoom(o.to)
}

// hasRoom tells whether the disk of a file has more left than output must leave to others: a tenth of it, at most 256 MiB.
func hasRoom(f *os.File) bool {
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &disk); err != nil {
		return true // unknown
	}
	const most = 256 << 20
	size := uint64(disk.Bsize)
	return disk.Bavail > min(disk.Blocks/10, most/size)
}

// trim leaves out what is before the second half of the limit, in steps that are worth it.
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

// blocks is n rounded down to whole blocks.
func blocks(n int64) int64 { return n - n%outputBlock }

// awaitReaders waits for readers that have yet to read what is before end. It returns false if the program has ended: then
// nothing needs to be left out any more.
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

// outputs are what a program prints.
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

// begin copies what the program prints from now on.
func (o *outputs) begin() {
	for _, one := range o.all {
		o.copying.Go(one.copy)
	}
}

// finish copies the rest, once nothing of the container runs any more.
func (o *outputs) finish() {
	for _, one := range o.all {
		close(one.ended)
		_ = one.from.SetReadDeadline(time.Now()) // Who left the container may have the pipe for ever.
	}
	o.copying.Wait()
}
