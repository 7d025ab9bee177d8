package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/door/terminal"
)

// NewManualCommand returns the hidden command `manual` of a tree: it writes the manual page of each command into a
// folder, for packages.
func NewManualCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "manual DIR",
		Short:  "Write the manual pages",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writePages(cmd.Root(), args[0])
		},
	}
}

// writePages writes the page of a command and of those below it. Help and completion are described in no page of
// their own.
func writePages(cmd *cobra.Command, dir string) error {
	name := filepath.Join(dir, pageName(cmd)+".1")
	if err := os.WriteFile(name, []byte(page(cmd)), 0o644); err != nil {
		return err
	}
	for _, below := range documented(cmd) {
		if err := writePages(below, dir); err != nil {
			return err
		}
	}
	return nil
}

func documented(cmd *cobra.Command) (all []*cobra.Command) {
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() && below.Name() != "completion" {
			all = append(all, below)
		}
	}
	return all
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page returns a manual page in the language of man(7). What help prints in lines of its own keeps its lines.
func page(cmd *cobra.Command) string {
	var b strings.Builder
	root, made := cmd.Root().Name(), thisBuild()
	day, _, _ := strings.Cut(made.Date, "T")
	fmt.Fprintf(&b, ".TH %q 1 %q %q %q\n", strings.ToUpper(pageName(cmd)), day, root+" "+made.Version, root)
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, ".SH %s\n%s\n", title, text)
		}
	}
	section("NAME", roff(pageName(cmd))+` \- `+roff(cmd.Short))
	use := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		use = cmd.CommandPath() + " COMMAND"
	}
	section("SYNOPSIS", ".nf\n"+roff(use)+"\n.fi")
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	section("DESCRIPTION", prose(text))
	below := documented(cmd)
	var list []string
	for _, c := range below {
		list = append(list, fmt.Sprintf(".TP\n.B %s\n%s", roff(c.Name()), roff(c.Short)))
	}
	section("COMMANDS", strings.Join(list, "\n"))
	if cmd.HasParent() { // The program itself has none but those that ask for help and the version.
		section("OPTIONS", asIs(cmd.LocalFlags()))
	}
	if cmd.Example != "" {
		section("EXAMPLES", ".nf\n"+roff(cmd.Example)+"\n.fi")
	}
	if cmd.HasParent() {
		below = append([]*cobra.Command{cmd.Parent()}, below...)
	}
	var also []string
	for _, c := range below {
		also = append(also, ".BR "+roff(pageName(c))+" (1)")
	}
	section("SEE ALSO", strings.Join(also, ",\n"))
	return b.String()
}

// prose fills paragraphs, and keeps the lines of those that are indented.
func prose(text string) string {
	var all []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(paragraph, " ") {
			paragraph = ".nf\n" + roff(paragraph) + "\n.fi"
		} else {
			paragraph = roff(paragraph)
		}
		all = append(all, paragraph)
	}
	return strings.Join(all, "\n.PP\n")
}

func asIs(flags *pflag.FlagSet) string {
	text := strings.TrimRight(flags.FlagUsagesWrapped(terminal.Width), "\n")
	if text == "" {
		return ""
	}
	return ".nf\n" + roff(text) + "\n.fi"
}

// roff escapes what man(7) takes for its own: backslashes, hyphens, which would become another character, and dots
// and quotes at the beginning of a line.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
