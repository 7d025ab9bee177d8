//go:build spark

package spark_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The shells of Spark run on warm executors: SQL, and Scala twice, with other classes of the same names.
func TestLongSparkShells(t *testing.T) {
	m := begin(t)
	home := pyspark(t)
	_, jar := m.pool("sh", "--min", "1", "--max", "1")
	for _, c := range []struct{ shell, input, want string }{
		{"spark-sql", "select concat('SUM ', sum(id)) from range(100000);\n", "SUM 4999950000"},
		{"spark-shell", `case class Row(k: Long, v: Long)
val rows = spark.range(1000).map(n => Row(n % 3, n))
println("SUM " + rows.filter(_.k == 1).map(_.v).reduce(_ + _))
`, "SUM 166167"},
		{"spark-shell", `case class Row(name: String)
val rows = sc.parallelize(1 to 100, 4).map(n => Row("x" * n)).cache()
println("SUM " + (rows.count() + rows.map(_.name.length).reduce(_ + _)))
`, "SUM 5150"},
	} {
		var said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), filepath.Join(home, "bin", c.shell), "--master", "spark-bellows://sh",
			"--jars", jar, "--conf", "spark.sql.catalogImplementation=in-memory", "--conf",
			"spark.ui.showConsoleProgress=false")
		cmd.Dir, cmd.Env, cmd.Stderr, cmd.Stdin = m.dir, m.env, &said, strings.NewReader(c.input)
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v: no %q in\n%s\n%s", c.shell, err, c.want, out, said.Bytes()[max(0, said.Len()-4<<10):])
		}
	}
}
