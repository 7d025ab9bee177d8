package importer

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/format/fault"
)

// packed is a compressed file of the given number of jobs of two tasks.
func packed(t *testing.T, jobs int) Source {
	t.Helper()
	var file bytes.Buffer
	z := gzip.NewWriter(&file)
	for i := range jobs {
		if _, err := fmt.Fprintf(z, "%d 2 1 1 1\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return Source{"f.gz", &file}
}

// The expansion of a small compressed file is bounded: the import fails at the bound, not when memory runs out.
func TestBomb(t *testing.T) {
	for _, tt := range []struct {
		most total
		want string
	}{
		{total{mostJobs: 100, mostTasks: 1 << 20, mostBytes: 1 << 30},
			"f.gz:101: jobs: must be at most 100 in all files together"},
		{total{mostJobs: 1 << 20, mostTasks: 100, mostBytes: 1 << 30},
			"f.gz:51: tasks: must be at most 100 in all files together"},
		{total{mostJobs: 1 << 20, mostTasks: 1 << 20, mostBytes: 100_000},
			"bytes: must be at most 100000 in all files together, after unpacking"},
	} {
		_, err := Import(DefaultSparrow(), []Source{packed(t, 100_000)}, Options{total: &tt.most})
		if !fault.Is(err) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error is %v, want %s", err, tt.want)
		}
		if tt.most.bytes > 2<<20 {
			t.Errorf("%s: %d bytes were read", tt.want, tt.most.bytes)
		}
	}
}

func TestBoundsAreOfAllFiles(t *testing.T) {
	most := &total{mostJobs: 150, mostTasks: 1 << 20, mostBytes: 1 << 30}
	_, err := Import(DefaultSparrow(), []Source{packed(t, 100), packed(t, 100)}, Options{total: most})
	if want := "f.gz:51: jobs: must be at most 150 in all files together"; !fault.Is(err) || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	if r, err := Import(DefaultSparrow(), []Source{packed(t, 100), packed(t, 100)}, Options{}); err != nil ||
		len(r.Workload.Jobs) != 200 {
		t.Errorf("200 jobs in two files: %v", err)
	}
}
