package architecture

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestProject checks the project. Files that need a build tag are checked with the tags that the project uses.
func TestProject(t *testing.T) {
	packages := load(t)
	if len(packages) < 10 {
		t.Fatalf("only %d packages were found", len(packages))
	}
	broken, err := check(packages)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		t.Error(b)
	}
	for _, w := range wide {
		in, name := path.Split(strings.Replace(w.path, ".", "/", 1))
		if !slices.ContainsFunc(packages, func(p pkg) bool { return p.path+"/" == in && p.declares(name) }) {
			t.Errorf("%s: has a row and does not exist", w.path)
		}
	}
	for _, f := range slices.Concat(folders, narrower, tests) {
		if !slices.ContainsFunc(packages, func(p pkg) bool { return below(p.path, f.path) }) {
			t.Errorf("%s: has a row and does not exist", f.path)
		}
	}
}

// declares reports whether a package declares a struct.
func (p *pkg) declares(name string) bool {
	return slices.ContainsFunc(p.files, func(s source) bool { return strings.Contains(s.text, "type "+name+" struct {") })
}

// load reads all packages of the module.
func load(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles",
		"./...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var listed struct {
			ImportPath, Dir                                    string
			GoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&listed); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		p := pkg{path: strings.TrimPrefix(strings.TrimPrefix(listed.ImportPath, module), "/")}
		// Ignored files are those for other systems and build tags: the rules apply to them, too.
		for _, name := range slices.Concat(listed.GoFiles, listed.IgnoredGoFiles, listed.TestGoFiles, listed.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(listed.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files := &p.files
			if strings.HasSuffix(name, "_test.go") {
				files = &p.tests
			}
			*files = append(*files, source{filepath.Join(p.path, name), string(text)})
		}
		packages = append(packages, p)
	}
}

// names returns n fields of a struct.
func names(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "f%d int; ", i)
	}
	return out.String()
}

