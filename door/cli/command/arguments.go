package command

import "github.com/spf13/cobra"

// OneArgument refuses more and fewer arguments than one. must says what the argument must be, after its name.
func OneArgument(must string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("%s, but %d were given", must, len(args))
		}
		return nil
	}
}

// SomeArguments refuses a command line without arguments. must says what they must be.
func SomeArguments(must string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("%s", must)
		}
		return nil
	}
}
