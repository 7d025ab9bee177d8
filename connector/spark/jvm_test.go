package spark

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// script writes a program into a folder.
func script(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "java")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// shared is a buffer that goroutines write to.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(text)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// jvmsOf are JVMs that are programs of the shell.
func jvmsOf(t testing.TB, text string) (*jvms, *shared, *shared) {
	t.Helper()
	t.Setenv("SPARK_LOCAL_DIRS", t.TempDir()+","+t.TempDir())
	s, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	out, said := &shared{}, &shared{}
	return &jvms{spark: Installation{Home: "/opt/spark"}, java: Java{Path: script(t, text)},
		compiled: Compiled{"/cache/c.jar", []string{"--add-opens=x"}}, heap: 600 * mib, cores: 2, scratch: s, group: &group{},
		out: out, err: said}, out, said
}

// A JVM speaks over its pipes, knows how large it is and where its files are, and prints for whom it serves.
func TestJVM(t *testing.T) {
	t.Setenv("BELLOWS_EXECUTOR_SECRET_FILE", "/secret")
	t.Setenv("JDK_JAVA_OPTIONS", "-Xmx1024k -Dmine=1")
	j, out, said := jvmsOf(t, `
echo "$@"; echo "cores $BELLOWS_CORES home $SPARK_HOME secret $BELLOWS_EXECUTOR_SECRET_FILE $JDK_JAVA_OPTIONS"
dirs=$SPARK_EXECUTOR_DIRS
touch ${dirs%%,*}/file ${dirs##*,}/file || echo no folders
echo '{"is":"ready","spark":"4.2.0"}' >$BELLOWS_REPORTS
read line; echo "got $line"; printf unfinished >&2
echo 'nonsense' >$BELLOWS_REPORTS
echo '{"is":"keeps","keys":["a"]}' >$BELLOWS_REPORTS
read line
exit 52
`)
	heard, ended := make(chan report, 10), make(chan string, 1)
	r, err := j.begin(7, func(r report) { heard <- r }, func(how string) { ended <- how })
	if err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got.Is != "ready" || got.Spark != "4.2.0" {
		t.Errorf("%+v", got)
	}
	r.own("etl 1")
	r.send(encode(command{Do: "attach", Attachment: 1, Key: "k", Payload: []byte("x")}))
	if got := <-heard; got.Is != "keeps" || len(got.Keys) != 1 {
		t.Errorf("%+v", got)
	}
	files, _ := filepath.Glob(filepath.Join(j.scratch.roots[1], "7", "file"))
	if len(files) != 1 {
		t.Errorf("files: %q", files)
	}
	r.send(encode(command{Do: "end"}))
	if got, want := <-ended, "exit code 52: it had no more memory in its heap (java.lang.OutOfMemoryError)"; got != want {
		t.Errorf("it ended: %s, want %s", got, want)
	}
	if left, _ := filepath.Glob(filepath.Join(j.scratch.roots[0], "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	for text, want := range map[string]string{
		out.String(): `^-Xmx629145600 -XX:\+UseG1GC -XX:\+DisplayVMOutputToStderr -Djava.io.tmpdir=\S+/7 --add-opens=x -cp ` +
			`/cache/c.jar:/opt/spark/conf:/opt/spark/jars/\* org.apache.spark.executor.bellows.WarmExecutor\n` +
			`cores 2 home /opt/spark secret  -Dmine=1\n\[etl 1\] got \{"do":"attach","attachment":1,"key":"k","payload":"eA=="\}\n$`,
		said.String(): `unfinished\n`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("it printed %q, want %s", text, want)
		}
	}
	if !strings.Contains(said.String(), `a report of the JVM`) {
		t.Errorf("nothing is said of nonsense: %q", said.String())
	}
}

// The heap is that of what a container may have: of a FLEX one more than it begins with.
func TestMostMemory(t *testing.T) {
	for most, want := range map[string]int64{"": 1 << 30, "2147483648": 2 << 30, "x": 0} {
		t.Setenv("BELLOWS_MEMORY_BYTES", "1073741824")
		t.Setenv("BELLOWS_MAX_MEMORY_BYTES", most)
		if got, err := mostMemory(); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", most, got, err)
		}
	}
}

// A JVM is not told a heap twice, and prints nothing of it.
func TestToldHeap(t *testing.T) {
	for options, want := range map[string]string{"-Xmx1024k": "", "-Xmx1024k -Da=b": "JDK_JAVA_OPTIONS=-Da=b",
		"-Da=b -Xmx1024k": "JDK_JAVA_OPTIONS=-Da=b -Xmx1024k"} {
		t.Setenv(jdkOptions, options)
		j, _, _ := jvmsOf(t, "")
		got := slices.DeleteFunc(j.command([]string{"/tmp"}).Env, func(pair string) bool {
			return !strings.HasPrefix(pair, jdkOptions)
		})
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", options, got, want)
		}
	}
}

// How a JVM was ended is said.
func TestJVMEnds(t *testing.T) {
	j, _, _ := jvmsOf(t, "kill -9 $$")
	ended := make(chan string, 1)
	if _, err := j.begin(1, func(report) {}, func(how string) { ended <- how }); err != nil {
		t.Fatal(err)
	}
	if got, want := <-ended, "it was ended by signal 9 (killed)"; got != want {
		t.Errorf("it ended: %s, want %s", got, want)
	}
}

