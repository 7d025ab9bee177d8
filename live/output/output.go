// Package output has what programs print: where it is in the state directory, how much it is, and its removal.
package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/durable"
)

// Folder is the output of all jobs, by the path of its folder.
type Folder string

// In returns the folder of a state directory.
func In(state string) Folder { return Folder(filepath.Join(state, "logs")) }

// Of returns the folder of a job.
func (f Folder) Of(id cluster.JobID) string { return filepath.Join(string(f), fmt.Sprint(id)) }

// Path returns the path of a container's output, without the ending that distinguishes its two files.
func (f Folder) Path(id cluster.ContainerID) string {
	return filepath.Join(f.Of(id.Task.Job), id.String())
}

// Has reports whether there is output of a container.
func (f Folder) Has(id cluster.ContainerID) bool {
	_, err := os.Lstat(f.Path(id) + ".out")
	return err == nil
}

// Size returns how many bytes a job has printed.
func (f Folder) Size(id cluster.JobID) int64 {
	files, err := os.ReadDir(f.Of(id))
	if err != nil {
		return 0 // it printed nothing
	}
	var sum int64
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			continue // It is gone.
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok { // Files have holes in place of dropped output.
			sum += min(info.Size(), 512*stat.Blocks)
		}
	}
	return sum
}

// Remove removes the output of jobs, and returns those of which nothing is left, also after a power failure. An error
// says why something is left of others.
func (f Folder) Remove(ids []cluster.JobID) (gone []cluster.JobID, failed error) {
	for _, id := range ids {
		if err := durable.RemoveAll(f.Of(id)); err != nil {
			failed = fmt.Errorf("remove the output of job %d: %w", id, err)
			continue
		}
		gone = append(gone, id)
	}
	if len(gone) == 0 {
		return nil, failed
	}
	if err := durable.SyncDir(string(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(failed, fmt.Errorf("remove the output of jobs: %w", err))
	}
	return gone, failed
}
