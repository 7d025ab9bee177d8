package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
)

// TestDescriptors leaves a file open, as the parent of a daemon may; no program may inherit it.
func TestDescriptors(t *testing.T) {
	secret := t.TempDir() + "/secret"
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(secret, unix.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	b := newBench(t)
	o := b.order("sh", "-c", `for f in /proc/$$/fd/*; do echo $f; [ $f -ef "$0" ] && echo has the secret; done; true`,
		secret)
	if e := b.run(o); e.Outcome != cluster.Succeeded {
		t.Fatalf("ended %+v", e)
	}
	listed := read(t, o.Launch.Stdout)
	if strings.Contains(listed, "secret") {
		t.Errorf("the program has inherited the file:\n%s", listed)
	}
	if n := strings.Count(listed, "/fd/"); n > 4 { // with the folder that is listed
		t.Errorf("the program has %d open files:\n%s", n, listed)
	}
}

// TestOwn gives a program the umask, nice and limits of its submitter, and the oom_score_adj that programs are to have.
func TestOwn(t *testing.T) {
	b := newBench(t)
	b.terms.oomScore = 300
	o := b.order("sh", "-c",
		"umask; set -- $(cat /proc/$$/stat); echo ${19}; ulimit -Sn; ulimit -Hn; ulimit -c; ulimit -v; cat "+
			"/proc/self/oom_score_adj; : > made")
	o.Launch.Inherited = &cluster.Inherited{Umask: 0o077, Nice: 5, Limits: map[string]cluster.ResourceLimit{
		"nofile": {Soft: 77, Hard: 99}, "core": {Soft: 0, Hard: 0}, "as": {Soft: 1 << 30, Hard: 1 << 30}}}
	if e := b.run(o); e.Outcome != cluster.Succeeded {
		t.Fatalf("ended %+v: %s", e, read(t, o.Launch.Stderr))
	}
	if got, want := read(t, o.Launch.Stdout), "0077\n5\n77\n99\n0\n1048576\n300\n"; got != want {
		t.Errorf("umask, nice, files, core, memory, oom_score_adj are %q, want %q", got, want)
	}
	if info, err := os.Stat(b.dir + "/made"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("what it made: %v %v", info, err)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	last := 0
	for cpu := range cluster.MostCPUNumber + 1 {
		if set.IsSet(cpu) {
			last = cpu
		}
	}
	// A machine that has none of the CPUs any more gives the others.
	for _, c := range []struct {
		cpus []int
		want int
	}{{[]int{last}, 1}, {[]int{last, cluster.MostCPUNumber}, 1}, {[]int{cluster.MostCPUNumber}, set.Count()}} {
		o = b.order("sh", "-c", "nproc")
		o.Launch.Inherited = &cluster.Inherited{CPUs: c.cpus}
		if e := b.run(o); e.Outcome != cluster.Succeeded || read(t, o.Launch.Stdout) != fmt.Sprintln(c.want) {
			t.Errorf("on CPUs %v: ended %+v, and may use %q, want %d", c.cpus, e, read(t, o.Launch.Stdout), c.want)
		}
	}
	// Limits that bound how the program is brought to run do not keep it from running.
	o = b.order("true")
	o.Launch.Inherited = &cluster.Inherited{Limits: map[string]cluster.ResourceLimit{"as": {Soft: 64 << 20,
		Hard: 64 << 20}, "nofile": {Soft: 8, Hard: 8}, "fsize": {Soft: 0, Hard: 0}, "data": {Soft: 64 << 20, Hard: 64 << 20}}}
	if e := b.run(o); e.Outcome != cluster.Succeeded {
		t.Errorf("within little: ended %+v: %s", e, read(t, o.Launch.Stderr))
	}
}
