package swap

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestSwapOnReplacedFile replaces the created file by another file, by a link and by nothing, as anyone with write
// access to the folder can: the ledger swaps to none of them.
func TestSwapOnReplacedFile(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "swap"), filepath.Join(dir, "other")
	made, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	if err := os.WriteFile(other, header(os.Getpagesize(), leastSize), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(other, int64(leastSize)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		put  func() error
	}{
		{"another file", func() error { return os.Link(other, path) }},
		{"a link", func() error { return os.Symlink(other, path) }},
		{"nothing", func() error { return nil }},
	} {
		if err := errors.Join(os.Remove(path), c.put()); err != nil {
			t.Fatal(err)
		}
		if err := swapOnFile(path, made, AsLast); !errors.Is(err, ErrRefused) {
			t.Errorf("%s in its place: %v", c.what, err)
			_ = TurnOff(other)
		}
	}
}
