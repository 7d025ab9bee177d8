package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
)

// A page has what help says; what man(7) would take for its own is escaped; hidden commands have no page.
func TestManual(t *testing.T) {
	version, commit, date = "0.1.0", "0123456789ab", "2026-11-29T21:39:01Z"
	defer func() { version, commit, date = "", "", "" }()
	tree := NewTree("p", "Do things", "p does things.\n\n  p do --now     at once\n\n.p is a file, and \\ is kept.")
	do := &cobra.Command{Use: "do THING", Short: "Do one thing", Example: "  p do it",
		Run: func(*cobra.Command, []string) {}}
	do.Flags().Bool("now", false, "at once")
	tree.Add("", do, &cobra.Command{Use: "secret", Hidden: true, Run: func(*cobra.Command, []string) {}})
	dir := t.TempDir()
	if err := writePages(tree.root, dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"p.1": `.TH "P" 1 "2026-11-29" "p 0.1.0" "p"
.SH NAME
p \- Do things
.SH SYNOPSIS
.nf
p COMMAND
.fi
.SH DESCRIPTION
p does things.
.PP
.nf
  p do \-\-now     at once
.fi
.PP
\&.p is a file, and \e is kept.
.SH COMMANDS
.TP
.B do
Do one thing
.SH SEE ALSO
.BR p\-do (1)
`,
		"p-do.1": `.TH "P-DO" 1 "2026-11-29" "p 0.1.0" "p"
.SH NAME
p\-do \- Do one thing
.SH SYNOPSIS
.nf
p do THING [flags]
.fi
.SH DESCRIPTION
Do one thing.
.SH OPTIONS
.nf
      \-\-now   at once
.fi
.SH EXAMPLES
.nf
  p do it
.fi
.SH SEE ALSO
.BR p (1)
`} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	if pages, _ := filepath.Glob(filepath.Join(dir, "*")); len(pages) != 2 {
		t.Errorf("pages: %v", pages)
	}
}
