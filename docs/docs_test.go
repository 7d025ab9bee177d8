// Package docs_test keeps the documents true: what they tell people to type is typed, the code in them is the
// project's, and their links lead somewhere.
//
// A block marked "sh" is run, as one script, in a folder that the blocks of a document share, one after the other, with
// a bellows that was built from here, and that has this project in the folder bellows. A comment in the line above says
// otherwise:
//
//	<!-- needs containers -->   it is skipped where no control groups can be had
//	<!-- not run: REASON -->    it is not run
//	<!-- from FILE -->          above any block: its text stands in that file of the project, letter by letter
package docs_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/node/cgroup"
)

// documents returns README.md, CHANGELOG.md, and all documents in docs and studies.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"../README.md", "../CHANGELOG.md", "*.md", "decisions/*.md", "reference/*.md",
		"results/*.md", "../studies/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 4 {
		t.Fatalf("only %d documents were found", len(all))
	}
	return all
}

// block is a fenced block of a document.
type block struct {
	line     int    // of its fence
	language string // behind the fence
	note     string // the comment in the line above; empty if there is none
	text     string
}

var comment = regexp.MustCompile(`^<!-- (.*) -->$`)

// blocks finds the fenced blocks of a document.
func blocks(text string) ([]block, error) {
	var all []block
	var open *block
	above := ""
	for i, line := range strings.Split(text, "\n") {
		fence, fenced := strings.CutPrefix(line, "```")
		switch {
		case open == nil && fenced:
			open = &block{line: i + 1, language: fence}
			if m := comment.FindStringSubmatch(above); m != nil {
				open.note = m[1]
			}
		case open != nil && fenced:
			all, open = append(all, *open), nil
		case open != nil:
			open.text += line + "\n"
		}
		above = line
	}
	if open != nil {
		return nil, fmt.Errorf("the block in line %d does not end", open.line)
	}
	return all, nil
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func blocksOf(t *testing.T, file string) []block {
	t.Helper()
	all, err := blocks(read(t, file))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return all
}

var lab = flag.Bool("lab", false, "run commands with bellows-lab, too: it is built from the module of the studies")

func TestCommands(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+"/", "../cmd/bellows")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if *lab {
		build := exec.Command("go", "build", "-C", "../studies", "-o", bin+"/", "./bellows-lab")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	for _, file := range documents(t) {
		var scripts []block
		for _, b := range blocksOf(t, file) {
			if b.language == "sh" && !strings.HasPrefix(b.note, "not run: ") {
				scripts = append(scripts, b)
			}
		}
		if len(scripts) > 0 {
			t.Run(filepath.Base(file), func(t *testing.T) { runScripts(t, bin, scripts) })
		}
	}
}

// runScripts runs the blocks of one document.
func runScripts(t *testing.T, bin string, scripts []block) {
	// Names of sockets are short: the folder cannot be below that of the test.
	dir, err := os.MkdirTemp("", "bellows-docs")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "BELLOWS_STATE="+filepath.Join(dir, "state"),
		"BELLOWS_SOCKET="+filepath.Join(dir, "socket"))
	sh := func(ctx context.Context, script string) (string, error) {
		cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", script)
		cmd.Dir, cmd.Env = filepath.Join(dir, "work"), env
		// A daemon that was left running would hold the output open.
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs("..")
	if err == nil {
		err = os.Symlink(checkout, filepath.Join(dir, "work", "bellows"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := os.Stat(filepath.Join(dir, "socket")); err == nil {
			if out, err := sh(ctx, "bellows down"); err != nil {
				t.Errorf("bellows down: %v\n%s", err, out)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for _, b := range scripts {
		t.Run(fmt.Sprintf("line%d", b.line), func(t *testing.T) {
			if !*lab && strings.Contains(b.text, "bellows-lab ") {
				t.Skip("a command of the studies: run with -lab")
			}
			if b.note == "needs containers" {
				needContainers(t)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out, err := sh(ctx, b.text)
			if err != nil {
				t.Fatalf("%v\n%s%s", err, b.text, out)
			}
			t.Logf("%s%s", b.text, out)
		})
	}
}

// needContainers skips where this process can make no control groups.
func needContainers(t *testing.T) {
	t.Helper()
	host, err := cgroup.Discover("")
	if err != nil {
		t.Fatal(err)
	}
	root, err := host.Root(fmt.Sprintf("docs-%d", os.Getpid()), cgroup.Memory)
	if err != nil {
		t.Skipf("needs control groups: %v", err)
	}
	if err := root.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestCode compares the blocks that are taken from the project with where they come from.
func TestCode(t *testing.T) {
	for _, file := range documents(t) {
		for _, b := range blocksOf(t, file) {
			from, ok := strings.CutPrefix(b.note, "from ")
			switch {
			case ok && !strings.Contains(read(t, filepath.Join("..", from)), b.text):
				t.Errorf("%s:%d: does not stand in %s any more", file, b.line, from)
			case !ok && b.language == "go":
				t.Errorf("%s:%d: Go code must be taken from the project: say from which file", file, b.line)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks looks for the files that documents point to, and for the headings in them.
func TestLinks(t *testing.T) {
	for _, file := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := filepath.Join(filepath.Dir(file), target)
			if target == "" {
				path = file
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: points to %s, which is not there", file, m[1])
			} else if heading != "" && filepath.Ext(path) == ".md" && !hasHeading(read(t, path), heading) {
				t.Errorf("%s: points to %s, and there is no such heading", file, m[1])
			}
		}
	}
}

// hasHeading reports whether a document has a heading whose link target is anchor: lower case, spaces as -, without
// marks.
func hasHeading(text, anchor string) bool {
	for line := range strings.Lines(text) {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if ok && line[0] == '#' && strings.ReplaceAll(marks.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""),
			" ", "-") == anchor {
			return true
		}
	}
	return false
}

var marks = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// The list of folders in architecture.md has every folder at the top that has packages, and in its row every package
// in it.
func TestFolders(t *testing.T) {
	_, list, _ := strings.Cut(read(t, "architecture.md"), "## Folders")
	rows := map[string]string{}
	for line := range strings.Lines(list) {
		if m := regexp.MustCompile("^\\| `([a-z]+)/` \\| (.*) \\|$").FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			rows[m[1]] = m[2]
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("architecture.md lists the folder %s: %v", m[1], err)
			}
		}
	}
	packages, err := exec.Command("go", "list", "-f", "{{.ImportPath}}", "../...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, path := range strings.Fields(string(packages)) {
		top, below, _ := strings.Cut(strings.TrimPrefix(path, "github.com/bellows-rm/bellows/"), "/")
		below = strings.TrimPrefix(strings.TrimPrefix(below, "cli/"), "command/")
		if row, ok := rows[top]; !ok || below != "" && top != "cmd" && below != "commandtest" &&
			!strings.Contains(row, "`"+below+"`") {
			t.Errorf("architecture.md does not list %s", path)
		}
	}
}

func TestBlocks(t *testing.T) {
	got, err := blocks("a\n<!-- needs x -->\n```sh\none\ntwo\n```\n\n```\nthree\n```\n")
	want := []block{{3, "sh", "needs x", "one\ntwo\n"}, {8, "", "", "three\n"}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("blocks are %v (%v), want %v", got, err, want)
	}
	if _, err := blocks("```sh\nnever\n"); err == nil {
		t.Error("a block that does not end is taken for good")
	}
}

// The parts that a drawing of the architecture names in bold exist: a folder of the project, or a type of one.
func TestArchitectureDrawing(t *testing.T) {
	text, err := os.ReadFile("architecture.svg")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`<text class="name[^>]*>([^<]*)</text>`).FindAllStringSubmatch(string(text), -1)
	if len(names) < 8 || strings.Contains(string(text), "to come") || strings.Contains(string(text), "not written yet") {
		t.Errorf("%d parts are named, and what is drawn must be there", len(names))
	}
	for _, found := range names {
		folder, _, _ := strings.Cut(found[1], ".")
		if folder == "bellows" {
			folder = "cmd/bellows"
		}
		here, _ := filepath.Glob(filepath.Join("..", folder))
		below, _ := filepath.Glob(filepath.Join("..", "*", folder))
		if len(here)+len(below) == 0 {
			t.Errorf("%s is drawn, and there is no such folder", found[1])
		}
	}
}
