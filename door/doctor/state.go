package doctor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable/statedir"
	"github.com/bellows-rm/bellows/live/store"
)

// What a file system is, by the type that statfs returns.
var (
	inMemory = map[int64]bool{unix.TMPFS_MAGIC: true, unix.RAMFS_MAGIC: true}
	remote   = map[int64]bool{unix.NFS_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true,
		unix.V9FS_MAGIC: true, unix.CEPH_SUPER_MAGIC: true}
)

func (f *StateDir) stateDirectory() Finding {
	if unsafe, ok := errors.AsType[*statedir.UnsafeError](f.StateErr); ok {
		return problem(unsafe.Path+" "+unsafe.Why, unsafe.Mend)
	}
	if f.StateErr != nil {
		return problem(f.StateErr.Error(), "choose another directory with --state, or run as its owner")
	}
	switch {
	case f.DiskErr == nil && f.Disk.Flags&unix.MS_RDONLY != 0:
		return problem(f.Path+" is on a file system that is mounted read-only",
			"mount it writable, or choose another directory with --state")
	case f.DiskErr == nil && inMemory[f.Disk.Type]:
		return warning(f.Path+" is in memory, so that all jobs are forgotten when the machine starts again",
			"choose a directory on a disk with --state")
	case f.DiskErr == nil && remote[f.Disk.Type]:
		return warning(f.Path+" is on another machine, where the store can be damaged if the connection breaks",
			"choose a directory on a disk of this machine with --state")
	case !f.StateExists:
		return fine("%s does not exist; `bellows up` makes it", f.Path)
	}
	return fine("%s, which only its owner can change", f.Path)
}

func (f *StateDir) diskSpace() Finding {
	if f.DiskErr != nil {
		return problem(fmt.Sprintf("the disk of %s: %v", f.Path, f.DiskErr), "choose another directory with --state")
	}
	const little = int64(resource.GiB)
	reserve, free := store.ReserveOn(&f.Disk)
	said := fmt.Sprintf("%s of %s are free on the disk of %s", resource.FormatMemory(resource.Amount(free)),
		resource.FormatMemory(resource.Amount(int64(f.Disk.Blocks)*f.Disk.Bsize)), f.Path)
	const cure = "free some space: `bellows prune` removes jobs that have ended, with their output"
	switch {
	case free < 2*reserve:
		return problem(said+": no task starts", cure)
	case reserve == 0:
		return warning(said+": the disk is too small to reserve space for recording how jobs end",
			"choose a directory on a larger disk with --state")
	case free < little:
		return warning(said+", less than "+resource.FormatMemory(resource.Amount(little)), cure)
	}
	return fine("%s", said)
}

func (f *StateDir) inodes() Finding {
	if f.DiskErr != nil {
		return fine("how many more files the file system of %s can have is unknown", f.Path)
	}
	if f.Disk.Files == 0 {
		return fine("the file system of %s does not bound the number of files", f.Path)
	}
	const few, none = 10_000, 100 // a running container has about ten files
	said := fmt.Sprintf("the file system of %s has room for %d more files", f.Path, f.Disk.Ffree)
	const cure = "remove small files: `bellows prune` removes the output of jobs that have ended"
	switch {
	case f.Disk.Ffree < none:
		return problem(said, cure)
	case f.Disk.Ffree < few:
		return warning(said, cure)
	}
	return fine("%s", said)
}
