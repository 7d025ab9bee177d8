package architecture

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestClients: what asks a daemon does not link what a daemon is made of, but for what the table names.
func TestClients(t *testing.T) {
	for _, c := range clients {
		list := exec.Command("go", "list", "-deps", "./"+c.path)
		list.Dir = filepath.Join("..", "..")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list %s: %v", c.path, err)
		}
		if c.reason == "" {
			t.Errorf("%s: has no reason", c.path)
		}
		var linked []string
		for _, path := range strings.Fields(string(out)) {
			if path = strings.TrimPrefix(path, module+"/"); slices.Contains(daemons, path) {
				linked = append(linked, path)
			}
		}
		slices.Sort(linked)
		if !slices.Equal(linked, c.may) {
			t.Errorf("%s: links %q, but the table says %q: %s", c.path, linked, c.may, c.reason)
		}
	}
}
