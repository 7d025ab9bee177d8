package profiler

import (
	"os"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

// TestMeasureDisk: what is measured is a speed that a disk can have, and nothing is left behind.
func TestMeasureDisk(t *testing.T) {
	dir := t.TempDir()
	rate, err := MeasureDisk(dir)
	if err != nil {
		t.Skipf("needs a file system that goes past the page cache: %v", err)
	}
	t.Logf("%s", resource.FormatRate(rate))
	if rate < 10*resource.KB || rate > 1000*resource.GB {
		t.Errorf("%d bytes per second", rate)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := MeasureDisk(dir + "/nowhere"); err == nil {
		t.Error("measured a folder that is not there")
	}
}
