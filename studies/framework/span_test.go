package framework

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/jobfile"
)

// The fields printed for a job file read back as the same elasticity.
func TestJobFieldsAreReadBack(t *testing.T) {
	spark := SparkSort{Input: 2010 * resource.MB, MemoryFraction: 1, Tasks: 1}
	spark.Expansion = 2
	for _, f := range []Task{
		HadoopMapperPaper(200*resource.MB, 2_000_000), HadoopMapperDefaults(1000*resource.MB, 2_000_000),
		HadoopReducerPaper(2010*resource.MB, 10*resource.MB), spark, TezReducerPaper(2010*resource.MB, resource.MB, 0.2),
	} {
		r, err := NewSpan(f, &Model{Task: f, Ideal: time.Minute, SpillRate: 30e6}, 0)
		if err != nil {
			t.Fatal(err)
		}
		text := "bellows: 1\nname: x\nstages:\n  - name: s\n    " + strings.ReplaceAll(strings.TrimSpace(r.JobFields()),
			"\n", "\n    ") + "\n"
		w, err := jobfile.Read(strings.NewReader(text), "job.yaml", nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", f.Name(), err, text)
		}
		e := w.Jobs[0].Stages[0].Elasticity
		for i := range resource.Amount(50) {
			memory := r.Least + (r.Ideal-r.Least)*i/50
			if got, want := e.Slowdown(r.Ideal, memory),
				r.Elasticity.Slowdown(r.Ideal, memory); math.Abs(got-want) > 0.001*want {
				t.Errorf("%s with %d: %v in the file, %v in the model", f.Name(), memory, got, want)
			}
		}
	}
}
