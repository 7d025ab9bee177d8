package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

// TestDiskSpeedIsKept: a disk is measured once, and again if the state lies on another disk or the stored result cannot
// be read.
func TestDiskSpeedIsKept(t *testing.T) {
	state := t.TempDir()
	measured := 0
	measure := func(string) (resource.Amount, error) {
		measured++
		return resource.Amount(measured) * 100 * resource.MB, nil
	}
	want := func(rate resource.Amount, times int) {
		t.Helper()
		if got, err := speedOfDisk(state, measure); got != rate*resource.MB || measured != times || err != nil {
			t.Errorf("%s, measured %d times, %v; want %d MB/s, %d times", resource.FormatRate(got), measured, err, rate, times)
		}
	}
	want(100, 1)
	want(100, 1)
	path := filepath.Join(state, "disk-speed.json")
	for _, text := range []string{`{"device":"0:0","bytes_per_s":7}`, `{"device"`, ``} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		times := measured + 1
		want(resource.Amount(times)*100, times)
		want(resource.Amount(times)*100, times)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := speedOfDisk(state, func(string) (resource.Amount, error) {
		return 0, errors.ErrUnsupported
	}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a disk that cannot be measured: %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("kept nothing: %v", err)
	}
}
