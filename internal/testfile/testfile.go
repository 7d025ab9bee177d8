// Package testfile contains the texts that tests compare with: golden files, and the examples of the documentation.
package testfile

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// Rewriting reports whether golden files are written anew: -rewrite was given.
func Rewriting() bool { return *rewrite }

// Golden compares got with the file of that name in testdata. With -rewrite it writes the file.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; if that is right, run the test with -rewrite. Got:\n%s", path, got)
	}
}

// Examples returns the code blocks of a page of the documentation in the given language; there is at least one.
func Examples(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, part := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		all = append(all, block)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no example in %s", page, language)
	}
	return all
}

// Undocumented returns the names that begin no row of a table in a section of a page of the documentation: no first
// cell of a row contains them.
func Undocumented(t *testing.T, page, section string, names []string) (missing []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", page, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var cells strings.Builder
	for line := range strings.Lines(rest) {
		if row, isRow := strings.CutPrefix(line, "|"); isRow {
			cell, _, _ := strings.Cut(row, "|")
			cells.WriteString(cell)
		}
	}
	for _, name := range names {
		if !strings.Contains(cells.String(), "`"+name+"`") {
			missing = append(missing, name)
		}
	}
	return missing
}
