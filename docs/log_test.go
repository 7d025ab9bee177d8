package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tables of messages in log.md have every message above DEBUG of the driver, the daemon and the keeper of the
// memory, and no message that the daemon does not log.
func TestMessagesOfTheLog(t *testing.T) {
	documented := map[string]bool{}
	for line := range strings.Lines(read(t, "reference/log.md")) {
		first, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !row || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			documented[m[1]] = true
		}
	}
	logged := map[string]bool{}
	for _, dir := range []string{"live", "door/daemon", "pool", "node/agent", "node/keeper", "door/server"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, message := range messagesIn(t, path) {
				logged[message] = true
				if (slices.Contains([]string{"live", "door/daemon", "pool"}, dir) || filepath.Base(path) == "keeper.go") &&
					!documented[message] {
					t.Errorf("%s logs %q, which log.md does not have", path, message)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for message := range documented {
		if !logged[message] {
			t.Errorf("log.md has the message %q, which the daemon does not log", message)
		}
	}
	if len(logged) < 50 {
		t.Errorf("found only %d messages", len(logged))
	}
}

// messagesIn returns the messages above DEBUG that a file logs. A message in a variable has all values that the file
// assigns to a variable of that name, except for the one that the keeper logs at DEBUG.
func messagesIn(t *testing.T, path string) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	assigned := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i := range a.Lhs {
				if name, ok := a.Lhs[i].(*ast.Ident); ok {
					assigned[name.Name] = append(assigned[name.Name], text(a.Rhs[i])...)
				}
			}
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		place, logs := map[string]int{"Info": 0, "Warn": 0, "Error": 0, "Log": 2}[method.Sel.Name]
		if on, ok := method.X.(*ast.SelectorExpr); !logs || !ok || !strings.EqualFold(on.Sel.Name, "log") {
			return true
		}
		message := call.Args[place]
		if name, ok := message.(*ast.Ident); ok {
			all = append(all, slices.DeleteFunc(assigned[name.Name], func(s string) bool { return s == "memory action" })...)
			return true
		}
		found := text(message)
		if len(found) == 0 {
			t.Errorf("%s: a message of the log is neither a string nor a variable", path)
		}
		all = append(all, found...)
		return true
	})
	return all
}

// text returns the value of a string in the code, or of several that are added; nothing of another expression.
func text(e ast.Expr) []string {
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		first, second := text(sum.X), text(sum.Y)
		if len(first) == 0 || len(second) == 0 {
			return nil
		}
		return []string{first[0] + second[0]}
	}
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return nil
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return nil
	}
	return []string{value}
}
