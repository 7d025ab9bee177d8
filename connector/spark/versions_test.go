//go:build spark

package spark_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Other versions of Spark run from the same sources: a second program starts on the JVM of the first.
func TestLongSparkVersions(t *testing.T) {
	for _, version := range []string{"4.3.0", "3.5.9"} {
		t.Run(version, func(t *testing.T) {
			m := begin(t)
			home := pyspark(t, version)
			m.env = append(m.env, "SPARK_HOME="+home, "PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"))
			line := m.run(m.bellows, "pool", "create", "sp", "--spark", "auto", "--min", "1", "--max", "1", "--set",
				"mira.keep=next")
			first := m.submit(line, "first", false)
			first.end(false)
			second := m.submit(line, "second", false)
			second.end(false)
			if first.got["jvm"] != second.got["jvm"] {
				t.Errorf("the programs ran in JVMs %v and %v", first.got["jvm"], second.got["jvm"])
			}
			if said := m.run(m.bellows, "logs", "--stderr", "1"); !strings.Contains(said, "JVM 1 is ready: Spark "+version) {
				t.Errorf("another Spark ran:\n%s", said)
			}
		})
	}
}
