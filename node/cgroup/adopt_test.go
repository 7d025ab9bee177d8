package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Of a group that another program made, what its maker gave it is known. What is no such group is refused.
func TestAdopt(t *testing.T) {
	const scope = "kubepods.slice/pod1.slice/crio-2.scope"
	v2 := v2Machine().with(files{
		"sys/fs/cgroup/" + scope + "/cgroup.controllers":                "cpu memory\n",
		"sys/fs/cgroup/" + scope + "/cgroup.type":                       "domain\n",
		"sys/fs/cgroup/kubepods.slice/threads.slice/cgroup.type":        "threaded\n",
		"sys/fs/cgroup/kubepods.slice/threads.slice/cgroup.controllers": "cpu\n",
	})
	v1 := v1Machine().with(files{"sys/fs/cgroup/memory/" + scope + "/": "", "sys/fs/cgroup/freezer/" + scope + "/": ""})
	for _, c := range []struct {
		name    string
		machine files
		place   string
		need    []Controller
		has     string
		says    string
		is      error
	}{
		{"v2", v2, "/" + scope, []Controller{Memory, Freezer}, "memory2 cpu2 cpuacct2 freezer2", "", nil},
		{"v1", v1, "/" + scope, []Controller{Memory}, "memory1 freezer1", "", nil},
		{"hybrid", hybridMachine().with(files{"sys/fs/cgroup/memory/" + scope + "/": ""}), "/" + scope, nil, "memory1", "",
			nil},
		{"none", v2, "/kubepods.slice/pod3.slice", nil, "", "the group is gone", ErrGone},
		{"lacks", v2, "/" + scope, []Controller{Memory, IO}, "", "its maker gave it no controller io", ErrUnsupported},
		{"lacks", v1, "/" + scope, []Controller{CPU}, "", "its maker gave it no controller cpu", ErrUnsupported},
		{"threads", v2, "/kubepods.slice/threads.slice", nil, "", "is a group of threads", ErrUnsupported},
		{"ours", v2, "/user.slice/u.scope", nil, "", "must not be one that this process is in", nil},
		{"above ours", v2, "/user.slice", nil, "", "must not be one that this process is in", nil},
		{"above ours", v1, "/jobs", nil, "", "must not be one that this process is in", nil},
		{"all", v2, "/", nil, "", "must be the path of a group", nil},
		{"relative", v2, scope, nil, "", "must be the path of a group", nil},
		{"upwards", v2, "/kubepods.slice/../user.slice", nil, "", "must be the path of a group", nil},
		{"empty", v2, "", nil, "", "must be the path of a group", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			host, err := Discover(tree(t, c.machine))
			if err != nil {
				t.Fatal(err)
			}
			g, err := host.Adopt(c.place, c.need...)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%v, want %q", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var has []string
			for _, k := range Controllers() {
				if v, ok := g.Has(k); ok {
					has = append(has, fmt.Sprint(k, int(v)))
				}
			}
			if got := strings.Join(has, " "); got != c.has || g.Name() != path.Base(c.place) {
				t.Errorf("group %s has %s, want %s", g.Name(), got, c.has)
			}
		})
	}
}

// A group that this package did not make is read, limited, frozen and thawed like one that it made, and is known again.
func TestKernelAdopt(t *testing.T) {
	ctx := testContext(t)
	root := testRoot(t, Freezer)
	host, err := Discover("")
	if err != nil {
		t.Fatal(err)
	}
	const name = "crio-1.scope" // which Create refuses
	for _, dir := range root.each() {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	place := path.Join(root.Place(), name)
	g, err := host.Adopt(place, Memory, Freezer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Adopt(root.Place()+"/none", Memory); !errors.Is(err, ErrGone) {
		t.Errorf("a group that is not there: %v", err)
	}
	for _, dir := range g.each() { // A version 1 cpuset accepts no process before its maker has completed it.
		for _, file := range cpusetFiles {
			if g.version[Cpuset] == V1 && dir == g.dirs[Cpuset] {
				if err := writeFile(filepath.Join(dir, file), strings.TrimSpace(slurp(filepath.Dir(dir), file))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := g.Apply(ctx, Limits{MemoryBytes: At(128 * mib)}); err != nil {
		t.Fatal(err)
	}
	start(t, g, fmt.Sprint("hold ", 32*mib)).ready(t)
	if r := read(t, g); known(t, "AnonBytes", r.AnonBytes) < 32*mib ||
		known(t, "MemoryLimitBytes", r.MemoryLimitBytes) != 128*mib {
		t.Errorf("it is read as %+v", r)
	}
	if err := g.Freeze(ctx); err != nil {
		t.Fatal(err)
	}
	if _, frozen := g.Frozen(); !frozen {
		t.Error("it is not frozen")
	}
	again, err := host.Adopt(place, Memory)
	if err != nil || again.Identity() != g.Identity() {
		t.Errorf("adopted again as %+v (%v), was %+v", again.Identity(), err, g.Identity())
	}
	if err := again.Thaw(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	if pids, err := again.Procs(); err != nil || len(pids) != 1 {
		t.Errorf("its processes are %v: %v", pids, err)
	}
}
