package cluster

import (
	"maps"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// Cores is on how many whole cores a program with cpu millicores computes: rounded up, and at least 1.
func Cores(cpu resource.Amount) int64 {
	return int64(max(1, (cpu+resource.Core-1)/resource.Core))
}

// cpuVariable tells a program how much CPU it may use, in millicores.
const cpuVariable = "BELLOWS_CPU_MILLICORES"

// threadVariable tells a library or a language how many threads to start.
type threadVariable struct {
	name  string
	least int64
	// otherwise is the variable that counts where name is not set; empty if there is none.
	otherwise string
}

const openMP = "OMP_NUM_THREADS"

// threadVariables are those of libraries and languages that count the machine's CPUs otherwise, by their
// documentation: then their threads are in each other's way within the quota of the container. Those that look the
// quota up themselves are left out (Java, .NET, Polars), and those that start one thread by default (Julia).
var threadVariables = []threadVariable{
	{openMP, 1, ""}, // also PyTorch, Arrow, and nproc and sort of GNU coreutils
	{"OPENBLAS_NUM_THREADS", 1, openMP},
	{"MKL_NUM_THREADS", 1, openMP},
	{"NUMEXPR_NUM_THREADS", 1, openMP},
	{"NUMBA_NUM_THREADS", 1, ""},
	{"RAYON_NUM_THREADS", 1, ""},
	{"PYTHON_CPU_COUNT", 1, ""}, // os.cpu_count, from Python 3.13 on
	{"GOMAXPROCS", 2, ""},       // Go 1.25 and later look the quota up, and start at least 2, too
}

func (v threadVariable) value(cpu resource.Amount) string {
	return strconv.FormatInt(max(v.least, Cores(cpu)), 10)
}

// WithSize returns own, the variables that a job sets for its program, with those that tell the program how large it
// is: it may use cpu millicores. env, NAME=value, is what the program has from its submitter. What own or env sets is
// not replaced, unless the submitter is a task, and env says how large that is.
func WithSize(own map[string]string, env []string, cpu resource.Amount) map[string]string {
	set := map[string]string{}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	if submitter, err := strconv.ParseInt(set[cpuVariable], 10, 64); err == nil {
		for _, v := range threadVariables {
			if set[v.name] == v.value(resource.Amount(submitter)) {
				delete(set, v.name)
			}
		}
	}
	maps.Copy(set, own)
	all := map[string]string{cpuVariable: strconv.FormatInt(int64(cpu), 10)}
	for _, v := range threadVariables {
		_, stated := set[v.name]
		if _, other := set[v.otherwise]; !stated && !other {
			all[v.name] = v.value(cpu)
		}
	}
	maps.Copy(all, own)
	return all
}
