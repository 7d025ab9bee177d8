package architecture

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unnamed are expressions that leave a party, an amount or an antecedent unnamed, and what to write instead.
var unnamed = []struct{ expression, instead string }{
	{`so (much|many)`, "the amount"},
	{`(is|are|was|were) told`, `"is notified", "knows", "is reported"`},
	{`(some|no)body`, "the party: the owner, no container, ..."},
	{`(by|of|for) whom`, "the party"},
	{`than nobody`, "the party"},
	{`lest`, `"so that"`},
}

// TestLanguage: comments, messages and documents name parties and amounts. Tests and recorded results are free.
func TestLanguage(t *testing.T) {
	var all []string
	for _, v := range unnamed {
		all = append(all, `\b`+v.expression+`\b`)
	}
	found := regexp.MustCompile(`(?i)` + strings.Join(all, "|"))
	root := filepath.Join("..", "..")
	const stored = "../../studies/experiments/pufferfish/tables.go" // its words are in stored results
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "results" || name == "bin" || strings.HasPrefix(name, ".") &&
			path != root):
			return filepath.SkipDir
		case entry.IsDir() || name == "results.md" || strings.HasSuffix(name, "_test.go") || filepath.Ext(name) != ".go" &&
			filepath.Ext(name) != ".md":
			return nil
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		for n := 1; lines.Scan(); n++ {
			if got := found.FindString(lines.Text()); got != "" && filepath.ToSlash(path) != stored {
				t.Errorf("%s:%d: %q: write %s", path, n, got, insteadOf(got))
			}
		}
		return lines.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"So much of it": "the amount",
		"a job that is told": `"is notified", "knows", "is reported"`, "the foretold": ""} {
		if got := found.FindString(text); (got != "") != (want != "") || got != "" && insteadOf(got) != want {
			t.Errorf("%q: found %q", text, got)
		}
	}
}

// insteadOf returns what to write instead of an expression.
func insteadOf(text string) string {
	for _, v := range unnamed {
		if regexp.MustCompile(`(?i)^` + v.expression + `$`).MatchString(text) {
			return v.instead
		}
	}
	return ""
}
