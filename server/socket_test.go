package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckSocket(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "s"):           "",
		filepath.Join(dir, "a", "b", "s"): "",
		file:                              "the path exists and is no socket",
		filepath.Join(file, "s"):          "this user cannot make it in " + file,
	} {
		err := CheckSocket(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the check has made something: %v (%v)", entries, err)
	}
}
