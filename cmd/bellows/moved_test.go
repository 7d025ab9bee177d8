package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/door/cli/command"
)

// oldNames finds, in the rows of the tables of docs/renamed.md, the command lines that no longer exist. A row's first
// cell has a command in backquotes, with the names of its commands or flags; further backquotes of the cell are more
// names of the same command. Rows below the heading "old flag" are flags of bellows simulate.
func oldNames(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/renamed.md")
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	heading := ""
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			heading = ""
			continue
		}
		cell := strings.TrimSpace(cells[1])
		if heading == "" {
			heading = cell
		}
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1)
		if heading != "old" && heading != "old flag" || len(names) == 0 || strings.Contains(cell, "--json`") {
			continue // not a name, or an output that has changed
		}
		base := []string{"simulate"}
		for _, name := range names {
			words := strings.Fields(name[1])
			if words[0] == "bellows" {
				words = words[1:]
				base = words[:len(words)-1]
				if i := indexOfFlag(words); i >= 0 {
					base = words[:i]
				}
			} else {
				words = append(base[:len(base):len(base)], words...)
			}
			all = append(all, words)
		}
	}
	return all
}

func indexOfFlag(words []string) int {
	for i, w := range words {
		if strings.HasPrefix(w, "--") {
			return i
		}
	}
	return -1
}

// TestRenamed runs every old command and flag of docs/renamed.md: each exits with 2 and one sentence that names the
// new name.
func TestRenamed(t *testing.T) {
	t.Setenv("BELLOWS_STATE", t.TempDir())
	all := oldNames(t)
	if len(all) < 50 {
		t.Errorf("docs/renamed.md names %d old commands and flags, want at least 50", len(all))
	}
	for _, args := range all {
		var out, problem bytes.Buffer
		code := newTree().Execute(args, command.Streams{In: strings.NewReader(""), Out: &out, Err: &problem})
		text := problem.String()
		if code != command.WrongUsage || out.Len() > 0 || strings.Count(text, "\n") != 1 ||
			!regexp.MustCompile(`has moved: use|is now|is gone: `).MatchString(text) {
			t.Errorf("bellows %s: exit code %d, want 2 and one sentence that names the new name:\n%s%s", strings.Join(args, " "), code, out.String(), text)
		}
	}
}
