package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
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
	for _, f := range slices.Concat(folders, tests) {
		if !slices.ContainsFunc(packages, func(p pkg) bool { return p.path == f.path }) {
			t.Errorf("%s: has a row and does not exist", f.path)
		}
	}
}

// load reads all packages of the module.
func load(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
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

// TestRules breaks each rule once.
func TestRules(t *testing.T) {
	const doc = "// Package p is an example.\n"
	ours := func(path string) string { return `import "` + module + "/" + path + `"` }
	for _, c := range []struct {
		name, path, text string
		want             string // part of the sentence; empty if the example is good
	}{
		{"good core", "cluster", doc + "package cluster\n" + ours("resource") + "\nimport \"time\"\nvar _ time.Duration = resource.X", ""},
		{"numeric library", "profile", doc + "package profile\nimport \"gonum.org/v1/gonum/stat\"", ""},
		{"upwards", "resource", doc + "package resource\n" + ours("cluster"), "imports cluster, but may import nothing of this module"},
		{"mechanisms", "memory", doc + "package memory\n" + ours("leveling"), "imports leveling"},
		{"mechanisms", "leveling", doc + "package leveling\n" + ours("profile"), "imports profile"},
		{"policy asks the engine", "policy", doc + "package policy\n" + ours("engine"), "imports engine"},
		{"policy sees files", "policy", doc + "package policy\n" + ours("workload"), "imports workload"},
		{"engine knows live", "engine", doc + "package engine\n" + ours("live"), "imports live"},
		{"sim, live", "sim", doc + "package sim\n" + ours("live"), "imports live"},
		{"live, sim", "live", doc + "package live\n" + ours("sim"), "imports sim"},
		{"live, agent", "live", doc + "package live\n" + ours("agent"), "imports agent"},
		{"agent, live", "agent", doc + "package agent\n" + ours("live"), "imports live"},
		{"agent, policy", "agent", doc + "package agent\n" + ours("policy"), "imports policy"},
		{"server, agent", "server", doc + "package server\n" + ours("agent"), "imports agent"},
		{"server, engine", "server", doc + "package server\n" + ours("engine"), "imports engine"},
		{"cgroup knows jobs", "cgroup", doc + "package cgroup\n" + ours("cluster"), "imports cluster"},
		{"harness outside of tests", "agent", doc + "package agent\n" + ours("guest"), "only tests do"},
		{"harness in the command", "cmd/bellows", doc + "package main\n" + ours("guest"), "only tests do"},
		{"command as a library", "server", doc + "package server\n" + ours("cmd/bellows"), "a command is for people"},
		{"demo as a library", "live", doc + "package live\n" + ours("cmd/bellows/internal/demo"), "imports cmd/bellows/internal/demo"},
		{"study in the command", "cmd/bellows", doc + "package main\n" + ours("lab/chart"), "studies use the resource manager"},
		{"study in a package", "sim", doc + "package sim\n" + ours("lab/experiments"), "studies use the resource manager"},
		{"study in a study", "lab/comparison", doc + "package comparison\n" + ours("lab/chart"), ""},
		{"study in its command", "cmd/bellows-lab", doc + "package main\n" + ours("lab/experiments"), ""},
		{"command wires", "cmd/bellows", doc + "package main\n" + ours("sim") + "\n" + ours("live"), ""},
		{"library in the core", "timeline", doc + "package timeline\nimport \"github.com/spf13/cobra\"", "standard library and numeric libraries only"},
		{"library outside of the core", "server", doc + "package server\nimport \"github.com/spf13/cobra\"", ""},
		{"os", "profile", doc + "package profile\nimport \"os\"", "imports os"},
		{"below os", "engine", doc + "package engine\nimport \"os/exec\"", "imports os/exec"},
		{"net", "cluster", doc + "package cluster\nimport \"net/http\"", "imports net/http"},
		{"os outside of the core", "workload", doc + "package workload\nimport \"os\"", ""},
		{"locks", "policy", doc + "package policy\nimport \"sync\"", "imports sync"},
		{"log", "policy", doc + "package policy\nimport \"log/slog\"", "imports log/slog"},
		{"goroutine", "engine", doc + "package engine\nfunc f() { go f() }", "engine/x.go:3 starts a goroutine"},
		{"goroutine outside of the core", "live", doc + "package live\nfunc f() { go f() }", ""},
		{"clock", "policy", doc + "package policy\nimport \"time\"\nvar x = time.Now()", "reads the clock (time.Now)"},
		{"clock as a value", "policy", doc + "package policy\nimport \"time\"\nvar x = time.Since", "reads the clock (time.Since)"},
		{"clock under another name", "engine", doc + "package engine\nimport c \"time\"\nfunc f() { c.Sleep(1) }", "reads the clock (time.Sleep)"},
		{"clock without a name", "sim", doc + "package sim\nimport . \"time\"\nvar x = Now()", "imports time without its name"},
		{"timer", "sim", doc + "package sim\nimport \"time\"\nvar x = time.Tick(1)", "reads the clock (time.Tick)"},
		{"something called time", "policy", doc + "package policy\nfunc f(time struct{ Now int }) int { return time.Now }", ""},
		{"clock outside of the core", "live", doc + "package live\nimport \"time\"\nvar x = time.Now()", ""},
		{"global randomness", "workload", doc + "package workload\nimport \"math/rand/v2\"\nvar x = rand.IntN(6)", "global randomness (rand.IntN)"},
		{"global randomness", "profile", doc + "package profile\nimport \"math/rand\"\nfunc f() { rand.Shuffle(1, nil) }", "global randomness (rand.Shuffle)"},
		{"seeded randomness", "workload", doc + "package workload\nimport \"math/rand/v2\"\nvar x = rand.New(rand.NewPCG(1, 2)).IntN(6)", ""},
		{"a file behind the back", "agent", doc + "package agent\nimport \"os\"\nvar x = os.WriteFile", "uses os.WriteFile"},
		{"a file that is read", "store", doc + "package store\nimport \"os\"\nvar x = os.ReadFile", ""},
		{"a file of another package", "server", doc + "package server\nimport \"os\"\nvar x = os.Rename", ""},
		{"truth in live", "live", doc + "package live\n" + ours("workload") + "\nfunc f(j workload.Job) any { return j.Truth }", "uses Truth"},
		{"truth in the command", "cmd/bellows", doc + "package main\n" + ours("workload") + "\nvar x = workload.Job{Truth: nil}", "uses Truth"},
		{"truth by its type", "server", doc + "package server\n" + ours("workload") + "\nvar x workload.StageTruth", "uses StageTruth"},
		{"truth in sim", "sim", doc + "package sim\n" + ours("workload") + "\nfunc f(j workload.Job) any { return j.Truth }", ""},
		{"amounts by position", "sim", doc + "package sim\n" + ours("resource") + "\nvar x = resource.Vector{1, 2}", "x.go:4 names amounts of resources by position"},
		{"amounts by number", "sim", doc + "package sim\n" + ours("resource") + "\nvar x = [resource.NumKinds]int{1: 2}", "names amounts of resources by position"},
		{"amounts by name", "sim", doc + "package sim\n" + ours("resource") + "\nvar x = resource.Vector{resource.CPU: 1, resource.Disk: 2}", ""},
		{"all kinds", "live", doc + "package live\n" + ours("resource") + "\nvar x = []resource.Kind{resource.CPU, resource.Memory, resource.Disk}", "lists kinds of resources"},
		{"two special kinds", "live", doc + "package live\n" + ours("resource") + "\nvar x = []resource.Kind{resource.CPU, resource.Memory}", ""},
		{"a kind by number", "live", doc + "package live\n" + ours("resource") + "\nvar x = resource.Kind(1)", "makes a kind of resource from a number"},
		{"a component by number", "live", doc + "package live\nfunc f(n node) any { return n.Capacity[0] }", "indexes Capacity by a number"},
		{"a vector in package resource", "resource", doc + "package resource\nvar x = Vector{1, 2}", ""},
		{"no comment", "sweep", "package sweep", "has no package comment"},
		{"licence for a comment", "sweep", "// Copyright somebody\n\npackage sweep", "has no package comment"},
		{"no row", "scheduler", doc + "package scheduler", "has no row in the table"},
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
	broken, err := check([]pkg{{path: "sweep", files: []source{
		{"sweep/a.go", "// Package sweep is one thing.\npackage sweep"},
		{"sweep/b.go", "// Package sweep is another.\npackage sweep"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(broken) != 1 || !strings.Contains(broken[0], "a.go and b.go") {
		t.Errorf("broken rules are %q", broken)
	}
}

// TestImportsOfTests: tests import what their package may, the harnesses, and what the table of tests says.
func TestImportsOfTests(t *testing.T) {
	for _, c := range []struct {
		path, imported string
		may            bool
	}{
		{"memory", "cluster", true}, {"memory", "memory", true}, {"memory", "internal/testfile", true}, {"memory", "sim", false},
		{"policy", "sim", true}, {"policy", "live", false}, {"docs", "sim", true}, {"docs", "agent", false},
		{"sim", "lab/chart", false}, {"nowhere", "cluster", false}, {"cmd/bellows", "agent", true},
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

// TestTable checks the table itself: every row has a reason and imports only packages in rows above it, so that there
// is no cycle.
func TestTable(t *testing.T) {
	var above []string
	for _, f := range folders {
		if slices.Contains(above, f.path) {
			t.Errorf("%s: has two rows", f.path)
		}
		if f.reason == "" {
			t.Errorf("%s: has no reason", f.path)
		}
		for _, m := range f.may {
			if m != "..." && !slices.Contains(above, m) {
				t.Errorf("%s: may import %s, which does not stand above it", f.path, m)
			}
		}
		above = append(above, f.path)
	}
	for _, f := range tests {
		if r := row(folders, f.path); f.reason == "" || r != nil && slices.ContainsFunc(f.may, func(m string) bool { return slices.Contains(r.may, m) }) {
			t.Errorf("tests of %s: have no reason, or a right that the package has", f.path)
		}
	}
	for _, name := range slices.Concat(core, clocked, truthful, durables) {
		if !slices.Contains(above, name) {
			t.Errorf("%s: has no row", name)
		}
	}
}
