package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// spec is what the supervisor needs, and what the agent needs after a restart.
type spec struct {
	Container cluster.ContainerID `json:"container"`
	Grant     resource.Vector     `json:"grant"` // at the start; want.json has a later one
	ByPhase   bool                `json:"by_phase,omitempty"`
	Booked    timeline.Time       `json:"booked_ns"`
	Launch    cluster.Launch      `json:"launch"`
	Envelope  cluster.Envelope    `json:"envelope"`
	// Place and Identity identify the control group; its name is that of the container.
	Place    string          `json:"place"`
	Identity cgroup.Identity `json:"identity"`
	// Join are the files that the program writes itself into in order to be in the group; SupervisorJoin are the files
	// of the supervisor's own group.
	Join           []string `json:"join"`
	SupervisorJoin []string `json:"supervisor_join"`
	// Lease is the file that the agent renews while it can resume the container.
	Lease string `json:"lease,omitempty"`
	// Grace is the time between the request that processes end and their kill.
	Grace time.Duration `json:"grace_ns"`
	// OutputLimit is how many bytes of each of the two outputs are kept.
	OutputLimit int64 `json:"output_limit_bytes"`
	// OOMScore is the oom_score_adj of the program.
	OOMScore int `json:"oom_score_adj,omitempty"`
	// Supervisor is the version of the container's supervisor; see supervisorVersion.
	Supervisor int `json:"supervisor,omitempty"`
}

// supervisorVersion says what the supervisors of this release do while there is no agent; in programs from before
// 0.1.0 it was at most 3.
const supervisorVersion = 4

// refuseOlder returns an error if a container among those in a folder has a supervisor from before 0.1.0: neither
// this agent nor that supervisor knows what the other does.
func refuseOlder(containers string) error {
	entries, err := os.ReadDir(containers)
	if err != nil {
		return fmt.Errorf("take inventory: %w", err)
	}
	for _, entry := range entries {
		id, err := cluster.ParseContainerID(entry.Name())
		if err != nil {
			continue // Not ours.
		}
		var s spec
		if f := folder(filepath.Join(containers, entry.Name())); f.getSpec(id, &s) == nil &&
			s.Supervisor < supervisorVersion {
			return fmt.Errorf("%s is of a program from before bellows 0.1.0: finish its job with that program, "+
				"and start this one with another state directory", f)
		}
	}
	return nil
}

// granted returns how the container is while no party has stopped it.
func (s *spec) granted() keeper.Rest { return keeper.Rest{Grant: s.Grant, Envelope: s.Envelope} }

// sized returns s with the size that is recorded.
func (s *spec) sized(r *keeper.Record) *spec {
	if !r.WasResized() {
		return s
	}
	resized := *s
	resized.Grant, resized.Envelope = r.Size.Grant, r.Size.Envelope
	return &resized
}

// started is when the program began: by the calendar, and by the clock of samples, which cannot be set.
type started struct {
	At    timeline.Time `json:"at_ns"`
	Clock time.Duration `json:"clock_ns,omitempty"`
}

// ending is how a container ended.
type ending struct {
	cluster.Exit
	Detail string `json:"detail,omitempty"`
	// Fault says that the machine, not the program, caused the end: nothing ran.
	Fault bool `json:"fault,omitempty"`
	// Short says that the machine was short of something that it may have again.
	Short bool `json:"short,omitempty"`
	// Transferred is what the container's processes have transferred; nil if that is unknown, or if the group's counters
	// have it.
	Transferred *cgroup.Transfers `json:"transferred,omitempty"`
}

// folder is the folder of one container.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

func (f folder) exists(name string) bool {
	is, _ := f.has(name)
	return is
}

// has reports whether a file exists.
func (f folder) has(name string) (bool, error) {
	_, err := os.Stat(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, f.away()
	}
	return err == nil, err
}

// away returns errAway if the folder of all containers is not there: then it says nothing that a file is not, either.
func (f folder) away() error {
	if _, err := os.Stat(filepath.Dir(string(f))); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", f, errAway)
	}
	return nil
}

// putSpec makes the folder with the record of the container, durably: even after a crash of the machine, every
// supervisor's container is known.
func (f folder) putSpec(s *spec) error {
	if err := durable.MakeDir(string(f)); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	named := make(chan error, 1) // The disk takes as long for two folders at once as for one.
	go func() { named <- durable.SyncDir(filepath.Dir(string(f))) }()
	err = durable.Write(f.path("spec.json"), append(text, '\n'))
	return errors.Join(err, <-named)
}

