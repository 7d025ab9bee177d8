package commandtest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/door/cli/command"
)

// foreign finds the words of Go's own errors, which name functions instead of limits.
var foreign = regexp.MustCompile(`strconv|invalid syntax|out of range|time:|parse error`)

// FlagErrors gives every flag of every command of a program values that few flags accept. The error of a refused
// value is one sentence that names the flag, without Go's own words. FlagErrors returns the number of refused values.
func FlagErrors(t *testing.T, tree *command.Tree) (refused int) {
	t.Helper()
	for _, cmd := range tree.Commands() {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			for _, value := range []string{"", "x", "-1", "1e999", "99999999999999999999", "1,", "12parsecs", `a"b`} {
				err := cmd.LocalFlags().Set(f.Name, value)
				if err == nil {
					continue
				}
				refused++
				text := cmd.FlagErrorFunc()(cmd, err).Error()
				if !strings.HasPrefix(text, "--"+f.Name) || strings.Contains(text, "\n") || foreign.MatchString(text) {
					t.Errorf("%s --%s=%s: %s", cmd.CommandPath(), f.Name, value, text)
				}
			}
		})
	}
	return refused
}
