//go:build spark

package spark_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Functions of pandas compute what they compute in a Spark of its own, in two applications that share one executor. A
// notebook, whose kernel begins anew, and a server of Spark Connect, whose clients have files of their own, run on the
// pool.
func TestLongSparkPython(t *testing.T) {
	m := begin(t)
	m.python = fetched(t, "pandas", "python")
	m.env = append(m.env, "PYSPARK_PYTHON="+m.python)
	line, jar := m.pool("py", "--min", "1", "--max", "1")
	m.part("pandas", func(m *machine) { m.pandas(jar) })
	m.part("notebook", func(m *machine) { m.notebook(jar) })
	m.part("connect", func(m *machine) { m.connect(line) })
}

func (m *machine) pandas(jar string) {
	m.t.Helper()
	folder := filepath.Join(m.dir, "tables")
	if err := os.Mkdir(folder, 0o700); err != nil {
		m.t.Fatal(err)
	}
	drivers := []*driver{m.driver("a", jar), m.driver("b", jar)}
	if _, err := m.reference(drivers[0], folder, nil, 2000); err != nil {
		m.t.Fatal(err)
	}
	functions := []string{"rows", "groups", "frames", "batches", "frame"}
	want := map[string]table{}
	if err := drivers[0].open("local[2]", nil); err != nil {
		m.t.Fatal(err)
	}
	if err := drivers[0].ask("tables", map[string]any{"folder": folder}, nil); err != nil {
		m.t.Fatal(err)
	}
	for _, what := range functions {
		var rows table
		if err := drivers[0].ask("pandas", map[string]any{"what": what}, &rows); err != nil {
			m.t.Fatal(err)
		}
		if other := rows.swapped(); other == nil || other.differs(rows) == "" {
			m.t.Errorf("%s: no swap makes a difference: %v", what, rows)
		}
		want[what] = rows
	}
	together(m.t, drivers, func(d *driver) error {
		if err := d.open("spark-bellows://py", nil); err != nil {
			return err
		}
		if err := d.ask("tables", map[string]any{"folder": folder}, nil); err != nil {
			return err
		}
		for i := range functions {
			what := functions[(i+slices.Index(drivers, d))%len(functions)]
			if err := d.finds(want[what], "pandas", map[string]any{"what": what}); err != nil {
				return err
			}
		}
		return nil
	})
	s, err := m.status("py")
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Logf("executors changed hands %d times", s.Counters.Switched)
	if s.Counters.Switched == 0 {
		m.t.Error("no executor changed hands")
	}
	together(m.t, drivers, func(d *driver) error { return d.ask("close", nil, nil) })
}

// program runs a program of testdata, and reads its result.
func (m *machine) program(name string, result any, arguments ...string) error {
	cmd := exec.CommandContext(m.t.Context(), m.python, append([]string{"testdata/" + name}, arguments...)...)
	cmd.Env = m.pythonEnv()
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	_, text, _ := strings.Cut(string(out), "RESULT ")
	if err == nil {
		err = json.Unmarshal([]byte(text), result)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s\n%s", name, err, out, said.String())
	}
	return nil
}

func (m *machine) notebook(jar string) {
	var out struct{ First, Second [][]string }
	if err := m.program("notebook.py", &out, "spark-bellows://py", jar); err != nil {
		m.t.Fatal(err)
	}
	kernels := map[string]bool{}
	for _, run := range [][][]string{out.First, out.Second} {
		if len(run) != 2 || len(run[0]) != 1 || len(run[1]) != 1 || run[0][0] != "1000" {
			m.t.Fatalf("the cells say %v", run)
		}
		kernel, rows, _ := strings.Cut(strings.Trim(run[1][0], "()"), ", ")
		kernels[kernel] = true
		if want := "[[0, 166833], [1, 166167], [2, 166500]]"; rows != want {
			m.t.Errorf("rows %s, want %s", rows, want)
		}
	}
	if len(kernels) != 2 {
		m.t.Errorf("the kernel has not begun anew: %v", kernels)
	}
}

func (m *machine) connect(line string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = listener.Close()
	server := m.start(line, "connect", "--class org.apache.spark.sql.connect.service.SparkConnectServer --conf "+
		"spark.connect.grpc.binding.address=127.0.0.1 --conf spark.connect.grpc.binding.port="+port+" spark-internal")
	m.t.Cleanup(func() {
		_ = server.cmd.Process.Kill()
		_ = server.cmd.Wait()
	})
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			break
		} else if time.Now().After(deadline) {
			server.fatal(err.Error())
		}
	}
	for _, name := range []string{"one", "two-of-them"} { // whose files differ
		folder := filepath.Join(m.dir, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			m.t.Fatal(err)
		}
		var got, want any
		if err := m.program("connect.py", &got, "sc://"+address, folder); err != nil {
			server.fatal(err.Error())
		}
		text := fmt.Sprintf(`{"groups": [[0, 642642], [1, 643071], [2, 643500], [3, 643929], [4, 641358], [5, 641786],
			[6, 642214]], "udf": [[%d]], "pandas": [[8997000]], "view": [[1500]], "frame": [[4498500]], "error": true}`,
			4498500*len(folder))
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			m.t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			m.t.Errorf("the client that has %s: %v, want %v", folder, got, want)
		}
	}
}
