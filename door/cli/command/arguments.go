package command

import (
	"slices"

	"github.com/spf13/cobra"
)

// OneArgument refuses more and fewer arguments than one, and an empty one. must says what the argument must be, after
// its name.
func OneArgument(must string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("%s, but %d were given", must, len(args))
		}
		return given(must, args)
	}
}

// SomeArguments refuses a command line without arguments, or with an empty one. must says what they must be.
func SomeArguments(must string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("%s", must)
		}
		return given(must, args)
	}
}

// given refuses empty arguments, such as that of a variable which a script has not set.
func given(must string, args []string) error {
	if slices.Contains(args, "") {
		return Usagef("%s, but an empty one was given", must)
	}
	return nil
}