// TestRules breaks each rule once.
func TestRules(t *testing.T) {
	const doc = "// Package p is an example.\n"
	part := doc + "package heap\ntype A struct { B; b, c B; d *B }\ntype B struct { " + names(13) + "}\n"
	ours := func(path string) string { return `import "` + module + "/" + path + `"` }
	for _, c := range []struct {
		name, path, text string
		want             string // part of the sentence; empty if the example is good
	}{
		{"good core", "core/cluster", doc + "package cluster\n" + ours("core/resource") +
			"\nimport \"time\"\nvar _ time.Duration = resource.X", ""},
		{"upwards", "core/resource", doc + "package resource\n" + ours("core/cluster"),
			"imports core/cluster, but may import nothing else of this module"},
		{"mechanisms", "core/memory", doc + "package memory\n" + ours("core/leveling"), "imports core/leveling"},
		{"mechanisms", "core/leveling", doc + "package leveling\n" + ours("core/profile"), "imports core/profile"},
		{"policy asks the engine", "core/policy", doc + "package policy\n" + ours("core/engine"), "imports core/engine"},
		{"policy sees files", "core/policy", doc + "package policy\n" + ours("format/workload"), "imports format/workload"},
		{"engine knows live", "core/engine", doc + "package engine\n" + ours("live"), "imports live"},
		{"sim, live", "sim", doc + "package sim\n" + ours("live"), "imports live"},
		{"live, sim", "live", doc + "package live\n" + ours("sim"), "imports sim"},
		{"live, agent", "live", doc + "package live\n" + ours("node/agent"), "imports node/agent"},
		{"agent, live", "node/agent", doc + "package agent\n" + ours("live"), "imports live"},
		{"agent, policy", "node/agent", doc + "package agent\n" + ours("core/policy"), "imports core/policy"},
		{"keeper, agent", "node/keeper", doc + "package keeper\n" + ours("node/agent"), "imports node/agent"},
		{"server, agent", "door/server", doc + "package server\n" + ours("node/agent"), "imports node/agent"},
		{"server, engine", "door/server", doc + "package server\n" + ours("core/engine"), "imports core/engine"},
		{"cgroup knows jobs", "node/cgroup", doc + "package cgroup\n" + ours("core/cluster"), "imports core/cluster"},
		{"harness outside of tests", "node/agent", doc + "package agent\n" + ours("internal/guest"), "only tests do"},
		{"harness in the command", "cmd/bellows", doc + "package main\n" + ours("internal/guest"), "only tests do"},
		{"command as a library", "door/server", doc + "package server\n" + ours("cmd/bellows"), "imports cmd/bellows"},
		{"demo as a library", "live", doc + "package live\n" + ours("cmd/bellows/internal/demo"),
			"imports cmd/bellows/internal/demo"},
		{"command wires", "cmd/bellows", doc + "package main\n" + ours("sim") + "\n" + ours("live"), ""},
		{"many fields", "core/heap", doc + "package heap\ntype A struct { " + names(26) + "}", "A has 26 fields"},
		{"many fields of a nested struct", "core/heap", doc + "package heap\ntype A struct { B; b, c B; D[int] }\n" +
			"type B struct { " + names(8) + "}\ntype D[T any] struct { a, b T }", "A has 26 fields"},
		{"many fields of a struct without a name", "core/heap", doc + "package heap\ntype A struct { a, b struct { " +
			names(13) + "} }", "core/heap/x.go:3: A has 26 fields"},
		{"a part with methods", "core/heap", part + "func (b *B) do() int { return b.f1 }\n" +
			"func newB() (*B, error) { return &B{f1: 1}, nil }\nvar a = A{b: B{}}", ""},
		{"a part that others read", "core/heap", part + "func (*B) do() {}\nfunc (a *A) do() int { return a.b.f1 }",
			"A has 40 fields"},
		{"a part that others read as their own", "core/heap", part + "func (*B) do() {}\nvar a A\nvar x = a.f1",
			"A has 40 fields"},
		{"a part that others make", "core/heap", part + "func (*B) do() {}\nfunc f(a *A) { a.b = B{f1: 1} }",
			"A has 40 fields"},
		{"a noun", "core/heap", strings.ReplaceAll(part, "f", "F") + "func (B) do() {}\nfunc f(a *A) int { return a.b.F1 }",
			""},
		{"a row for a narrow type", "live/api", doc + "package api\ntype Task struct{}", "remove the row"},
		{"library in the core", "core/timeline", doc + "package timeline\nimport \"github.com/spf13/cobra\"",
			"standard library only"},
		{"library outside of the core", "door/server", doc + "package server\nimport \"github.com/spf13/cobra\"", ""},
		{"os", "core/profile", doc + "package profile\nimport \"os\"", "imports os"},
		{"below os", "core/engine", doc + "package engine\nimport \"os/exec\"", "imports os/exec"},
		{"net", "core/cluster", doc + "package cluster\nimport \"net/http\"", "imports net/http"},
		{"os outside of the core", "format/workload", doc + "package workload\nimport \"os\"", ""},
		{"locks", "core/policy", doc + "package policy\nimport \"sync\"", "imports sync"},
		{"log", "core/policy", doc + "package policy\nimport \"log/slog\"", "imports log/slog"},
		{"goroutine", "core/engine", doc + "package engine\nfunc f() { go f() }", "core/engine/x.go:3 starts a goroutine"},
		{"goroutine outside of the core", "live", doc + "package live\nfunc f() { go f() }", ""},
		{"clock", "core/policy", doc + "package policy\nimport \"time\"\nvar x = time.Now()", "reads the clock (time.Now)"},
		{"clock as a value", "core/policy", doc + "package policy\nimport \"time\"\nvar x = time.Since",
			"reads the clock (time.Since)"},
		{"clock under another name", "core/engine", doc + "package engine\nimport c \"time\"\nfunc f() { c.Sleep(1) }",
			"reads the clock (time.Sleep)"},
		{"clock without a name", "sim", doc + "package sim\nimport . \"time\"\nvar x = Now()",
			"imports time without its name"},
		{"timer", "sim", doc + "package sim\nimport \"time\"\nvar x = time.Tick(1)", "reads the clock (time.Tick)"},
		{"something called time", "core/policy",
			doc + "package policy\nfunc f(time struct{ Now int }) int { return time.Now }", ""},
		{"clock outside of the core", "live", doc + "package live\nimport \"time\"\nvar x = time.Now()", ""},
		{"global randomness", "format/workload", doc + "package workload\nimport \"math/rand/v2\"\nvar x = rand.IntN(6)",
			"global randomness (rand.IntN)"},
		{"global randomness", "core/profile",
			doc + "package profile\nimport \"math/rand\"\nfunc f() { rand.Shuffle(1, nil) }",
			"global randomness (rand.Shuffle)"},
		{"seeded randomness", "format/workload",
			doc + "package workload\nimport \"math/rand/v2\"\nvar x = rand.New(rand.NewPCG(1, 2)).IntN(6)", ""},
		{"a file behind the back", "node/agent", doc + "package agent\nimport \"os\"\nvar x = os.WriteFile",
			"uses os.WriteFile"},
		{"a file that is read", "live/store", doc + "package store\nimport \"os\"\nvar x = os.ReadFile", ""},
		{"a file of another package", "door/server", doc + "package server\nimport \"os\"\nvar x = os.Rename", ""},
		{"truth in live", "live", doc + "package live\n" + ours("format/workload") +
			"\nfunc f(j workload.Job) any { return j.Truth }", "uses Truth"},
		{"truth in the command", "cmd/bellows", doc + "package main\n" + ours("format/workload") +
			"\nvar x = workload.Job{Truth: nil}", "uses Truth"},
		{"truth by its type", "door/server", doc + "package server\n" + ours("format/workload") +
			"\nvar x workload.StageTruth", "uses StageTruth"},
		{"truth in sim", "sim", doc + "package sim\n" + ours("format/workload") +
			"\nfunc f(j workload.Job) any { return j.Truth }", ""},
		{"amounts by position", "sim", doc + "package sim\n" + ours("core/resource") + "\nvar x = resource.Vector{1, 2}",
			"x.go:4 names amounts of resources by position"},
		{"amounts by number", "sim", doc + "package sim\n" + ours("core/resource") +
			"\nvar x = [resource.NumKinds]int{1: 2}", "names amounts of resources by position"},
		{"amounts by name", "sim", doc + "package sim\n" + ours("core/resource") +
			"\nvar x = resource.Vector{resource.CPU: 1, resource.Disk: 2}", ""},
		{"all kinds", "live", doc + "package live\n" + ours("core/resource") +
			"\nvar x = []resource.Kind{resource.CPU, resource.Memory, resource.Disk}", "lists kinds of resources"},
		{"two special kinds", "live", doc + "package live\n" + ours("core/resource") +
			"\nvar x = []resource.Kind{resource.CPU, resource.Memory}", ""},
		{"a kind by number", "live", doc + "package live\n" + ours("core/resource") + "\nvar x = resource.Kind(1)",
			"makes a kind of resource from a number"},
		{"a component by number", "live", doc + "package live\nfunc f(n node) any { return n.Capacity[0] }",
			"indexes Capacity by a number"},
		{"a vector in package resource", "core/resource", doc + "package resource\nvar x = Vector{1, 2}", ""},
		{"no comment", "sim/sweep", "package sweep", "has no package comment"},
		{"licence for a comment", "sim/sweep", "// Copyright somebody\n\npackage sweep", "has no package comment"},
		{"no row", "scheduler", doc + "package scheduler", "is in no folder of the table"},
		{"vague name", "live/util", doc + "package util", "is called util"},
		{"vague folder", "sim/common", doc + "package simulation", "is called common"},
		{"vague package", "sim/x", doc + "package helpers", "is called helpers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken, err := check([]pkg{{path: c.path, files: []source{{c.path + "/x.go", c.text}}}})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(broken) > 0:
				t.Errorf("a good example breaks a rule: %q", broken)
			case c.want != "" && !slices.ContainsFunc(broken, func(b string) bool { return strings.Contains(b, c.want) }):
				t.Errorf("broken rules are %q, want one with %q", broken, c.want)
			}
		})
	}
}

