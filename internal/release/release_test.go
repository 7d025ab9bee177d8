package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var arches = flag.String("arch", runtime.GOARCH, "processors to build for; others take minutes the first time")

// built builds a release of the tree in dir, and returns its folder.
func built(t *testing.T, dir string) string {
	t.Helper()
	r := release{commit: "0123456789abcdef0123456789abcdef01234567", out: t.TempDir()}
	if err := r.build(dir, "2026-11-29T22:39:01+01:00", strings.Split(*arches, ",")); err != nil {
		t.Fatal(err)
	}
	return r.out
}

// Two folders, one of them a clone, give the same bytes, at different times and in different zones; the sums are
// right; the archive and the wheel have a program that runs a job.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	const copies = `mkdir "$0" && cd ../.. && git ls-files -z --cached --others --exclude-standard |
		xargs -0 cp -a --parents -t "$0" 2>/dev/null; test -e "$0"/go.mod`
	if out, err := exec.Command("sh", "-c", copies, elsewhere).CombinedOutput(); err != nil {
		t.Skipf("needs a clone: %v: %s", err, out)
	}
	first := built(t, "../..")
	t.Setenv("TZ", "Asia/Kolkata")
	t.Setenv("GOFLAGS", "-buildvcs=true") // which the build does not heed
	second := built(t, elsewhere)
	entries, err := os.ReadDir(first)
	if err != nil || len(entries) != 1+3*len(strings.Split(*arches, ",")) {
		t.Fatalf("%v: %v", entries, err)
	}
	for _, e := range entries {
		a, b := read(t, first, e.Name()), read(t, second, e.Name())
		if !bytes.Equal(a, b) {
			t.Errorf("%s is different when it is built elsewhere", e.Name())
		}
	}
	if out, err := command(first, "sha256sum", "--check", "--strict", "SHA256SUMS").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}

	t.Run("archive", func(t *testing.T) {
		dir := t.TempDir()
		name := "bellows-" + strings.TrimSpace(string(read(t, "../..", "VERSION"))) + "-linux-" + runtime.GOARCH
		if out, err := command(dir, "tar", "-xf", filepath.Join(first, name+".tar.gz")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		runsJob(t, filepath.Join(dir, name, "bellows"))
		for _, f := range []string{"LICENSE", "README.md", "completions/_bellows", "completions/bellows",
			"completions/bellows.fish", "man/man1/bellows-up.1"} {
			if len(read(t, dir, name+"/"+f)) == 0 {
				t.Errorf("%s is empty", f)
			}
		}
	})
	t.Run("wheel", func(t *testing.T) {
		dir := t.TempDir()
		wheels, err := filepath.Glob(filepath.Join(first, "*_"+machine[runtime.GOARCH]+".whl"))
		if err != nil || len(wheels) != 1 {
			t.Fatalf("%v: %v", wheels, err)
		}
		if out, err := command(dir, "python3", "-m", "venv", "venv").CombinedOutput(); err != nil {
			t.Skipf("needs python3 with venv: %v: %s", err, out)
		}
		if out, err := command(dir, "venv/bin/pip", "install", "--no-index", wheels[0]).CombinedOutput(); err != nil {
			t.Fatalf("pip install: %v: %s", err, out)
		}
		if out, err := command(dir, "venv/bin/pip", "check").CombinedOutput(); err != nil {
			t.Errorf("pip check: %v: %s", err, out)
		}
		runsJob(t, filepath.Join(dir, "venv/bin/bellows"))
		if out, err := command(dir, "venv/bin/pip", "uninstall", "-y", "bellows-rm").CombinedOutput(); err != nil {
			t.Errorf("pip uninstall: %v: %s", err, out)
		}
		if _, err := os.Stat(filepath.Join(dir, "venv/bin/bellows")); err == nil {
			t.Error("pip has left the program")
		}
	})
}

// Trees that are not a commit are not released.
func TestNotACommit(t *testing.T) {
	for _, r := range []release{{}, {commit: "0123456789ab-dirty"}} {
		if err := r.build("../..", "2026-11-29T22:39:01Z", nil); err == nil ||
			!strings.Contains(err.Error(), "must be a commit") {
			t.Errorf("%q: %v", r.commit, err)
		}
	}
}

// runsJob runs a daemon and a job with it.
func runsJob(t *testing.T, program string) {
	t.Helper()
	const stamp = "commit 0123456789ab, 2026-11-29T21:39:01Z"
	if out, err := exec.Command(program, "version").Output(); err != nil || !strings.Contains(string(out), stamp) {
		t.Errorf("version: %v: %s", err, out)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root for a job")
	}
	dir := t.TempDir()
	bellows := func(args ...string) ([]byte, error) {
		cmd := command(dir, program, args...)
		cmd.Env = append(os.Environ(), "BELLOWS_STATE="+filepath.Join(dir, "state"))
		return cmd.CombinedOutput()
	}
	if out, err := bellows("up", "--detach", "--memory", "64MiB"); err != nil {
		t.Fatalf("up: %v: %s", err, out)
	}
	defer func() {
		if out, err := bellows("down", "--force"); err != nil {
			t.Errorf("down: %v: %s", err, out)
		}
	}()
	if out, err := bellows("run", "--memory", "16MiB", "--", "echo", "done"); err != nil || string(out) != "done\n" {
		t.Errorf("run: %v: %s", err, out)
	}
}

func command(dir, name string, args ...string) *exec.Cmd {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
