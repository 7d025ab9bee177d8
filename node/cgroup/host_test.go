package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func discover(t *testing.T, f files) (*Host, string) {
	t.Helper()
	root := tree(t, f)
	host, err := Discover(root)
	if err != nil {
		t.Fatal(err)
	}
	return host, root
}

func TestDiscover(t *testing.T) {
	const v2Own = "/sys/fs/cgroup/user.slice/u.scope"
	for _, c := range []struct {
		name    string
		machine files
		mode    Mode
		want    map[Controller]string // "version mount own"
	}{
		{"v1", v1Machine(), Legacy, map[Controller]string{
			Memory:  "1 /sys/fs/cgroup/memory /sys/fs/cgroup/memory/jobs/a:b",
			CPU:     "1 /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/cpu,cpuacct",
			CPUAcct: "1 /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/cpu,cpuacct",
			Cpuset:  "1 /sys/fs/cgroup/cpuset /sys/fs/cgroup/cpuset",
			Freezer: "1 /sys/fs/cgroup/freezer /sys/fs/cgroup/freezer",
			IO:      "1 /sys/fs/cgroup/block io /sys/fs/cgroup/block io",
		}},
		{"hybrid", hybridMachine(), Hybrid, map[Controller]string{
			Memory:  "1 /sys/fs/cgroup/memory /sys/fs/cgroup/memory/jobs/a:b",
			CPU:     "1 /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/cpu,cpuacct",
			CPUAcct: "1 /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/cpu,cpuacct",
			Cpuset:  "1 /sys/fs/cgroup/cpuset /sys/fs/cgroup/cpuset",
			Freezer: "1 /sys/fs/cgroup/freezer /sys/fs/cgroup/freezer",
			IO:      "1 /sys/fs/cgroup/block io /sys/fs/cgroup/block io",
			PIDs:    "2 /sys/fs/cgroup/unified /sys/fs/cgroup/unified/user.slice",
		}},
		{"v2", v2Machine(), Unified, map[Controller]string{
			Memory: "2 /sys/fs/cgroup " + v2Own, CPU: "2 /sys/fs/cgroup " + v2Own, CPUAcct: "2 /sys/fs/cgroup " + v2Own,
			Cpuset: "2 /sys/fs/cgroup " + v2Own, Freezer: "2 /sys/fs/cgroup " + v2Own, IO: "2 /sys/fs/cgroup " + v2Own,
			PIDs: "2 /sys/fs/cgroup " + v2Own,
		}},
		{"v1 in a container that mounts only its own group", files{
			"proc/self/mountinfo": "35 31 0:32 /docker/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"proc/self/cgroup":    "4:memory:/docker/c1/inner\n", "sys/fs/cgroup/memory/inner/": "",
		}, Legacy, map[Controller]string{Memory: "1 /sys/fs/cgroup/memory /sys/fs/cgroup/memory/inner"}},
		{"a mount above wins over one of the own group alone", files{
			"proc/self/mountinfo": "35 31 0:32 /docker/c1 /a rw - cgroup cgroup rw,memory\n36 31 0:32 / /b rw - cgroup " +
				"cgroup rw,memory\n",
			"proc/self/cgroup": "4:memory:/docker/c1\n", "a/": "", "b/docker/c1/": "",
		}, Legacy, map[Controller]string{Memory: "1 /b /b/docker/c1"}},
		{"outside the cgroup namespace", files{
			"proc/self/mountinfo": "35 31 0:32 / /c rw - cgroup2 cgroup2 rw\n",
			"proc/self/cgroup":    "0::/../up\n", "c/up/": "", "c/cgroup.controllers": "memory\n",
		}, Unified, map[Controller]string{Memory: "2 /c /c", Freezer: "2 /c /c", CPUAcct: "2 /c /c"}},
		{"a mount that is hidden by another", files{
			"proc/self/mountinfo": "35 31 0:32 / /hidden rw - cgroup cgroup rw,memory\n", "proc/self/cgroup": "4:memory:/\n",
		}, None, nil},
		{"a plain container", files{"proc/self/mountinfo": "22 27 0:21 / /proc rw - proc proc rw\n"}, None, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			host, root := discover(t, c.machine)
			if got := host.Mode(); got != c.mode {
				t.Errorf("mode is %s, want %s", got, c.mode)
			}
			for _, k := range Controllers() {
				var got string
				if h, ok := host.Serves(k); ok {
					got = fmt.Sprintf("%d %s %s", h.Version, strings.TrimPrefix(h.Mount, root), strings.TrimPrefix(h.Own, root))
				}
				if got != c.want[k] {
					t.Errorf("%s is served by %q, want %q", k, got, c.want[k])
				}
			}
		})
	}
}

