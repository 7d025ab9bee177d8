package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable/statedir"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/agent"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/swap"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// sound returns the facts of a machine without any problem, on which a daemon runs.
func sound() *Facts {
	has := map[cgroup.Controller]cgroup.Version{}
	for _, c := range cgroup.Controllers() {
		has[c] = cgroup.V2
	}
	return &Facts{
		Config:    Config{State: "/var/lib/bellows", Socket: "/run/bellows/bellows.sock", Version: "1.2.3"},
		System:    System{Release: "6.1.0-18-amd64", Arch: "amd64"},
		User:      "root",
		Capacity:  Capacity{Usable: agent.Usable{Has: resource.Of(2000, 24*resource.GiB), Machine: 24 * resource.GiB}},
		Available: 20 * resource.GiB,
		Groups: Groups{Found: agent.Found{Mode: cgroup.Unified,
			Site: cgroup.Site{Above: "/", Unified: "/sys/fs/cgroup", Has: has}, Made: true, Processes: cgroup.NoLimit,
			Threads: 4096}},
		Swap: Swap{Devices: []swap.Device{
			{Path: "/dev/zram0", Kind: swap.Zram, Size: 8 * resource.GiB, Priority: 100, On: true},
			{Path: "/swapfile", Kind: swap.File, Size: 4 * resource.GiB, Used: resource.GiB, Priority: -2, On: true}},
			Zswap: &swap.Zswap{Enabled: true, Compressor: "zstd"}},

		StateDir: StateDir{Path: "/var/lib/bellows", StateExists: true, Disk: unix.Statfs_t{Bsize: 4096, Blocks: 10 << 20,
			Bavail: 5 << 20, Files: 2 << 20, Ffree: 1 << 20}},
		Limits: Limits{Descriptors: 1 << 20, Connections: 512, Most: 512, Rlimits: map[string]uint64{
			fileSize: unix.RLIM_INFINITY, addressSpace: unix.RLIM_INFINITY, userProcesses: 90_000}},
		Now: now, Clock: Clock{Synced: true}, Newest: "bellows.db", Changed: now.Add(-time.Second),
		Status: &api.Status{Daemon: api.Daemon{Version: "1.2.3", PID: 4711, State: "/var/lib/bellows"},
			ClusterStatus: api.ClusterStatus{Policy: "yarn-me", Since: now.Add(-time.Hour), Running: 3}},
		Began: now.Add(-time.Hour - 2*time.Second),
	}
}

// away makes the daemon one that does not answer.
func (f *Facts) away(err error) { f.Status, f.Began, f.StatusErr = nil, time.Time{}, err }

// become makes the daemon that of another user, who asks.
func (f *Facts) become(uid int, name string) { f.UID, f.User, f.Status.UID = uid, name, uint32(uid) }

var absent = api.Errorf(api.Unavailable, "no daemon listens")

