package jobfile

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// What the tasks of a stage work on is a list, or the files of a folder or a pattern, as the command names them.
func TestItems(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"in/b.csv", "in/a.csv", "in/c.txt", "in/.hidden"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func(stage string) ([]string, int, error) {
		head := "bellows: 1\nname: j\nstages: [{name: s, memory: 1MiB, command: [wc, \"{item}\"], "
		w, err := Read(strings.NewReader(head+stage+"}]\n"),
			"x", nil)
		if err != nil {
			return nil, 0, err
		}
		return w.Jobs[0].Stages[0].Items, w.Jobs[0].Stages[0].Tasks, nil
	}
	for stage, want := range map[string][]string{
		`each: [x, "y z"]`:                    {"x", "y z"},
		`each: in, dir: ` + dir:               {"in/a.csv", "in/b.csv", "in/c.txt"},
		`each: "in/*.csv", dir: ` + dir:       {"in/a.csv", "in/b.csv"},
		`each: ` + dir + `/in/c.txt`:          {dir + "/in/c.txt"},
		`each: [x, y], tasks: 2, dir: ` + dir: {"x", "y"},
	} {
		if got, tasks, err := read(stage); err != nil || !reflect.DeepEqual(got, want) || tasks != len(want) {
			t.Errorf("%s: got %q, %d tasks, %v; want %q", stage, got, tasks, err, want)
		}
	}
	for stage, want := range map[string]string{
		`each: [x, y], tasks: 3`:      "tasks 3: must be 2, as many as each lists, or be left out",
		`each: "*.none", dir: ` + dir: "*.none: must be a list, or a folder or pattern that names at least one file",
		`each: []`:                    "an empty list: must be a list of at least one item",
		`each: "in/[", dir: ` + dir:   "syntax error in pattern",
	} {
		if _, _, err := read(stage); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", stage, err, want)
		}
	}
}
