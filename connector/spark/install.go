// Package spark connects Spark, unpatched, to pools: it finds a Spark installation, compiles the connector for it, and
// is the executor of such a pool, a launcher with one JVM. The other half, in the JVMs of executors and drivers, is
// the Scala of the folders scala*, which is embedded here. docs/spark.md is for users.
package spark

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Auto is what stands for a folder where the installation is to be found.
const Auto = "auto"

// Installation is a Spark on this machine.
type Installation struct {
	Home  string // SPARK_HOME, absolute: the folder jars is in it
	Spark string // its version, such as 4.2.0
	Scala string // the version of its library and of its compiler, such as 2.13.18
}

// line is a line of versions of Spark that sources exist for.
type line struct {
	version string // MAJOR.MINOR
	folder  string // of the sources that other lines do not share
}

// lines are the versions that can be used, those that are tested first.
var lines = []line{{"4.2", "scala-4"}, {"4.3", "scala-4"}, {"3.5", "scala-3.5"}}

// Find returns the installation in a folder: a distribution, or the folder of the package pyspark. For Auto it is that
// of SPARK_HOME, or else the pyspark of the python3 on PATH. An error is one sentence about what is missing, or about a
// version that cannot be used.
func Find(ctx context.Context, where string) (Installation, error) {
	home, err := where, error(nil)
	if where == Auto {
		if home, err = look(ctx); err != nil {
			return Installation{}, err
		}
	}
	if home, err = filepath.Abs(home); err != nil {
		return Installation{}, fmt.Errorf("find the working directory: %w", err)
	}
	i := Installation{Home: home}
	if i.Spark, i.Scala, err = versions(filepath.Join(home, "jars")); err != nil {
		return i, err
	}
	_, err = i.line()
	return i, err
}

// look finds the folder of an installation.
func look(ctx context.Context) (string, error) {
	if home := os.Getenv("SPARK_HOME"); home != "" {
		return home, nil
	}
	const find = `import importlib.util
s = importlib.util.find_spec("pyspark")
print(list(s.submodule_search_locations)[0] if s else "")`
	cmd := exec.CommandContext(ctx, "python3", "-c", find)
	cmd.Dir = "/" // where Python looks first
	out, err := cmd.Output()
	if home := strings.TrimSpace(string(out)); err == nil && home != "" {
		return home, nil
	}
	return "", fmt.Errorf("spark: none was found: SPARK_HOME is not set, and the python3 of PATH has no pyspark; " +
		"state the folder of an installation")
}

var (
	coreJar     = regexp.MustCompile(`^spark-core_[0-9.]+-([0-9].*)\.jar$`)
	compilerJar = regexp.MustCompile(`^scala-compiler-([0-9].*)\.jar$`)
)

// versions reads the versions of Spark and of its compiler from the names of its jars.
func versions(jars string) (spark, scala string, err error) {
	entries, err := os.ReadDir(jars)
	if err != nil {
		return "", "", fmt.Errorf("spark: %s is no installation of Spark: it has no folder jars", filepath.Dir(jars))
	}
	for _, e := range entries {
		if m := coreJar.FindStringSubmatch(e.Name()); m != nil {
			spark = m[1]
		}
		if m := compilerJar.FindStringSubmatch(e.Name()); m != nil {
			scala = m[1]
		}
	}
	switch {
	case spark == "":
		err = fmt.Errorf("spark: %s is no installation of Spark: it has no spark-core_*.jar", jars)
	case scala == "":
		err = fmt.Errorf("spark: %s has no scala-compiler-*.jar, which the connector is compiled with", jars)
	}
	return spark, scala, err
}

// line returns the line of versions that i is of.
func (i Installation) line() (line, error) {
	major, rest, _ := strings.Cut(i.Spark, ".")
	minor, _, _ := strings.Cut(rest, ".")
	for _, l := range lines {
		if l.version == major+"."+minor {
			return l, nil
		}
	}
	return line{}, fmt.Errorf("spark: %s is Spark %s: must be 4.2, which is tested, or 4.3 or 3.5", i.Home, i.Spark)
}

// Java is a Java runtime on this machine.
type Java struct {
	Path    string // of its program, absolute
	Version string
}

// oldestJava is the oldest version of Java that can be used: that of Spark 4, and the first with Unix sockets that all
// clients of a daemon need is 16.
const oldestJava = 17

// FindJava returns the Java of JAVA_HOME, or else that of PATH. An error is one sentence.
func FindJava(ctx context.Context) (j Java, err error) {
	program, where := "java", "PATH"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		program, where = filepath.Join(home, "bin", "java"), "JAVA_HOME"
	}
	if j.Path, err = exec.LookPath(program); err != nil {
		return j, fmt.Errorf("java: there is none in %s: Spark needs Java %d or newer", where, oldestJava)
	}
	if j.Path, err = filepath.Abs(j.Path); err != nil {
		return j, fmt.Errorf("find the working directory: %w", err)
	}
	said, err := exec.CommandContext(ctx, j.Path, "-version").CombinedOutput()
	if err != nil {
		return j, fmt.Errorf("ask %s for its version: %w: %s", j.Path, err, strings.TrimSpace(string(said)))
	}
	j.Version = javaVersion(string(said))
	major, _, _ := strings.Cut(j.Version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestJava {
		return j, fmt.Errorf("java: %s has version %q: Spark needs %d or newer", j.Path, j.Version, oldestJava)
	}
	return j, nil
}

var quotedVersion = regexp.MustCompile(`version "([0-9][0-9._]*)`)

// javaVersion returns the version in what `java -version` prints; empty if there is none.
func javaVersion(said string) string {
	if m := quotedVersion.FindStringSubmatch(said); m != nil {
		return m[1]
	}
	return ""
}
