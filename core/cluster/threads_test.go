package cluster

import (
	"maps"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

// told returns the variables that tell a program that it has a number of cores.
func told(millicores, cores, goProcs string) map[string]string {
	return map[string]string{"BELLOWS_CPU_MILLICORES": millicores, "OMP_NUM_THREADS": cores,
		"OPENBLAS_NUM_THREADS": cores, "MKL_NUM_THREADS": cores, "NUMEXPR_NUM_THREADS": cores, "NUMBA_NUM_THREADS": cores,
		"RAYON_NUM_THREADS": cores, "PYTHON_CPU_COUNT": cores, "GOMAXPROCS": goProcs}
}

// TestWithSize: a program is told how many threads to start, unless its job or its submitter says it; the size of a
// task is not that of the jobs that it submits.
func TestWithSize(t *testing.T) {
	with := func(m map[string]string, name, value string) map[string]string {
		m[name] = value
		return m
	}
	without := func(m map[string]string, names ...string) map[string]string {
		for _, name := range names {
			delete(m, name)
		}
		return m
	}
	for _, c := range []struct {
		name string
		own  map[string]string
		env  []string
		cpu  resource.Amount
		want map[string]string
	}{
		{"less than a core", nil, nil, 100, told("100", "1", "2")},
		{"a core", nil, []string{"PATH=/bin"}, 1000, told("1000", "1", "2")},
		{"rounded up", nil, nil, 3001, told("3001", "4", "4")},
		{"set by the job", map[string]string{"RAYON_NUM_THREADS": "7", "A": "b"}, nil, 2000,
			with(with(told("2000", "2", "2"), "RAYON_NUM_THREADS", "7"), "A", "b")},
		{"set by the submitter", nil, []string{"RAYON_NUM_THREADS=7", "GOMAXPROCS="}, 2000,
			without(told("2000", "2", "2"), "RAYON_NUM_THREADS", "GOMAXPROCS")},
		{"the variable that counts otherwise", nil, []string{"OMP_NUM_THREADS=7,3"}, 2000,
			without(told("2000", "2", "2"), "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
				"NUMEXPR_NUM_THREADS")},
		{"of a task", nil, []string{"BELLOWS_CPU_MILLICORES=3500", "OMP_NUM_THREADS=4", "GOMAXPROCS=4",
			"MKL_NUM_THREADS=3"}, 1000, without(told("1000", "1", "2"), "MKL_NUM_THREADS")},
	} {
		if got := WithSize(c.own, c.env, c.cpu); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