// rare are states that few machines are in. The golden file has what is found in them beyond a sound machine's
// findings.
var rare = []struct {
	name   string
	differ func(*Facts)
}{
	{"an old kernel", func(f *Facts) { f.Release = "4.19.0" }},
	{"no proc", func(f *Facts) {
		f.Release = ""
		f.CapacityErr = errors.New("read the memory of this machine: open /proc/meminfo: no such file or directory")
		f.SwapErr = errors.New("read the swap devices of this machine: permission denied")
		f.GroupsErr = &agent.NoCgroupError{Err: errors.New(
			"discover cgroups: open /proc/self/mountinfo: no such file or directory")}
	}},
	{"a job that left a file in memory", func(f *Facts) {
		f.Status.Nodes = []api.Node{{LeftoverMemory: int64(300 * resource.MiB)}}
	}},
	{"a container of half a core, and huge pages", func(f *Facts) {
		f.Usable.Has = resource.Of(500, 23*resource.GiB)
		f.Usable.Less[resource.Memory] = "1GiB of its 24GiB is reserved as huge pages"
		f.Usable.Less[resource.CPU] = "the control group / may use no more"
	}},
	{"an ordinary user without delegation", func(f *Facts) {
		f.become(1000, "ada")
		f.GroupsErr = &agent.NoCgroupError{Err: &cgroup.NeedError{Err: syscall.EACCES,
			Missing: "the group /user.slice/user-1000.slice/session-2.scope was not delegated to this user",
			Remedy:  "run it as root, or as `systemd-run --user --scope -p Delegate=yes COMMAND`"}}
		f.Found.Priority, f.Found.Unprotected = syscall.EPERM,
			&fs.PathError{Op: "write", Path: "/proc/self/oom_score_adj", Err: syscall.EACCES}
		f.away(absent)
	}},
	{"a user without a name and with half a delegation", func(f *Facts) {
		f.become(1000, "")
		f.Found.Above, f.Found.Made = "/user.slice/user-1000.slice", false
		delete(f.Found.Has, cgroup.IO)
		f.Found.Processes, f.Found.NetworkUnknown = 120, "count network bytes: it needs CAP_SYS_ADMIN"
	}},
	{"a container with read-only control groups", func(f *Facts) {
		f.GroupsErr = &agent.NoCgroupError{Err: &cgroup.NeedError{Missing: "/sys/fs/cgroup is mounted read-only",
			Err: unix.EROFS, Remedy: "start the container with writable cgroups, or run outside of it"}}
	}},
	{"version 1 without PSI and without some controllers", func(f *Facts) {
		f.Found.Mode, f.Found.Unified, f.PSI = cgroup.Legacy, "", os.ErrNotExist
		f.Found.NetworkUnknown = "its control groups are not in a hierarchy of version 2"
		f.Found.Has = map[cgroup.Controller]cgroup.Version{cgroup.Memory: cgroup.V1, cgroup.CPU: cgroup.V1}
	}},
	{"version 2 without PSI", func(f *Facts) {
		f.PSI = &os.PathError{Op: "read", Path: "/proc/pressure/memory", Err: syscall.EOPNOTSUPP}
	}},
	{"no swap", func(f *Facts) { f.Devices, f.Zswap = nil, nil }},
	{"full swap", func(f *Facts) {
		f.Devices = []swap.Device{{Path: "/swapfile", Kind: swap.File, Size: 100, Used: 95, On: true}}
	}},
	{"a spent budget", func(f *Facts) { f.Spent, f.PerDay = 201*resource.GiB, 200*resource.GiB }},
	{"a disk before zram", func(f *Facts) { f.Devices[1].Priority = 200 }},
	{"many devices", func(f *Facts) {
		for range 3 {
			f.Devices = append(f.Devices, f.Devices[1])
		}
	}},
	{"an unsafe state directory", func(f *Facts) {
		f.StateErr = &statedir.UnsafeError{Dir: "/data/state", Path: "/data", Why: "is writable by everybody (mode 0777)",
			Mend: "chmod go-w /data"}
	}},
	{"a state directory that cannot be made", func(f *Facts) {
		f.StateErr = fmt.Errorf("make the state directory /x: %w", syscall.EACCES)
	}},
	{"a state directory that is missing", func(f *Facts) { f.StateExists, f.Newest = false, "" }},
	{"a read-only disk", func(f *Facts) { f.Disk.Flags = unix.MS_RDONLY }},
	{"a file system in memory", func(f *Facts) { f.Disk.Type = unix.TMPFS_MAGIC }},
	{"a remote file system", func(f *Facts) { f.Disk.Type = unix.NFS_SUPER_MAGIC }},
	{"a disk that cannot be seen", func(f *Facts) { f.DiskErr = syscall.EIO }},
	{"a full disk", func(f *Facts) { f.Disk.Bavail, f.Disk.Ffree = 2000, 50 }},
	{"nearly a full disk", func(f *Facts) { f.Disk.Bavail, f.Disk.Ffree = 50_000, 5000 }},
	{"a tiny disk without inodes", func(f *Facts) { f.Disk.Blocks, f.Disk.Bavail, f.Disk.Files = 5000, 5000, 0 }},
	{"narrow limits", func(f *Facts) {
		f.become(1000, "ada")
		f.Descriptors, f.Connections = 1024, 256
		f.Rlimits = map[string]uint64{fileSize: 1 << 30, addressSpace: 1 << 32, userProcesses: 200}
	}},
	{"a clock that was set back", func(f *Facts) { f.Changed = now.Add(time.Hour) }},
	{"a clock that was set while the daemon ran", func(f *Facts) { f.Began = f.Status.Since.Add(2 * time.Hour) }},
	{"a clock that is not synchronized", func(f *Facts) { f.Synced = false }},
	{"a clock that cannot be asked", func(f *Facts) { f.ClockErr = syscall.EPERM }},
	{"a certificate that lasts", func(f *Facts) {
		f.Status.Listens = &api.Listens{Address: "192.0.2.7:8443", Certificate: now.Add(60 * 24 * time.Hour)}
	}},
	{"a certificate that expires soon", func(f *Facts) {
		f.Status.Listens = &api.Listens{Address: "192.0.2.7:8443", Certificate: now.Add(13 * 24 * time.Hour)}
	}},
	{"a socket for everybody, without quotas", func(f *Facts) { f.SocketMode, f.SocketGID = fs.ModeSocket|0o666, 0 }},
	{"a socket for a group, without quotas", func(f *Facts) { f.SocketMode, f.SocketGID = fs.ModeSocket|0o660, 987654 }},
	{"a socket for a group, with quotas", func(f *Facts) {
		f.SocketMode, f.SocketGID, f.Status.Quotas = fs.ModeSocket|0o660, 987654, true
	}},
	{"a certificate that has expired", func(f *Facts) {
		f.Status.Listens = &api.Listens{Address: "192.0.2.7:8443", Certificate: now}
	}},
	{"a socket that cannot be made", func(f *Facts) {
		f.away(absent)
		f.SocketErr = errors.New("socket /run/x: the path exists and is no socket")
	}},
	{"a socket that is left", func(f *Facts) { f.away(absent); f.SocketLeft = true }},
	{"no daemon", func(f *Facts) { f.away(absent) }},
	{"a daemon that does not answer", func(f *Facts) { f.away(context.DeadlineExceeded); f.SocketLeft = true }},
	{"a daemon elsewhere", func(f *Facts) { f.away(absent); f.Held, f.Holder = true, "4711" }},
	{"a daemon of another user", func(f *Facts) {
		f.away(api.Errorf(api.Denied,
			"socket /tmp/s: user 1001 listens there, and is neither root nor you; nothing was sent"))
		f.SocketLeft = true
	}},
	{"another program at the socket", func(f *Facts) {
		f.away(errors.New("send a request to the daemon: malformed HTTP response"))
		f.SocketLeft = true
	}},
	{"a daemon in trouble", func(f *Facts) { f.Status.Trouble = "the engine has not answered for 7s" }},
	{"an older daemon", func(f *Facts) { f.Status.Version = "1.0.0" }},
	{"a user whom the daemon of root serves", func(f *Facts) {
		f.UID, f.User, f.StateErr, f.GroupsErr = 1000, "ada", errors.New("nowhere"), errors.New("no groups")
	}},
	{"a user whom a daemon of root in trouble serves", func(f *Facts) {
		f.UID, f.Status.Trouble = 1000, "the engine has not answered for 7s"
	}},
	{"root, who asks a daemon of a user", func(f *Facts) { f.Status.UID, f.Status.Version = 1000, "1.0.0" }},
	{"a crowded machine", func(f *Facts) {
		f.Status.Crowded = "other bellows daemons manage 20GiB of this machine, and this one 21GiB: together more " +
			"than its 24GiB"
	}},
}

