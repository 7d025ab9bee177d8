package architecture

import (
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the length of the longest line of a Go file; a tab counts as one column.
const columns = 120

// TestColumns: no line of a Go file is too long to be read beside another one. Lines with a raw string are free: a
// text in it, or the tag of a field, cannot be broken.
func TestColumns(t *testing.T) {
	list := exec.Command("git", "ls-files", "*.go")
	list.Dir = filepath.Join("..", "..")
	files, err := list.Output()
	if err != nil {
		t.Skipf("needs a clone: %v", err)
	}
	for _, path := range strings.Fields(string(files)) {
		text, err := os.ReadFile(filepath.Join(list.Dir, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range tooLong(text) {
			t.Errorf("%s:%d: has more than %d columns", path, line, columns)
		}
	}
	example := "package p\nvar x = " + strings.Repeat("y", 112) + "\nvar z = " + strings.Repeat("y", 113) + "\n"
	if got := tooLong([]byte(example)); !slices.Equal(got, []int{3}) {
		t.Errorf("found lines %v, want the third", got)
	}
}

// tooLong returns the numbers of the lines of a Go file that are too long.
func tooLong(text []byte) (lines []int) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	free := map[int]bool{}
	for {
		at, of, literal := s.Scan()
		if of == token.EOF {
			break
		}
		if of == token.STRING && strings.HasPrefix(literal, "`") {
			for first, n := file.Line(at), strings.Count(literal, "\n"); n >= 0; n-- {
				free[first+n] = true
			}
		}
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > columns && !free[number] {
			lines = append(lines, number)
		}
	}
	return lines
}
