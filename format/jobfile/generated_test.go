package jobfile

import (
	"reflect"
	"testing"

	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/internal/testfile"
)

// The first jobs of each default workload are stored, so that a change of the generator is noticed. Reading their file
// gives the same workload.
func TestGenerateGolden(t *testing.T) {
	for _, d := range []workload.Distribution{workload.Uniform, workload.Exponential, workload.Flex} {
		o := workload.DefaultGenerateOptions(d)
		o.Jobs = 5
		if d == workload.Flex {
			o.Jobs = 2
		}
		testfile.Golden(t, d.String()+".yaml", writeJobs(t, generate(t, d, o)))
	}
	o := workload.DefaultGenerateOptions(workload.Flex)
	o.Jobs = 200
	w := generate(t, workload.Flex, o)
	if got := readJobs(t, string(writeJobs(t, w))); !reflect.DeepEqual(got, w) {
		t.Errorf("a job file of generated jobs reads as\n%+v\nwant\n%+v", got.Jobs[0], w.Jobs[0])
	}
}

func generate(t *testing.T, d workload.Distribution, o workload.GenerateOptions) *workload.Workload {
	t.Helper()
	w, err := workload.Generate(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
