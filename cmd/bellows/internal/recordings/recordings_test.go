package recordings

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/door/cli/command"
)

// A folder stands for the files in it, without those that are not records.
func TestOpenFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a/events_1_x", ".a.crc", "_SUCCESS", ".hidden/c", "single"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{filepath.Join(dir, "single"), "-", dir}
	all, closeAll, err := Open(context.Background(), strings.NewReader("in"), files)
	defer closeAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range all {
		text, err := io.ReadAll(s.Data)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimPrefix(s.Name, dir+"/")+"="+string(text))
	}
	want := "single=content of single|-=in|a/events_1_x=content of a/events_1_x|b=content of b|single=content of single"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

func TestOpenNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{dir: ": must have at least one file", dir + "/no": "no such file"} {
		_, closeAll, err := Open(context.Background(), nil, []string{file})
		closeAll()
		if err == nil || !strings.Contains(err.Error(), want) || command.ExitCode(err) != 2 {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
	// What goes away between is an error of the machine.
	path := filepath.Join(dir, "gone")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	all, closeAll, err := Open(context.Background(), nil, []string{path})
	defer closeAll()
	if err != nil || os.Remove(path) != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(all[0].Data); !os.IsNotExist(err) {
		t.Errorf("a file that is gone: %v", err)
	}
}