// What is found says what to do, unless all is well.
func TestFindings(t *testing.T) {
	var text bytes.Buffer
	write := func(name string, findings []Finding) {
		fmt.Fprintf(&text, "%s:\n", name)
		for _, f := range findings {
			fmt.Fprintf(&text, "  %s: %s: %s\n", f.Check, f.Level, f.Found)
			if f.Remedy != "" {
				fmt.Fprintf(&text, "    %s\n", f.Remedy)
			}
			if (f.Remedy == "") != (f.Level == OK) {
				t.Errorf("%s: %+v: a remedy belongs to a warning or a problem", name, f)
			}
		}
	}
	usual := judge(sound())
	write("a sound machine", usual)
	if len(usual) != len(checks) || worst(usual) != OK {
		t.Errorf("a sound machine has the findings %v", usual)
	}
	for _, c := range rare {
		f := sound()
		c.differ(f)
		var other []Finding
		for _, finding := range judge(f) {
			if !slices.Contains(usual, finding) {
				other = append(other, finding)
			}
		}
		if len(other) == 0 {
			t.Errorf("%s: nothing differs from a sound machine", c.name)
		}
		write(c.name, other)
	}
	testfile.Golden(t, "findings.txt", text.Bytes())
}

func worst(all []Finding) (level Level) {
	for _, f := range all {
		level = max(level, f.Level)
	}
	return level
}

