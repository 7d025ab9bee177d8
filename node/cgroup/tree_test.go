package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files is a tree of files: paths and contents. A path that ends in a slash is an empty directory.
type files map[string]string

// tree makes a file system in a temporary directory and returns its root.
func tree(t testing.TB, f files) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range f {
		path := filepath.Join(root, name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == path {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// The machines that tests know.

// v1 has one hierarchy per controller, cpu and cpuacct in one.
func v1Machine() files {
	return files{
		"proc/self/mountinfo": `22 27 0:21 / /proc rw,relatime - proc proc rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
38 31 0:35 / /sys/fs/cgroup/block\040io rw,relatime - cgroup cgroup rw,blkio
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
`,
		"proc/self/cgroup":               "9:name=systemd:/\n4:memory:/jobs/a:b\n3:cpuset:/\n2:cpu,cpuacct:/\n",
		"proc/sys/kernel/random/boot_id": "b00t\n",
		"sys/fs/cgroup/cpu,cpuacct/":     "",
		"sys/fs/cgroup/cpuset/":          "",
		"sys/fs/cgroup/memory/jobs/a:b/": "",
		"sys/fs/cgroup/freezer/":         "",
		"sys/fs/cgroup/block io/":        "",
		"sys/fs/cgroup/systemd/":         "",
	}
}

// hybrid is v1 with a version 2 hierarchy that has the one controller left.
func hybridMachine() files {
	f := v1Machine()
	f["proc/self/mountinfo"] += "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	f["proc/self/cgroup"] += "0::/user.slice\n"
	f["sys/fs/cgroup/unified/cgroup.controllers"] = "hugetlb pids\n"
	f["sys/fs/cgroup/unified/user.slice/"] = ""
	return f
}

// v2 has version 2 alone, and us in a scope of a user's.
func v2Machine() files {
	return files{
		"proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 " +
			"rw,nsdelegate\n",
		"proc/self/cgroup":                                 "0::/user.slice/u.scope\n",
		"sys/fs/cgroup/cgroup.controllers":                 "cpuset cpu io memory hugetlb pids rdma misc\n",
		"sys/fs/cgroup/cgroup.procs":                       "",
		"sys/fs/cgroup/cgroup.subtree_control":             "memory pids\n",
		"sys/fs/cgroup/user.slice/u.scope/cgroup.procs":    "",
		"sys/fs/cgroup/user.slice/u.scope/cgroup.type":     "domain\n",
		"sys/fs/cgroup/user.slice/u.scope/memory.pressure": "",
	}
}

// with returns f with more files, or others.
func (f files) with(more files) files {
	out := files{}
	for _, from := range []files{f, more} {
		for name, content := range from {
			out[name] = content
		}
	}
	return out
}
