package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// FindProgram returns an error, a mistake of the user, if the program does not exist. A program whose name has
// placeholders cannot be looked up yet.
func FindProgram(program, dir string) error {
	if strings.Contains(program, "{") {
		return nil
	}
	path := program
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		path = filepath.Join(dir, program)
	}
	if _, err := exec.LookPath(path); err != nil && !errors.Is(err, exec.ErrDot) {
		why := "not found in any folder of PATH"
		switch {
		case errors.Is(err, os.ErrPermission):
			why = "not executable"
		case strings.Contains(program, "/"):
			why = "no such file"
		}
		return Usagef("command %q: %s", program, why)
	}
	return nil
}