// TestOwnBounds: the tightest bound on the own group and on any group above it, up to the top of what is mounted, and
// where it is.
func TestOwnBounds(t *testing.T) {
	const v1CPU, v1Memory, v2 = "sys/fs/cgroup/cpu,cpuacct/", "sys/fs/cgroup/memory/", "sys/fs/cgroup/"
	inGroup := files{"proc/self/cgroup": "4:memory:/jobs/a:b\n2:cpu,cpuacct:/slice/own\n", v1CPU + "slice/own/": ""}
	for _, c := range []struct {
		name    string
		machine files
		want    string // memory, its group, CPU, its group
	}{
		{"v1 without bounds",
			v1Machine().with(files{v1CPU + "cpu.cfs_quota_us": "-1\n", v1CPU + "cpu.cfs_period_us": "100000\n",
				v1Memory + "jobs/a:b/memory.limit_in_bytes": "9223372036854771712\n"}), `none "" none ""`},
		{"v1, at the top", v1Machine().with(files{v1CPU + "cpu.cfs_quota_us": "50000\n",
			v1CPU + "cpu.cfs_period_us": "100000\n", v1Memory + "memory.limit_in_bytes": "4096\n"}), `4096 "/" 500 "/"`},
		{"v1, a group above is tighter", v1Machine().with(inGroup).with(files{
			v1CPU + "slice/own/cpu.cfs_quota_us": "400000\n", v1CPU + "slice/own/cpu.cfs_period_us": "100000\n",
			v1CPU + "slice/cpu.cfs_quota_us": "33333\n", v1CPU + "slice/cpu.cfs_period_us": "20000\n",
			v1Memory + "jobs/memory.limit_in_bytes": "4096\n", v1Memory + "jobs/a:b/memory.limit_in_bytes": "8192\n"}),
			`4096 "/jobs" 1666 "/slice"`},
		{"v2", v2Machine().with(files{v2 + "user.slice/u.scope/cpu.max": "max 100000\n",
			v2 + "user.slice/cpu.max": "150000 100000\n", v2 + "user.slice/u.scope/memory.max": "max\n",
			v2 + "user.slice/u.scope/memory.high": "8192\n", v2 + "user.slice/memory.max": "16384\n"}),
			`8192 "/user.slice/u.scope" 1500 "/user.slice"`},
		{"v2, less than any core", v2Machine().with(files{v2 + "user.slice/u.scope/cpu.max": "1000 1000000000\n"}),
			`none "" 1 "/user.slice/u.scope"`},
		{"v2 without its controllers", files{"proc/self/mountinfo": ""}, `none "" none ""`},
	} {
		host, _ := discover(t, c.machine)
		say := func(n int64, group string) string {
			if n == NoLimit {
				return fmt.Sprintf("none %q", group)
			}
			return fmt.Sprintf("%d %q", n, group)
		}
		if got := say(host.OwnMemory()) + " " + say(host.OwnCPU()); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestDiscoverFails(t *testing.T) {
	for name, f := range map[string]files{
		"no mountinfo":      {},
		"garbled mountinfo": {"proc/self/mountinfo": "22 27\n"},
		"garbled cgroup":    {"proc/self/mountinfo": "", "proc/self/cgroup": "4:memory\n"},
	} {
		if _, err := Discover(tree(t, f)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRootSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine files
		need    []Controller
		want    string
	}{
		{"nothing mounted", files{"proc/self/mountinfo": ""}, nil, "no cgroup file system is mounted"},
		{"no controller", v1Machine(), []Controller{Memory, PIDs}, "lacks these cgroup controllers: pids"},
		{"not turned on", v2Machine(), []Controller{IO, Memory}, "lacks these cgroup controllers: memory, io"},
	} {
		host, _ := discover(t, c.machine.with(files{
			"sys/fs/cgroup/cpuset/bellows-main/cpuset.cpus": "0", "sys/fs/cgroup/cpuset/bellows-main/cpuset.mems": "0",
		}))
		_, err := host.Root("main", c.need...)
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: error %v, want it unsupported and to say %q", c.name, err, c.want)
		}
	}
	host, _ := discover(t, v1Machine())
	for _, name := range []string{"", "a/b", "..", "memory.max", "ü"} {
		if _, err := host.Root(name); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	for _, place := range []string{"", "/", "/other", "/bellows-x/.."} {
		if _, err := host.OpenRoot(place); err == nil {
			t.Errorf("the place %q was taken", place)
		}
	}
	if _, err := host.OpenRoot("/bellows-gone"); !errors.Is(err, ErrGone) {
		t.Errorf("a place that is gone: %v", err)
	}
}

// fakeGroup is a group in a tree of files: bellows-main/one in every hierarchy.
func fakeGroup(t *testing.T, machine files) *Group {
	t.Helper()
	for _, dir := range []string{"", "/unified", "/memory", "/cpu,cpuacct", "/cpuset", "/freezer", "/block io"} {
		machine["sys/fs/cgroup"+dir+"/bellows-main/one/"] = ""
	}
	host, _ := discover(t, machine)
	parent := host.child("/bellows-main")
	g := parent.child("one", parent.version)
	made, err := newGroup(host, "one", g.dirs, g.version, g.unified)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestJoinFiles(t *testing.T) {
	for _, c := range []struct {
		machine files
		want    int
	}{{v1Machine(), 5}, {hybridMachine(), 6}, {v2Machine(), 1}} {
		g := fakeGroup(t, c.machine)
		got := g.JoinFiles()
		if len(got) != c.want {
			t.Errorf("%s: %d files to join, want %d: %q", g.host.Mode(), len(got), c.want, got)
		}
		for _, f := range got {
			if filepath.Base(f) != "cgroup.procs" {
				t.Errorf("%s: file to join is %s", g.host.Mode(), f)
			}
		}
		file, err := openDir(g)
		if (err == nil) != (g.host.Mode() == Unified) {
			t.Errorf("%s: descriptor of the group: %v", g.host.Mode(), err)
		}
		if err == nil {
			file.Close()
		}
	}
}
