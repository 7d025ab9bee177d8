// Package mapping has the command that calls a function with each line of its input on the executors of a pool.
package mapping

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/jobs"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
)

const mapLong = `Run a command once with each item, in a container each, and print what it
prints when it ends; {} becomes the item, {.} the item without extension, {/}
its last part, {//} its folder and {#} its number. Items follow :::, or are
lines of the files after ::::, or of standard input. What fails is listed at the
end, with exit code 1. See docs/reference/map.md.

With --pool, call a function in processes that stay warm: MODULE:FUNCTION of
Python, or one of a pool of Go. It gets a line as text, with --json parsed, with
--bytes as it is; results are printed in the order of the lines. With --resume,
results are kept in a file, and what has one is not run again. --fresh begins
with new processes. See docs/pools.md.`

type options struct {
	each   jobs.Each
	place  place.Place
	pool   string
	path   string
	resume string
	name   string
	weight float64
	null   bool
	json   bool
	bytes  bool
	text   bool
	fresh  bool
	stop   bool
	quiet  bool
}

// Command returns the command map.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "map [flags] -- COMMAND {} [::: ITEM...] | --pool POOL FUNCTION [FILE]",
		Short: "Run a command, or call a function, with each of many items",
		Long:  mapLong,
		Example: `  bellows map -- gzip -9 {} ::: *.log
  ls *.ppm | bellows map -k --tag -- mogrify -format jpg {}
  bellows map --resume jobs.log -- 'zcat {} | sort > {.}.sorted' ::: *.gz
  ls *.csv | bellows map --pool stats report:summarize
  bellows map --pool stats --json -r report:title rows.jsonl > titles.txt
  bellows map --pool stats --resume done.journal report:slow inputs.txt
  find . -name '*.png' -print0 | bellows map --pool pictures --null draw:resize`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.pool == "" && cmd.ArgsLenAtDash() == 0 {
				return nil
			}
			return someInput(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.pool, "pool", "", "`name` of the pool")
	_ = cmd.RegisterFlagCompletionFunc("pool", o.place.CompletePools())
	f.StringVar(&o.path, "path", ".", "`folder` of the module, in which the function runs")
	f.BoolVar(&o.json, "json", false, "each line is a JSON value")
	f.BoolVar(&o.bytes, "bytes", false, "lines and results are bytes, not JSON")
	f.BoolVarP(&o.null, "null", "0", false, "inputs end with a zero byte instead of a line feed")
	f.BoolVarP(&o.text, "raw-output", "r", false, "print results that are texts without quotes")
	f.BoolVar(&o.fresh, "fresh", false, "run in processes that have run nothing else")
	f.StringVar(&o.resume, "resume", "", "`file` that keeps the results, for the same command later")
	f.BoolVar(&o.stop, "stop-on-failure", false, "end all calls when one has failed")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show neither progress nor what functions print")
	f.StringVar(&o.name, "name", "", "`name` in the list of applications; default: the function")
	f.Var(flags.Number(&o.weight, 0.001, 1000), "weight",
		"share of the executors relative to other applications; default 1")
	o.each.Flags(f)
	o.place.Flags(cmd, false)
	return cmd
}

// someInput refuses other arguments than a function and perhaps a file.
func someInput(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return command.Usagef("function: must be given, as MODULE:FUNCTION")
	case len(args) > 2:
		return command.Usagef("file: must be at most one, but %d were given", len(args)-1)
	}
	return nil
}

// check returns a mistake of the user, if there is one, and completes the options.
func (o *options) check(function string) (err error) {
	switch {
	case o.pool == "":
		return command.Usagef("pool: must be given, by --pool")
	case strings.ContainsAny(o.pool, "/?#"):
		return command.Usagef("pool %q: must be the name of a pool", o.pool)
	case function == "":
		return command.Usagef("function %q: must be MODULE:FUNCTION", function)
	case o.json && o.bytes:
		return command.Usagef("json, bytes: only one of them can be given")
	case o.text && o.bytes:
		return command.Usagef("raw-output, bytes: only one of them can be given")
	}
	o.name = cmp.Or(o.name, function)
	if o.path, err = filepath.Abs(o.path); err != nil {
		return command.Usagef("path: %w", err)
	}
	return nil
}

// form says what inputs and results are.
func (o *options) form() string {
	switch {
	case o.bytes:
		return "bytes"
	case o.json:
		return "json"
	}
	return "text"
}
