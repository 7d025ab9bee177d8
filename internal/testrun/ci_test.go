package main

import (
	"os"
	"os/exec"
	"path/filepath"
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