func TestTwoPackageComments(t *testing.T) {
	broken, err := check([]pkg{{path: "sim/sweep", files: []source{
		{"sim/sweep/a.go", "// Package sweep is one thing.\npackage sweep"},
		{"sim/sweep/b.go", "// Package sweep is another.\npackage sweep"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(broken) != 1 || !strings.Contains(broken[0], "a.go and b.go") {
		t.Errorf("broken rules are %q", broken)
	}
}

// TestImportsOfTests: tests import what their package may, package internal, and what the table of tests says.
func TestImportsOfTests(t *testing.T) {
	for _, c := range []struct {
		path, imported string
		may            bool
	}{
		{"core/memory", "core/cluster", true}, {"core/memory", "core/memory", true},
		{"core/memory", "internal/testfile", true}, {"core/memory", "sim", false},
		{"core/policy", "sim", true}, {"core/policy", "live", false}, {"scenarios", "sim", true},
		{"docs", "node/agent", false},
		{"sim", "live", false}, {"nowhere", "core/cluster", false}, {"cmd/bellows", "node/agent", true},
	} {
		text := "package p_test\nimport \"" + module + "/" + c.imported + "\""
		broken, err := check([]pkg{{path: c.path, tests: []source{{c.path + "/x_test.go", text}}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(broken) == 0 != c.may {
			t.Errorf("tests of %s import %s: %q", c.path, c.imported, broken)
		}
	}
}

// TestTable checks the tables themselves: every row has a reason, folders at the top import only those above them, so
// that no import runs back up, and no other row gives a package a right that it has.
func TestTable(t *testing.T) {
	var above []string
	for _, f := range folders {
		if slices.Contains(above, f.path) {
			t.Errorf("%s: has two rows", f.path)
		}
		for _, m := range f.may {
			if !slices.Contains(above, m) {
				t.Errorf("%s: may import %s, which does not stand above it", f.path, m)
			}
		}
		above = append(above, f.path)
	}
	for _, f := range slices.Concat(folders, narrower, tests) {
		if f.reason == "" {
			t.Errorf("%s: has no reason", f.path)
		}
	}
	for _, w := range wide {
		if w.reason == "" || w.most <= mostFields {
			t.Errorf("%s: has no reason, or no more fields than any type may have", w.path)
		}
	}
	for _, f := range narrower {
		top, _, _ := strings.Cut(f.path, "/")
		for _, m := range f.may {
			if !row(folders, top).allows(m) {
				t.Errorf("%s: may import %s, which its folder may not", f.path, m)
			}
		}
	}
	for _, f := range tests {
		if r := rowOf(f.path); r != nil && slices.ContainsFunc(f.may, r.allows) {
			t.Errorf("tests of %s: have a right that the package has", f.path)
		}
	}
}
