//go:build guest

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/guest"
)

// TestGuest runs TestPackageOfDebian on a machine with systemd.
func TestGuest(t *testing.T) {
	built := built(t, "../..")
	debs, err := filepath.Glob(filepath.Join(built, "*_"+runtime.GOARCH+".deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("%v: %v", debs, err)
	}
	files := map[string]string{"bellows.deb": debs[0]}
	// The guest has what systemd needs. Of these programs it gets the libraries, too.
	for _, name := range []string{"dpkg", "dpkg-deb", "dpkg-split", "tar", "rm", "sh", "cat", "sleep", "kill"} {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("needs %s", name)
		}
		files[name] = program
		libraries, err := exec.Command("ldd", program).Output()
		if err != nil {
			t.Fatalf("ldd %s: %v", program, err)
		}
		for _, m := range regexp.MustCompile(`=> (/\S+)`).FindAllStringSubmatch(string(libraries), -1) {
			files[filepath.Base(m[1])] = m[1]
		}
	}
	t.Run("v2", func(t *testing.T) {
		guest.Run(t, guest.Config{Init: guest.Systemd, Cgroups: guest.Unified, Files: files, Timeout: 8 * time.Minute},
			guest.Build(t, ".", "guest"), "-test.run=^TestPackageOfDebian$")
	})
}

// dpkg installs the package, systemd runs the daemon, for the machine and for a user, and jobs run on while their
// daemon is started anew, and see the machine as a process beside the service does.
func TestPackageOfDebian(t *testing.T) {
	guest.Need(t)
	brought, err := os.ReadDir("/guest")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range brought { // where scripts, units and jobs expect them
		to := "/usr/bin/"
		if strings.Contains(f.Name(), ".so") {
			to = "/usr/lib/"
		}
		if err := os.Symlink("/guest/"+f.Name(), to+f.Name()); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll("/var/lib/dpkg/"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("/var/lib/dpkg/status", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	root := user{}
	root.does(t, "dpkg", "--force-bad-path", "-i", "/guest/bellows.deb")
	t.Log(root.does(t, "bellows", "version"))

	t.Run("machine", func(t *testing.T) { root.runsJobs(t, "systemctl") })
	t.Run("user", func(t *testing.T) { user{uid: 1000}.runsJobs(t, "systemctl", "--user") })

	root.does(t, "systemctl", "start", "bellows")
	root.does(t, "dpkg", "--force-bad-path", "-r", "bellows")
	for _, path := range []string{"/usr/bin/bellows", "/usr/lib/systemd/system/bellows.service",
		"/usr/share/doc/bellows"} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after its removal the package has left %s: %v", path, err)
		}
	}
	if out, _ := root.command("systemctl", "is-active", "bellows").Output(); string(out) == "active\n" {
		t.Error("after the removal of the package its daemon runs")
	}
}

// user is whoever calls commands.
type user struct {
	uid uint32
}

// runsJobs starts the service by systemctl, runs jobs, and starts the service anew under one of them.
func (u user) runsJobs(t *testing.T, systemctl ...string) {
	control := func(args ...string) { t.Helper(); u.does(t, append(systemctl, args...)...) }
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := user{}.command("journalctl", "--no-pager", "-n", "30").CombinedOutput()
			groups, _ := user{}.command("systemd-cgls", "--no-pager").CombinedOutput()
			t.Logf("%s\n%s", out, groups)
		}
	})
	control("start", "bellows")
	// A job sees all that this test does, which is a service of its own: no option of the unit reaches it.
	const sees = "exec cat /proc/self/status"
	ours, its := u.does(t, "sh", "-c", sees), u.does(t, "bellows", "run", "--memory", "16MiB", "--", "sh", "-c", sees)
	for _, field := range []string{"Seccomp", "CapBnd", "CapEff", "Uid", "Umask"} {
		line := regexp.MustCompile(`(?m)^` + field + `:.*$`)
		if got, want := line.FindString(its), line.FindString(ours); got != want || want == "" {
			t.Errorf("a job has %s, and this test %s", got, want)
		}
	}
	running := func(when string) {
		t.Helper()
		if got := u.does(t, "bellows", "ps"); !regexp.MustCompile(`sleep .* running`).MatchString(got) {
			t.Errorf("%s: %s", when, got)
		}
	}
	u.does(t, "bellows", "run", "-d", "--memory", "16MiB", "--", "sleep", "1000")
	for range 2 {
		control("restart", "bellows")
		running("after a restart")
	}
	control("reload", "bellows")
	control("stop", "bellows")
	control("start", "bellows")
	running("after the service was stopped")
	// The control groups stay when the last container has ended that is older than this daemon.
	u.does(t, "bellows", "kill", "2")
	if out, err := u.command("bellows", "wait", "2").CombinedOutput(); !strings.Contains(string(out), "was killed") {
		t.Errorf("%v: %s", err, out)
	}
	control("daemon-reload") // systemd has seen that nothing is left of them
	u.does(t, "bellows", "run", "--memory", "16MiB", "--", "cat", "/dev/null")
	u.does(t, "bellows", "down")
	if out, _ := u.command(append(systemctl, "is-active", "bellows")...).Output(); string(out) != "inactive\n" {
		t.Errorf("after bellows down: %s", out)
	}
}

func (u user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/usr/sbin"}
	if u.uid != 0 {
		cmd.Env = append(cmd.Env, "HOME=/home/narrow", "XDG_RUNTIME_DIR=/run/user/1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.uid, Gid: u.uid}}
	}
	return cmd
}

// does runs a command, which must succeed, and returns what it printed.
func (u user) does(t *testing.T, args ...string) string {
	t.Helper()
	cmd := u.command(args...)
	defer time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return string(out)
}
