package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The CI script fails if a step that decides fails, and only then. Here each step but one is a program that does
// nothing.
func TestWhatTheTestMachineRuns(t *testing.T) {
	for _, c := range []struct {
		fails string
		code  int
		last  string
	}{
		{"none", 0, "=== all passed after 0 minutes"},
		{"test-guest", 1, "=== FAILED: guests after 0 minutes"},
		{"fuzz", 0, "=== all passed after 0 minutes"},
	} {
		t.Run(c.fails, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			script := "#!/bin/sh\n[ \"$1\" != " + c.fails + " ]\n"
			if err := os.WriteFile(filepath.Join(bin, "make"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("../../.ci/run")
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.HasSuffix(string(out), "\n"+c.last+"\n") {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, c.code, c.last, out)
			}
		})
	}
}

// Tests are not vetted when they are run, since "make check" has done so: it vets what needs a build tag, too.
func TestAllIsVetted(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	vets := regexp.MustCompile(`(?m)^check:(?:\n.*)+?\bgo vet -tags (\S+) \./\.\.\.$`).FindSubmatch(makefile)
	if vets == nil {
		t.Fatal("make check does not vet")
	}
	tags := strings.Split(string(vets[1]), ",")
	constraint, found := regexp.MustCompile(`(?m)^//go:build (.*)$`), 0
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "../../studies" || d.Name() == ".cache"): // another module, what was fetched
			return fs.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		if c := constraint.FindSubmatch(text); c != nil {
			if found++; !slices.Contains(tags, string(c[1])) {
				t.Errorf("%s needs %s: make check vets with %q", path, c[1], tags)
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d files need tags: %v", found, err)
	}
}
