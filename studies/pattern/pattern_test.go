package pattern

import (
	"os"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

// With any amount of spilling, the result is the same, and no file is left behind.
func TestSpillingChangesNoResult(t *testing.T) {
	const input = 4 * resource.MiB
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			whole, err := Run(Config{Pattern: name, Input: input, Buffer: input, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if whole.Spilled != 0 {
				t.Errorf("with enough memory it spilled %d bytes", whole.Spilled)
			}
			for _, buffer := range []resource.Amount{1, 2, 3} {
				r, err := Run(Config{Pattern: name, Input: input, Buffer: buffer * resource.MiB, Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				if r.Digest != whole.Digest {
					t.Errorf("buffer %d MiB: result %x, want %x", buffer, r.Digest, whole.Digest)
				}
				if r.Spilled == 0 {
					t.Errorf("buffer %d MiB: nothing was spilled", buffer)
				}
				if name != "hash" && r.Spilled > input { // a group is spilled once per run that it occurs in
					t.Errorf("buffer %d MiB: spilled %d bytes of %d", buffer, r.Spilled, input)
				}
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{Pattern: "dance", Input: resource.GiB, Buffer: resource.GiB}, `pattern "dance": must be one of`},
		{Config{Pattern: "sort", Input: 5, Buffer: resource.GiB}, "input 5B: must be at least 1MiB"},
		{Config{Pattern: "sort", Input: resource.GiB, Buffer: 5}, "buffer 5B: must be at least 1MiB"},
	} {
		if _, err := Run(tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.c, err, tt.want)
		}
	}
}
