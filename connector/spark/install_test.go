package spark

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
)

// installed makes a folder that looks like an installation.
func installed(t *testing.T, jars ...string) string {
	t.Helper()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "jars"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range jars {
		if err := os.WriteFile(filepath.Join(home, "jars", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// Versions that cannot be used are refused in one sentence.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		jars        []string
		spark, want string
	}{
		{[]string{"spark-core_2.13-4.2.0.jar", "scala-compiler-2.13.18.jar"}, "4.2.0", ""},
		{[]string{"spark-core_2.13-4.3.1-vendor-2.jar", "scala-compiler-2.13.18.jar"}, "4.3.1-vendor-2", ""},
		{[]string{"spark-core_2.12-3.5.9.jar", "scala-compiler-2.12.18.jar"}, "3.5.9", ""},
		{[]string{"spark-core_2.13-4.0.1.jar", "scala-compiler-2.13.16.jar"}, "4.0.1", "is Spark 4.0.1: must be 4.2"},
		{[]string{"spark-core_2.13-4.20.0.jar", "scala-compiler-2.13.16.jar"}, "4.20.0", "is Spark 4.20.0: must be"},
		{[]string{"spark-core_2.13-4.2.0.jar"}, "4.2.0", "has no scala-compiler-*.jar"},
		{[]string{"commons.jar"}, "", "has no spark-core_*.jar"},
	} {
		i, err := Find(t.Context(), installed(t, c.jars...))
		if i.Spark != c.spark || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %+v, %v; want %s, %s", c.jars, i, err, c.spark, c.want)
		}
	}
	if _, err := Find(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no folder jars") {
		t.Error(err)
	}
}

// An installation is found by SPARK_HOME, or by the interpreter of PATH.
func TestFindAuto(t *testing.T) {
	home := installed(t, "spark-core_2.13-4.2.0.jar", "scala-compiler-2.13.18.jar")
	t.Setenv("SPARK_HOME", home)
	if i, err := Find(t.Context(), Auto); err != nil || i.Home != home {
		t.Errorf("%+v, %v", i, err)
	}
	t.Setenv("SPARK_HOME", "")
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	python := func(text string) {
		if err := os.WriteFile(filepath.Join(bin, "python3"), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	python("[ $PWD = / ] && echo " + home) // not in the working directory, which may have a folder of that name
	if i, err := Find(t.Context(), Auto); err != nil || i.Home != home {
		t.Errorf("%+v, %v", i, err)
	}
	python("echo")
	if _, err := Find(t.Context(), Auto); err == nil || !strings.Contains(err.Error(), "none was found") {
		t.Error(err)
	}
}

func TestFindJava(t *testing.T) {
	for said, want := range map[string]string{
		`openjdk version "17.0.21.1" 2026-11-17`: "",
		`openjdk version "21" 2023-09-19`:        "",
		`java version "1.8.0_292"`:               `has version "1.8.0_292": Spark needs 17 or newer`,
		`openjdk version "11.0.2" 2019-01-15`:    "needs 17 or newer",
		"nonsense":                               `has version ""`,
	} {
		home := t.TempDir()
		if err := os.Mkdir(filepath.Join(home, "bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(home, "bin", "java")
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+said+"' >&2\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("JAVA_HOME", home)
		j, err := FindJava(t.Context())
		if j.Path != path || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %s", said, j, err, want)
		}
	}
	t.Setenv("JAVA_HOME", t.TempDir())
	if _, err := FindJava(t.Context()); err == nil || !strings.Contains(err.Error(), "there is none in JAVA_HOME") {
		t.Error(err)
	}
}

// The heap leaves what Spark needs, and what a JVM needs besides it.
func TestHeap(t *testing.T) {
	for memory, want := range map[int64]int64{LeastMemory: leastHeap, DefaultMemory: 1152 * mib,
		10_240 * mib: 9216 * mib} {
		if got, err := Heap(memory); err != nil || got != want {
			t.Errorf("%d MiB: %d MiB, %v; want %d MiB", memory/mib, got/mib, err, want/mib)
		}
	}
	if _, err := Heap(LeastMemory - 1); err == nil || !strings.Contains(err.Error(), "must be at least 834 MiB") {
		t.Error(err)
	}
}

// compiler is a program of the shell in place of java: it makes a class for each source, and prints options.
const compiler = `
case "$*" in
*JavaOptions) echo "--add-opens=a --add-opens=b"; exit;;
*scala.tools.nsc.Main*) ;;
*) echo "unexpected: $*" >&2; exit 1;;
esac
echo run >>$RUNS
[ ! -e $RUNS.broken ] || { echo "A.scala:3: error: not found: value x" >&2; exit 1; }
while [ "$1" != -d ]; do shift; done
out=$2; shift 2
mkdir $out/org
for f; do cp $f $out/org/$(basename $f .scala).class; done
`

// The connector is compiled once, whoever needs it at once, and never a part of it is there.
func TestCompile(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	t.Setenv("RUNS", runs)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	i := Installation{Home: "/opt/spark", Spark: "4.2.0", Scala: "2.13.18"}
	j := Java{Path: script(t, compiler)}
	if err := os.WriteFile(runs+".broken", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(t.Context(), i, j, func() {}); err == nil ||
		!strings.Contains(err.Error(), "compile the connector for Spark 4.2.0 in /opt/spark") ||
		!strings.Contains(err.Error(), "A.scala:3: error: not found: value x") {
		t.Error(err)
	}
	if err := os.Remove(runs + ".broken"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var slow atomic.Int32
	for range 8 {
		all.Go(func() {
			c, err := Compile(t.Context(), i, j, func() { slow.Add(1) })
			if err != nil || !slices.Equal(c.JavaOptions, []string{"--add-opens=a", "--add-opens=b"}) {
				t.Errorf("%+v, %v", c, err)
				return
			}
			if names := entries(t, c.Jar); !slices.Contains(names, "org/JavaOptions.class") {
				t.Errorf("the jar has %q", names)
			}
		})
	}
	all.Wait()
	text, _ := os.ReadFile(runs)
	if n := strings.Count(string(text), "run"); n != 2 || slow.Load() != 1 {
		t.Errorf("compiled %d times, once in vain; said %d times", n, slow.Load())
	}
	left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "bellows/spark/.new-*"))
	if len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	i.Spark = "4.1.0"
	if _, err := Compile(t.Context(), i, j, func() {}); err == nil || !strings.Contains(err.Error(), "is Spark 4.1.0") {
		t.Error(err)
	}
}

func entries(t *testing.T, jar string) (names []string) {
	z, err := zip.OpenReader(jar)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer z.Close()
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	return names
}

// Sources of other lines of versions are left out, and every change of one changes the hash.
func TestSources(t *testing.T) {
	from := fstest.MapFS{"scala/org/A.scala": {Data: []byte("a")}, "scala-4/B.scala": {Data: []byte("b")},
		"scala-3.5/B.scala": {Data: []byte("c")}, "scala/resources/META-INF/services/x": {Data: []byte("A")}}
	hashes := map[string]bool{}
	for _, folder := range []string{"scala-4", "scala-3.5", "none"} {
		files, hash, err := sourcesOf(from, "scala", folder)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range files {
			names = append(names, fmt.Sprint(f.name, " ", f.compiled()))
		}
		want := []string{"org/A.scala true", "META-INF/services/x false"}
		if folder != "none" {
			want = append(want, "B.scala true")
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: %q, want %q", folder, names, want)
		}
		hashes[hash] = true
	}
	if len(hashes) != 3 {
		t.Errorf("hashes: %v", hashes)
	}
	if _, err := read(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