// getSpec reads the record of a container. An incomplete record, or one of another container, is an error.
func (f folder) getSpec(id cluster.ContainerID, s *spec) error {
	if err := f.get("spec.json", s); err != nil {
		return err
	}
	if s.Container != id || s.Place == "" {
		return fmt.Errorf("read %s: it is the record of container %s in control group %q", f.path("spec.json"), s.Container,
			s.Place)
	}
	return nil
}

// putStarted records when the program began. A power failure may lose the record; it ends the program, too.
func (f folder) putStarted(s started) error {
	return f.put("started.json", s)
}

// put records a value. A power failure may lose the record.
func (f folder) put(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return durable.Replace(f.path(name), append(text, '\n'))
}

// mark records a fact that a power failure makes obsolete.
func (f folder) mark(name string) error { return durable.Replace(f.path(name), nil) }

func (f folder) get(name string, value any) error {
	text, err := os.ReadFile(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(f.away(), err)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("read %s: %w", f.path(name), err)
	}
	return nil
}

// endingSize is the space reserved for exit.json, bytes. Longer details are cut.
const endingSize = 4096

// setAside reserves the disk space that the record of the end will need. It does not wait for the disk, unless the
// file system allocates space only when it writes: a loss of power ends the program, too.
func (f folder) setAside() error {
	file, err := durable.Create(f.path("exit.tmp"))
	if err != nil {
		return err
	}
	allocated := file.Allocate(endingSize)
	if errors.Is(allocated, unix.EOPNOTSUPP) {
		defer file.Close()
		_, err = file.WriteAt(bytes.Repeat([]byte(" "), endingSize), 0)
		return errors.Join(err, file.Sync())
	}
	if allocated == nil {
		_, err = file.WriteAt(bytes.Repeat([]byte(" "), endingSize), 0)
	}
	return errors.Join(allocated, err, file.Close())
}

// putEnding writes the record of the end into the reserved space and publishes it, durably.
func (f folder) putEnding(e ending) error {
	if len(e.Detail) > endingSize/4 {
		e.Detail = strings.ToValidUTF8(e.Detail[:endingSize/4], "")
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := durable.Open(f.path("exit.tmp"))
	if err != nil {
		return err
	}
	_, err = file.WriteAt(append(text, '\n'), 0)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return durable.Rename(f.path("exit.tmp"), f.path("exit.json"))
}

// errHeld is returned by lock when another process is responsible for the container.
var errHeld = errors.New("another process holds the lock")

// lock takes the container's lock. The lock belongs to the open file: a process that inherits the file has the lock,
// too.
func (f folder) lock() (*os.File, error) {
	file, err := os.OpenFile(f.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, unix.EROFS) { // The disk has failed.
		file, err = os.Open(f.path("lock"))
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errHeld
	}
	return nil, &fs.PathError{Op: "flock", Path: f.path("lock"), Err: err}
}

// supervisor returns the pid that the supervisor wrote into the lock; ok is false if it has not yet.
func (f folder) supervisor() (pid int, ok bool) {
	text, err := os.ReadFile(f.path("lock"))
	if err != nil {
		return 0, false
	}
	line, _, whole := strings.Cut(string(text), "\n")
	pid, err = strconv.Atoi(line)
	return pid, err == nil && whole && pid > 1
}

// launches records in the lock that the program may run from now on. The first line of the lock is the supervisor's
// pid; an empty second line is the record, which does not disturb readers of the first.
func launches(lock *os.File) error {
	_, err := lock.WriteAt(fmt.Appendf(nil, "%d\n\n", os.Getpid()), 0)
	return err
}

// launched reports whether the program may have started.
func (f folder) launched() (bool, error) {
	text, err := os.ReadFile(f.path("lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, f.away()
	}
	return bytes.HasSuffix(text, []byte("\n\n")), err
}

// readable returns why a record that adds to spec.json cannot be read now; nil if each says something or is not there.
func (f folder) readable() error {
	for _, name := range []string{"started.json", wantFile, usageFile} {
		if _, err := os.ReadFile(f.path(name)); isUnread(err) {
			return err
		}
	}
	return nil
}
