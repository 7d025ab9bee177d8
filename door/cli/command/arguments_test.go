package command

import (
	"fmt"
	"testing"

	"github.com/spf13/cobra"
)

// Arguments that are missing, too many or empty are refused in one sentence.
func TestArguments(t *testing.T) {
	one, some := OneArgument("pool: must be one name"), SomeArguments("pools: must be one or more names")
	for _, c := range []struct {
		check cobra.PositionalArgs
		args  []string
		want  string
	}{
		{one, []string{"a"}, "<nil>"},
		{one, nil, "pool: must be one name, but 0 were given"},
		{one, []string{"a", "b"}, "pool: must be one name, but 2 were given"},
		{one, []string{""}, "pool: must be one name, but an empty one was given"},
		{some, []string{"a", "b"}, "<nil>"},
		{some, nil, "pools: must be one or more names"},
		{some, []string{"a", ""}, "pools: must be one or more names, but an empty one was given"},
	} {
		if got := fmt.Sprint(c.check(nil, c.args)); got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
}
