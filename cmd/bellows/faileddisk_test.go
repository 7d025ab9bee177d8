package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/recordingdisk"
)

// processesOf returns the ids of the processes with the given folder among their arguments.
func processesOf(t *testing.T, dir string) (pids []string) {
	t.Helper()
	lists, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		if text, err := os.ReadFile(list); err == nil && strings.Contains(string(text), dir) {
			pids = append(pids, filepath.Base(filepath.Dir(list)))
		}
	}
	return pids
}

var ownGroup = regexp.MustCompile(`/bellows-[0-9a-f]+`)

// removeGroups removes, when the test ends, the empty control groups of a daemon that cannot record that it has to: the
// groups around one of its processes, as soon as one is in its group.
func removeGroups(t *testing.T, state string) {
	t.Helper()
	name := ""
	for end := time.Now().Add(time.Minute); name == ""; time.Sleep(20 * time.Millisecond) {
		pids := processesOf(t, state)
		for _, pid := range pids {
			if text, err := os.ReadFile("/proc/" + pid + "/cgroup"); err == nil && name == "" {
				name = ownGroup.FindString(string(text))
			}
		}
		if name == "" && time.Now().After(end) {
			t.Fatalf("none of %v is in a group of a daemon", pids)
		}
	}
	t.Cleanup(func() {
		out, err := exec.Command("find", "/sys/fs/cgroup", "-depth", "-type", "d", "-path", "*"+name+"*", "-exec", "rmdir",
			"{}", "+").CombinedOutput()
		if err != nil {
			t.Errorf("remove the groups %s: %v: %s", name, err, out)
		}
	})
}

// Programs can be ended although the disk accepts no more writes: kill ends them and says what is not recorded, down
// --force ends the daemon, and supervisors do not try for ever to record an end.
func TestDiskThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	needControlGroups(t)
	t.Parallel() // it mostly waits
	disk := recordingdisk.New(t, 64<<20)
	state := filepath.Join(disk.Path(), "s")
	// Under its name in PATH this program is the command: see TestMain. The daemon that it starts is the command too.
	bellows := func(want string, args ...string) {
		t.Helper()
		cmd := exec.Command("bellows", args...)
		cmd.Env = append(os.Environ(), "BELLOWS_STATE="+state)
		said, err := cmd.CombinedOutput()
		if !strings.Contains(string(said), want) {
			t.Errorf("%v: %v: %s", args, err, said)
		}
	}
	bellows("manages 512MiB", "up", "--memory", "512MiB", "--detach")
	bellows("1", "run", "-d", "--memory", "64MiB", "--", "sleep", "1000")
	bellows("2", "run", "-d", "--memory", "64MiB", "--", "sleep", "1001")
	removeGroups(t, state)
	// as after an error of the disk
	if out, err := exec.Command("mount", "-o", "remount,abort", disk.Path()).CombinedOutput(); err != nil {
		t.Fatalf("make the disk fail: %v: %s", err, out)
	}
	bellows("bellows: ", "run", "-d", "--memory", "64MiB", "--", "true")
	bellows("its tasks are being killed and none starts again, but that cannot be recorded now", "kill", "1")
	bellows("trouble: ", "ps")
	began := time.Now()
	bellows("", "down", "--force")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("down --force took %v", took)
	}
	for len(processesOf(t, state)) > 0 {
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("there are still the processes %v", processesOf(t, state))
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("the last process ended %v after it was asked to", time.Since(began))
}
