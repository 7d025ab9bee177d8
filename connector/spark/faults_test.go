//go:build spark

package spark_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/connector/spark"
)

// faulty returns the jar of the sources in testdata.
func (m *machine) faulty() string {
	m.t.Helper()
	j, err := spark.FindJava(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	jar := filepath.Join(m.dir, "faults.jar")
	m.run(j.Path, "-cp", filepath.Join(pyspark(m.t), "jars", "*"), "scala.tools.nsc.Main", "-usejavacp", "-nowarn",
		"-d", jar, "testdata/Faults.scala", "testdata/Stranger.scala")
	return jar
}

// said is what the executors of the pool have printed.
func (m *machine) said() string {
	m.t.Helper()
	return m.run(m.bellows, "logs", "--stderr", "pool/sp")
}

// Hadoop keeps clients of file systems, with what they authenticate by. No application gets that of another one that
// the same JVM is attached to.
func TestLongSparkClients(t *testing.T) {
	m := begin(t)
	_, jar := m.pool("sp", "--min", "1", "--max", "1")
	jars := jar + "," + m.faulty()
	drivers := []*driver{m.driver("one", jars), m.driver("two", jars)}
	for owner, d := range drivers {
		if err := d.open("spark-bellows://sp", map[string]any{"spark.hadoop.bellows.owner": owner + 1}); err != nil {
			t.Fatal(err)
		}
	}
	processes := map[int]bool{}
	for range 2 {
		for owner, d := range drivers {
			var jvm, got int
			if err := d.ask("jvm", nil, &jvm); err != nil {
				t.Fatal(err)
			}
			processes[jvm] = true
			if err := d.ask("function", map[string]any{"name": "faults.Owner", "text": "bellows.owner"}, &got); err != nil {
				t.Fatal(err)
			}
			if got != owner+1 {
				t.Errorf("application %d has the client of application %d", owner+1, got)
			}
		}
	}
	if len(processes) != 1 {
		t.Errorf("they ran in the JVMs %v, want one", processes)
	}
}

// Whoever does not know the secret of an application, such as another user, gets nothing of it. Without a secret who
// reaches its ports has its settings and its data, and it warns of that.
func TestLongSparkStranger(t *testing.T) {
	m := begin(t)
	_, jar := m.pool("sp", "--min", "1", "--max", "1")
	faulty := m.faulty()
	d := m.driver("one", jar)
	for _, secret := range []string{"", "of one application"} {
		conf := map[string]any{}
		if secret != "" {
			conf = map[string]any{"spark.authenticate": true, "spark.authenticate.secret": secret}
		}
		if err := d.open("spark-bellows://sp", conf); err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(d.log)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(log), "spark.authenticate is not true"); n != 1 {
			t.Errorf("with the secret %q: %d warnings, want one in all", secret, n)
		}
		if err := d.ask("count", map[string]any{"rows": 1000, "keep": true}, nil); err != nil {
			t.Fatal(err)
		}
		var ports []int
		if err := d.ask("ports", nil, &ports); err != nil {
			t.Fatal(err)
		}
		if len(ports) != 3 {
			t.Fatalf("ports %v, want those of a driver and of two block managers", ports)
		}
		args := []string{"java", "-cp", faulty + ":" + filepath.Join(pyspark(t), "jars", "*"),
			"org.apache.spark.stranger.Stranger"}
		for _, port := range ports {
			args = append(args, fmt.Sprint(port))
		}
		var got struct{ Settings, Bytes int }
		_, text, _ := strings.Cut(m.run(args...), "RESULT ")
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if secret == "" && (got.Settings == 0 || got.Bytes == 0) || secret != "" && got.Settings+got.Bytes != 0 {
			t.Errorf("with the secret %q a stranger gets %+v", secret, got)
		}
	}
	if err := d.ask("close", nil, nil); err != nil {
		t.Fatal(err)
	}
}

// What users do by mistake costs at most a JVM, and their own jobs: a task that ends its JVM, one that does not end
// although its application is gone, threads that never end, a driver that does not answer, and a port that is taken.
func TestLongSparkFaults(t *testing.T) {
	m := begin(t)
	_, jar := m.pool("sp", "--min", "1", "--max", "1")
	faulty := m.driver("faulty", jar+","+m.faulty())
	other := m.driver("other", jar)
	open := func(d *driver, conf map[string]any) {
		t.Helper()
		if err := d.open("spark-bellows://sp", conf); err != nil {
			t.Fatal(err)
		}
	}
	var want []any
	counts := func(why string) {
		t.Helper()
		var got []any
		if err := other.ask("count", map[string]any{"rows": 100_000, "keep": false}, &got); err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		if want == nil {
			want = got
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", why, got, want)
		}
	}
	call := func(name, text string) error {
		var n int
		err := faulty.ask("function", map[string]any{"name": "faults." + name, "text": text}, &n)
		if err == nil && n != 1 {
			err = fmt.Errorf("the function returns %d", n)
		}
		return err
	}
	prints := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			said := m.said()
			if strings.Contains(said, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("no %q in\n%s", want, said)
			}
		}
	}
	open(faulty, nil)
	open(other, nil)
	counts("at first")

	file := filepath.Join(m.dir, "exit")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := call("Exit", file); err != nil {
		t.Errorf("after the end of its JVM: %v", err)
	}
	prints("JVM 1 has ended: exit code 7")
	counts("after the end of a JVM")

	// A driver that stands still: others have the executor once its lease has ended, and it goes on later.
	if err := faulty.ask("take", map[string]any{"seconds": 0.01}, nil); err != nil {
		t.Fatal(err)
	}
	counts("in turns")
	if err := syscall.Kill(faulty.jvm, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 3 {
		counts("while a driver does not answer")
	}
	t.Logf("%.0f s while a driver does not answer", time.Since(began).Seconds())
	if err := syscall.Kill(faulty.jvm, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := faulty.ask("rest", nil, nil); err != nil {
		t.Error(err)
	}

	// Threads that applications leave behind.
	for n := range 30 {
		open(faulty, nil)
		if err := call(map[bool]string{true: "Leak", false: "Exit"}[n == 20], "2500"); err != nil {
			t.Fatal(err)
		}
	}
	if err := faulty.ask("close", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := other.ask("close", nil, nil); err != nil {
		t.Fatal(err)
	}
	prints("is replaced: its threads have grown from")
	open(other, nil)
	counts("in the next JVM")

	// A port that is taken: Spark tries the next ones. Without a next one the application is told why.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	open(faulty, map[string]any{"spark.blockManager.port": port, "spark.driver.blockManager.port": 0})
	if err := call("Exit", file); err != nil {
		t.Error(err)
	}
	open(faulty, map[string]any{"spark.blockManager.port": port, "spark.driver.blockManager.port": 0,
		"spark.port.maxRetries": 0})
	if err := call("Exit", file); err == nil || !strings.Contains(err.Error(), "Address already in use") {
		t.Errorf("with a port that is taken: %v", err)
	}
	counts("after attachments that failed")

	open(faulty, map[string]any{"spark.authenticate": true, "spark.authenticate.secret": "of one application",
		"spark.network.crypto.enabled": true})
	if err := call("Exit", file); err != nil {
		t.Errorf("with authentication: %v", err)
	}

	// A task that does not end, of a driver that is killed.
	open(faulty, nil)
	spins := filepath.Join(m.dir, "spins")
	go func() { _ = call("Spin", spins) }()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(spins); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(faulty.jvm, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	counts("after a task that does not end")
	prints("Full thread dump")
	if err := other.ask("close", nil, nil); err != nil {
		t.Fatal(err)
	}
}