// TestExamine examines the machine of the test. Control groups are found if, and only if, they can be had.
func TestExamine(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	findings := Examine(t.Context(), Config{State: state, Socket: filepath.Join(dir, "s"), Version: "test"})
	for _, f := range findings {
		t.Logf("%+v", f)
	}
	if _, err := os.Lstat(state); err == nil {
		t.Error("it has made the state directory")
	}
	host, err := cgroup.Discover("")
	if err != nil {
		t.Fatal(err)
	}
	root, err := host.Root(fmt.Sprintf("doctor-%d", os.Getpid()), cgroup.Memory)
	if err == nil {
		err = root.Remove(t.Context())
		if err != nil {
			t.Error(err)
		}
	}
	if had, found := err == nil, len(findings) == len(checks); had != found {
		t.Errorf("control groups can be had: %t (%v), but the findings are %v", had, err, findings)
	}
	if last := findings[len(findings)-1]; last.Check != "daemon" || last.Level != OK ||
		!strings.HasPrefix(last.Found, "none runs") {
		t.Errorf("without a daemon, the last finding is %+v", last)
	}
}

func TestBegun(t *testing.T) {
	began := begun(os.Getpid())
	if age := time.Since(began); age < 0 || age > time.Hour {
		t.Errorf("this process began at %v, %v ago", began, age)
	}
	if began := begun(1 << 30); !began.IsZero() {
		t.Errorf("a process that is not there began at %v", began)
	}
}

func TestLevels(t *testing.T) {
	for level := OK; level <= Problem; level++ {
		text, err := json.Marshal(level)
		var back Level
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || back != level {
			t.Errorf("%s is %v again (%v)", text, back, err)
		}
	}
	if err := new(Level).UnmarshalText([]byte("fine")); err == nil {
		t.Error("an unknown level was taken")
	}
}

// The page has a row for each check.
func TestPage(t *testing.T) {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	if missing := testfile.Undocumented(t, "../../docs/doctor.md", "Checks", names); len(missing) > 0 {
		t.Errorf("docs/doctor.md lacks %v", missing)
	}
}

// Root can have jobs anyway: a socket of its group is not open to others.
func TestSocketOfRootsGroup(t *testing.T) {
	f := sound()
	f.SocketMode, f.SocketGID = fs.ModeSocket|0o660, 0
	if got := f.quotas(); got.Level != OK || got.Found != "the daemon serves one user, and root" {
		t.Errorf("%+v", got)
	}
}
