//go:build spark

package spark_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/connector/spark"
)

// What a driver knows of its executors is compared with a model that remembers everything, over random interleavings.
// How many applications a JVM is attached to is bounded, and what they have in memory, executors are not attached again
// between stages, and are divided among stages as the pool does it, none of them idle beside a task, and no patience
// ends while a container is stopped: see scala-test, which is compiled as the connector is.
func TestSession(t *testing.T) {
	beside(t)
	home := pyspark(t)
	i, err := spark.Find(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	j, err := spark.FindJava(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := spark.Compile(t.Context(), i, j, func() {})
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Glob("scala-test/*.scala")
	if err != nil || len(tests) == 0 {
		t.Fatalf("%d sources: %v", len(tests), err)
	}
	jars, classes := filepath.Join(home, "jars", "*"), t.TempDir()
	run := func(args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), j.Path, append([]string{quick}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
	}
	run(append([]string{"-cp", jars, "scala.tools.nsc.Main", "-nowarn", "-cp", c.Jar + ":" + jars, "-d", classes},
		tests...)...)
	path := classes + ":" + c.Jar + ":" + jars
	run("-cp", path, "org.apache.spark.scheduler.bellows.SessionTest", "1000")
	run("-cp", path, "org.apache.spark.scheduler.bellows.StagesTest")
	run("-cp", path, "org.apache.spark.scheduler.bellows.DivisionTest", "../../core/share/testdata/stages.jsonl")
	for _, test := range []string{"PatienceTest", "RoomTest"} {
		run("-cp", path, "org.apache.spark.executor.bellows."+test)
	}
	for _, test := range []string{"scheduler.bellows.SubsetsTest", "storage.bellows.ShrinkingTest"} {
		run(append(slices.Clone(c.JavaOptions), "-cp", path, "org.apache.spark."+test)...)
	}
}
