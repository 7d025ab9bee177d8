package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// words prints the controllers of a site with their versions.
func (s Site) words() string {
	var all []string
	for _, c := range Controllers() {
		if v := s.Has[c]; v != 0 {
			all = append(all, fmt.Sprintf("%s:%d", c, v))
		}
	}
	return s.Above + " " + strings.Join(all, " ")
}

// A site has what Root would make or OpenRoot would find, and asking for it makes nothing.
func TestSite(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine files
		place   string // of an earlier subtree; empty asks for a new one
		need    []Controller
		want    string // the site, or a part of the error
	}{
		{"v1", v1Machine(), "", []Controller{Memory}, "/ memory:1 cpu:1 cpuacct:1 cpuset:1 freezer:1 io:1"},
		{"hybrid", hybridMachine(), "", []Controller{Memory}, "/ memory:1 cpu:1 cpuacct:1 cpuset:1 freezer:1 io:1 pids:2"},
		{"v2", v2Machine(), "", []Controller{Memory}, "/ memory:2 cpu:2 cpuacct:2 cpuset:2 freezer:2 io:2 pids:2"},
		{"v2 without memory", v2Machine().with(files{"sys/fs/cgroup/cgroup.controllers": "cpu pids\n"}), "",
			[]Controller{Memory}, "this machine lacks these cgroup controllers: memory"},
		{"nothing mounted", files{"proc/self/mountinfo": ""}, "", nil, "no cgroup file system is mounted"},
		{"found", v2Machine().with(files{"sys/fs/cgroup/bellows-x/cgroup.subtree_control": "memory cpu\n"}), "/bellows-x",
			[]Controller{Memory}, "/ memory:2 cpu:2 cpuacct:2 freezer:2"},
		{"found without memory",
			v2Machine().with(files{"sys/fs/cgroup/user.slice/u.scope/bellows-x/cgroup.subtree_control": "cpu\n"}),
			"/user.slice/u.scope/bellows-x", []Controller{Memory},
			"the group /user.slice/u.scope was delegated without these controllers: memory"},
		{"gone", v2Machine(), "/bellows-x", nil, ErrGone.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			host, root := discover(t, c.machine)
			before := listing(t, root)
			site, err := host.Site(c.need...)
			if c.place != "" {
				site, err = host.SiteOf(c.place, c.need...)
			}
			if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && site.words() != c.want {
				t.Errorf("site is %q (%v), want %q", site.words(), err, c.want)
			}
			if after := listing(t, root); after != before {
				t.Errorf("the tree has changed from\n%sto\n%s", before, after)
			}
		})
	}
}

// The tightest group above a subtree counts.
func TestProcessesLeft(t *testing.T) {
	const slice, scope = "sys/fs/cgroup/user.slice/", "sys/fs/cgroup/user.slice/u.scope/"
	host, _ := discover(t, v2Machine().with(files{
		slice + "pids.max": "1000\n", slice + "pids.current": "900\n", scope + "pids.max": "max\n",
		scope + "pids.current": "3\n",
	}))
	for above, want := range map[string]int64{"/": NoLimit, "/user.slice": 100, "/user.slice/u.scope": 100} {
		if got := host.ProcessesLeft(Site{Above: above}); got != want {
			t.Errorf("below %s there may be %d more processes, want %d", above, got, want)
		}
	}
	host, _ = discover(t, v1Machine())
	if got := host.ProcessesLeft(Site{Above: "/"}); got != NoLimit {
		t.Errorf("without a controller there may be %d more processes", got)
	}
}

// listing returns the paths and the contents of a tree.
func listing(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			fmt.Fprintln(&all, path)
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s: %q\n", path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestKernelSite(t *testing.T) {
	root := testRoot(t)
	host, err := Discover("")
	if err != nil {
		t.Fatal(err)
	}
	found, err := host.SiteOf(root.Place(), Memory)
	if err != nil || !maps.Equal(found.Has, root.children) {
		t.Errorf("the site of the subtree is %+v (%v), but the subtree has %v", found, err, root.children)
	}
	other, err := host.Site(Memory)
	if err != nil || other.Above != path.Dir(root.Place()) {
		t.Errorf("another subtree would be in %q (%v), not beside %s", other.Above, err, root.Place())
	}
	for c := range root.children {
		if other.Has[c] == 0 {
			t.Errorf("another subtree would not have %s, which this one has", c)
		}
	}
	if _, err := host.SiteOf(root.Place() + "x"); !errors.Is(err, ErrGone) {
		t.Errorf("a subtree that is not there: %v", err)
	}
}
