package boundeddisk

import (
	"os"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// TestMain lets the test program be the server of a disk.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Serve(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// TestVerify: whatever transfers, and however, stays within the bound. On a busy machine it may stay far below.
func TestVerify(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	if why := Need(); why != "" {
		t.Skip(why)
	}
	const speed = 24_000_000
	d, err := New(os.TempDir(), resource.GiB, speed)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	})
	checks, err := d.Verify(2 * time.Second)
	if err != nil || len(checks) != 4 {
		t.Fatalf("%v, %v", checks, err)
	}
	for _, c := range checks {
		t.Logf("%s: %.1f MB/s of %.1f", c.What, float64(c.Achieved)/1e6, speed/1e6)
		if c.Achieved > speed*11/10 || c.Achieved < speed/4 {
			t.Errorf("%s: %d bytes/s with a bound of %d", c.What, c.Achieved, speed)
		}
	}
}
