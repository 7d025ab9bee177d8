package jobs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// files makes files of the given sizes in a new folder.
func files(t *testing.T, sizes map[string]int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, size := range sizes {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadsFiles(t *testing.T) {
	dir := files(t, map[string]int{"a": 1, "b.txt": 20, "out": 300, "sub/c": 4000})
	for _, c := range []struct {
		command cluster.Command
		want    resource.Amount
	}{
		{cluster.Command{Args: []string{"sort", "a", "b.txt"}}, 21},
		{cluster.Command{Args: []string{"sort", "a", "./a", filepath.Join(dir, "a")}}, 1},
		{cluster.Command{Args: []string{"sort", "-o", "out", "--output", "out", "a"}}, 1},
		{cluster.Command{Args: []string{"a", "sub", "missing", "--data=a", "a-{task}"}}, 0},
		{cluster.Command{Args: []string{"wc"}, Stdin: "b.txt"}, 20},
		{cluster.Command{Args: []string{"wc", "c"}, Dir: "sub"}, 4000},
	} {
		if got := readsFiles(&c.command, dir); got != c.want {
			t.Errorf("%q: %d, want %d", c.command.Args, got, c.want)
		}
	}
}

func TestInputFlag(t *testing.T) {
	dir := files(t, map[string]int{"a": 1, "3GiB": 20, "sub/c": 4000, "sub/d/e": 50000})
	t.Chdir(dir)
	for _, c := range []struct {
		texts []string
		want  resource.Amount
		wrong string
	}{
		{[]string{"a", "3GiB"}, 21, ""},
		{[]string{"sub"}, 54000, ""},
		{[]string{"1KiB", "a"}, 1025, ""},
		{[]string{"missing"}, 0, "must be a file or folder that exists, or a size such as 3GiB"},
		{[]string{"-1KiB"}, 0, "must be"},
		{[]string{os.DevNull}, 0, os.DevNull + " is neither a regular file nor a folder: give the size"},
	} {
		var got resource.Amount
		var err error
		for _, text := range c.texts {
			err = dataFlag{&got}.Set(text)
		}
		switch {
		case c.wrong != "" && (err == nil || len(err.Error()) < len(c.wrong) || err.Error()[:len(c.wrong)] != c.wrong):
			t.Errorf("%q: %v, want %s", c.texts, err, c.wrong)
		case c.wrong == "" && (err != nil || got != c.want):
			t.Errorf("%q: %d %v, want %d", c.texts, got, err, c.want)
		}
	}
}

// What people state with flags is in the job; what they do not state of its input comes from its files.
func TestStatedWithFlags(t *testing.T) {
	dir := files(t, map[string]int{"a": 7})
	for _, stated := range []bool{false, true} {
		o := runOptions{stage: cluster.Stage{Tasks: 1, Ideal: resource.Of(resource.Core, resource.GiB)}, class: "regular",
			app: "reads", deadline: time.Minute}
		want := resource.Amount(7)
		if stated {
			o.stage.Input, want = resource.GiB, resource.GiB
		}
		j, err := o.job([]string{"cat", "a"}, dir)
		if err != nil {
			t.Fatal(err)
		}
		s := api.SubmissionOf(&j.Job, nil, dir, nil)
		if s.App != "reads" || s.Deadline != time.Minute || s.Stages[0].Input != want {
			t.Errorf("submitted is %+v", s)
		}
	}
}