// Lines are kept together, and belong to whom was when they were printed, even if they are read later.
func TestOutput(t *testing.T) {
	var printed bytes.Buffer
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := newOutput(from, &printed)
	for _, step := range []string{"start\n", "=a 1", "one\ntw", "o\nthr", "=b 2", "x\n\n",
		strings.Repeat("y", mostLine/2), "=b 2", strings.Repeat("z", mostLine-10), "=", "end\n"} {
		if label, is := strings.CutPrefix(step, "="); is {
			o.own(label)
		} else if _, err := io.WriteString(to, step); err != nil {
			t.Fatal(err)
		}
	}
	_ = to.Close()
	o.copy()
	want := "start\n[a 1] one\n[a 1] two\n[a 1] thr\n[b 2] x\n[b 2] \n[b 2] " + strings.Repeat("y", mostLine/2) +
		"\n[b 2] " + strings.Repeat("z", mostLine-10) + "\nend\n"
	if got := printed.String(); got != want {
		t.Errorf("printed %.300q, want %.300q", got, want)
	}
	o.own("nobody") // although it has ended
	o.write([]byte(strings.Repeat("w", mostLine+1)))
	if n := strings.Count(printed.String(), "[nobody] "); n != 1 {
		t.Errorf("a line that is too long was printed in %d pieces", n)
	}
}

// A line belongs to an application by its name or its id, whatever it says.
func TestBelongs(t *testing.T) {
	const key = "0a1b2c3d-4e5f"
	line := func(name, text string) string {
		return fmt.Sprintf("[%s] %s", label(&attachment{number: 17, key: key, name: name}), text)
	}
	for _, c := range []struct {
		line, application string
		want              bool
	}{
		{line("etl", "x"), "etl", true},
		{line("etl", "x"), "bellows-sp-1796059321228-0a1b2c3d", true},
		{line("etl", "x"), "bellows-sp-1796059321228-0a1b2c3e", false},
		{line("etl", "x"), "0a1b2c3d", false},
		{line("etl", "x"), "et", false},
		{line("etl", "x"), "17", false},
		{line("my etl", "x"), "etl", false},
		{line("my etl", "x"), "my etl", true},
		{line("a [b]\nc", "x"), "a [b]\nc", true},
		{line("a [b]\nc", "x"), "bellows-sp-1-0a1b2c3d", true},
		{line("etl", "[x 11111111 3] y"), "x", false},
		{line("etl", "[x 11111111 3] y"), "bellows-sp-1-11111111", false},
		{line("nightly-reports1", "x"), "nightly-reports1", true},
		{line("e.l", "x"), "etl", false},
		{"bellows: JVM 1 is ready", "etl", false},
		{"", "", false},
	} {
		if got := Belongs(c.application)([]byte(c.line)); got != c.want {
			t.Errorf("%q is of %q: %v", c.line, c.application, got)
		}
	}
	if got, want := line("etl", "x"), "[etl 0a1b2c3d 17] x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Folders of a launcher that was killed are removed by the next; those of one that lives are not.
func TestScratch(t *testing.T) {
	base := t.TempDir()
	t.Setenv("SPARK_LOCAL_DIRS", base)
	begin := func() *scratch {
		s, err := newScratch()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.folders(1); err != nil {
			t.Fatal(err)
		}
		return s
	}
	lives, killed := begin(), begin()
	_ = killed.locks[0].Close()
	other := begin()
	for s, want := range map[*scratch]bool{lives: true, killed: false, other: true} {
		if _, err := os.Stat(filepath.Join(s.roots[0], "1")); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", s.roots[0], err, want)
		}
	}
	lives.end()
	other.end()
	if left, _ := filepath.Glob(filepath.Join(base, "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// BenchmarkHop is the time that the launcher adds to an attachment: from the pool's word to that of a JVM, which is a
// program of the shell, and back, to attach and to park.
func BenchmarkHop(b *testing.B) {
	j, _, _ := jvmsOf(b, `
exec >$BELLOWS_REPORTS
echo '{"is":"ready"}'
while read line; do
case $line in
*park*) echo '{"is":"parked"}';;
*attach*) line=${line#*attachment\":}; echo "{\"is\":\"active\",\"attachment\":${line%%,*}}";;
*) exit;;
esac
done`)
	l := newLauncher()
	l.begin, l.log, l.forget = j.begin, io.Discard, func(string) {}
	err := keep(b.Context(), l, func(context.Context) error {
		for n := int64(1); b.Loop(); n++ {
			to, giveBack := assigned(n, "a", b.Context())
			go giveBack()
			if err := l.serve(to, []byte("payload")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Error(err)
	}
}

// A JVM that is to go first when memory is short is so until it is to stay.
func TestJVMYields(t *testing.T) {
	j, _, _ := jvmsOf(t, "read line")
	ended := make(chan string, 1)
	r, err := j.begin(1, func(report) {}, func(how string) { ended <- how })
	if err != nil {
		t.Fatal(err)
	}
	score := func(process string) string {
		text, err := os.ReadFile("/proc/" + process + "/oom_score_adj")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	own := score("self")
	for is, want := range []string{own, firstToGo, own} {
		if r.yield(is == 1); score(fmt.Sprint(r.(*jvm).process.Pid)) != want {
			t.Errorf("step %d: it has %s, want %s", is, score(fmt.Sprint(r.(*jvm).process.Pid)), want)
		}
	}
	r.send(encode(command{Do: "end"}))
	<-ended
}
