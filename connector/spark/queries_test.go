//go:build spark

package spark_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

var long = flag.Bool("long", false, "run all queries, with all settings")

// A driver is a process of testdata/session.py, which does what it is asked for.
type driver struct {
	name  string
	in    io.Writer
	lines *bufio.Scanner
	log   string // path
	jvm   int    // its process
}

// pythonEnv is the environment of a Python that imports pyspark.
func (m *machine) pythonEnv() []string {
	m.t.Helper()
	home := pyspark(m.t)
	gateway, err := filepath.Glob(filepath.Join(home, "python/lib/py4j-*.zip"))
	if err != nil || len(gateway) != 1 {
		m.t.Fatalf("%d archives of py4j: %v", len(gateway), err)
	}
	return append(slices.Clone(m.env), "PYTHONPATH="+filepath.Dir(home)+":"+gateway[0], "PYTHONDONTWRITEBYTECODE=1",
		"PYSPARK_PYTHON="+m.python)
}

// driver starts a driver with the connector of a jar.
func (m *machine) driver(name, jar string) *driver {
	m.t.Helper()
	d := &driver{name: name, log: filepath.Join(m.dir, name+".log")}
	log, err := os.Create(d.log)
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	program, err := filepath.Abs("testdata/session.py")
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.CommandContext(m.t.Context(), m.python, program)
	cmd.Dir = m.dir // Spark makes folders there.
	cmd.Env = append(m.pythonEnv(), "PYSPARK_SUBMIT_ARGS=--jars "+jar+
		" --driver-java-options '"+quick+" -XX:+UseSerialGC -Djava.io.tmpdir="+m.dir+"' pyspark-shell")
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	d.in, d.lines = in, bufio.NewScanner(out)
	d.lines.Buffer(nil, 16<<20)
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		if d.jvm != 0 {
			_ = syscall.Kill(d.jvm, syscall.SIGCONT)
		}
		_ = in.Close()
		_ = cmd.Wait()
	})
	return d
}

// ask makes a driver do something, and stores what it answers.
func (d *driver) ask(do string, arguments map[string]any, answer any) error {
	order := map[string]any{"do": do}
	maps.Copy(order, arguments)
	if err := json.NewEncoder(d.in).Encode(order); err != nil {
		return fmt.Errorf("%s: %s: %w", d.name, do, err)
	}
	for d.lines.Scan() {
		text, is := strings.CutPrefix(d.lines.Text(), "RESULT ")
		if !is {
			continue
		}
		var said struct {
			OK    json.RawMessage
			Error string
		}
		err := decode([]byte(text), &said)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %s: %w", d.name, do, err)
		case said.Error != "":
			return fmt.Errorf("%s: %s: %s\n%s", d.name, do, said.Error, d.said())
		case answer == nil:
			return nil
		}
		return decode(said.OK, answer)
	}
	return fmt.Errorf("%s: %s: it has ended\n%s", d.name, do, d.said())
}

// said returns the end of its log.
func (d *driver) said() []byte {
	log, _ := os.ReadFile(d.log)
	return log[max(0, len(log)-8<<10):]
}

// open begins an application.
func (d *driver) open(master string, conf map[string]any) error {
	return d.ask("open", map[string]any{"master": master, "name": d.name, "conf": conf}, &d.jvm)
}

// together does something with all drivers at once. Their errors fail the test.
func together(t *testing.T, drivers []*driver, do func(*driver) error) {
	t.Helper()
	var all sync.WaitGroup
	for _, d := range drivers {
		all.Go(func() {
			if err := do(d); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// part runs a test of its own on the same machine.
func (m *machine) part(name string, run func(*machine)) {
	m.t.Run(name, func(t *testing.T) {
		of := *m
		of.t = t
		run(&of)
	})
}

// status is what a pool says of itself.
type status struct {
	Busy     int
	Counters struct{ Switched, Lost int64 }
	Members  []struct{ Job int }
}

func (m *machine) status(pool string) (s status, err error) {
	cmd := exec.Command(m.bellows, "pool", "top", pool, "--once", "--json")
	cmd.Env = m.env
	out, err := cmd.Output()
	if err != nil {
		return s, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	return s, json.Unmarshal(out, &s)
}

// ordered has the columns by which queries are ordered.
var ordered = map[int][]int{1: {0, 1}, 2: {0, 2, 1, 3}, 3: {1, 2}, 4: {0}, 5: {1}, 7: {0, 1, 2}, 8: {0}, 9: {0, 1},
	10: {2}, 11: {1}, 12: {0}, 13: {1, 0}, 15: {0}, 16: {3, 0, 1, 2}, 18: {4, 3}, 20: {0}, 21: {1, 0}, 22: {0}}

// mostRuns bounds how often a query runs until an executor changes hands meanwhile.
const mostRuns = 30

// finds asks a driver for rows, which must be those, in the order of columns.
func (d *driver) finds(want table, do string, arguments map[string]any, by ...int) error {
	var got table
	if err := d.ask(do, arguments, &got); err != nil {
		return err
	}
	if how := got.differs(want, by...); how != "" {
		return fmt.Errorf("%s: %s %v: %s", d.name, do, arguments, how)
	}
	return nil
}

// query lets a driver run a query, which must find the rows.
func (d *driver) query(number int, want table) error {
	return d.finds(want, "query", map[string]any{"number": number}, ordered[number]...)
}

// compare runs a query until an executor of the pool changes hands meanwhile. Each time it must find the same rows.
func (m *machine) compare(d *driver, pool string, number int, want table) error {
	for runs := 1; runs <= mostRuns; runs++ {
		before, err := m.status(pool)
		if err != nil {
			return err
		}
		if err := d.query(number, want); err != nil {
			return err
		}
		after, err := m.status(pool)
		if err != nil {
			return err
		}
		if hands := after.Counters.Switched - before.Counters.Switched; hands > 0 {
			m.t.Logf("%s: query %d: %d rows; executors changed hands %d times in run %d", d.name, number, len(want), hands, runs)
			return nil
		}
	}
	return fmt.Errorf("%s: query %d: no executor changed hands in %d runs", d.name, number, mostRuns)
}

// executorMemory is the memory of an executor.
const executorMemory = 1300 << 20 // bytes

// local is what a Spark without bellows says.
type local struct {
	queries map[int]table
	cached  []any // of cachedRows
}

// reference makes tables in a folder, and lets a Spark of its own query them, in the JVM of a driver.
func (m *machine) reference(d *driver, folder string, numbers []int, orders int) (l local, err error) {
	if err := d.open("local[2]", nil); err != nil {
		return l, err
	}
	var made int
	if err := d.ask("make", map[string]any{"folder": folder, "orders": orders}, &made); err != nil {
		return l, err
	}
	if err := d.ask("tables", map[string]any{"folder": folder}, nil); err != nil {
		return l, err
	}
	l.queries = map[int]table{}
	for _, number := range numbers {
		var rows table
		if err := d.ask("query", map[string]any{"number": number}, &rows); err != nil {
			return l, err
		}
		if len(rows) == 0 || !slices.ContainsFunc(rows[0], func(v any) bool { return v != nil }) {
			m.t.Errorf("query %d finds nothing", number)
		}
		if other := rows.swapped(); len(rows) > 1 && (other == nil || other.differs(rows, ordered[number]...) == "") {
			m.t.Errorf("query %d: no swap makes a difference: %v", number, rows)
		}
		l.queries[number] = rows
	}
	if err := d.ask("count", map[string]any{"rows": cachedRows(m.t), "keep": false}, &l.cached); err != nil {
		return l, err
	}
	m.t.Logf("%d rows in the tables", made)
	return l, d.ask("close", nil, nil)
}

// pool creates a pool of executors, and returns the line that says how to use it, and the jar of the connector in it.
func (m *machine) pool(name string, flags ...string) (line, jar string) {
	m.t.Helper()
	line = m.run(append([]string{m.bellows, "pool", "create", name, "--spark", "auto"}, flags...)...)
	found := regexp.MustCompile(`--jars (\S+)`).FindStringSubmatch(line)
	if found == nil {
		m.t.Fatalf("no jar: %s", line)
	}
	return line, found[1]
}

// settings are those of applications that query: Spark runs the same query in other ways.
var settings = []map[string]any{
	{},
	{"spark.sql.autoBroadcastJoinThreshold": -1},
	{"spark.sql.adaptive.enabled": false, "spark.sql.autoBroadcastJoinThreshold": -1},
	{"spark.speculation": true, "spark.speculation.interval": "50ms", "spark.speculation.quantile": 0.3,
		"spark.speculation.multiplier": 1.1, "spark.speculation.minTaskRuntime": "20ms"},
	{"spark.memory.offHeap.enabled": true, "spark.memory.offHeap.size": "64m"},
	{"spark.serializer": "org.apache.spark.serializer.KryoSerializer", "spark.io.encryption.enabled": true},
	{"spark.sql.codegen.wholeStage": false, "spark.sql.sources.useV1SourceList": ""},
}

// Queries of several applications find the rows that a Spark of its own finds, although executors change hands during
// each of them: the applications share two, and another one takes an executor once a second.
func TestSparkQueries(t *testing.T) {
	beside(t)
	m := begin(t)
	names, numbers, orders := []string{"a", "b"}, []int{1, 9, 15, 18, 21}, 2000
	if *long {
		names, numbers, orders = []string{"a", "b", "c"}, nil, 8000
		for number := range 22 {
			numbers = append(numbers, number+1)
		}
	}
	_, jar := m.pool("sp", "--memory", fmt.Sprintf("%dB", executorMemory), "--min", "2", "--max", "2")
	folder := filepath.Join(m.dir, "tables")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	taker := m.driver("taker", jar)
	var drivers []*driver
	for _, name := range names {
		drivers = append(drivers, m.driver(name, jar))
	}
	all := append([]*driver{taker}, drivers...)
	var want local
	together(t, all, func(d *driver) (err error) {
		if d == drivers[0] {
			if want, err = m.reference(d, folder, numbers, orders); err != nil {
				return err
			}
		}
		return d.open("spark-bellows://sp", settings[max(0, slices.Index(drivers, d))])
	})
	if err := taker.ask("take", map[string]any{"seconds": 1}, nil); err != nil {
		t.Fatal(err)
	}
	for first := 0; first == 0 || *long && first < len(settings); first += len(drivers) {
		together(t, drivers, func(d *driver) error {
			nth := slices.Index(drivers, d)
			if first > 0 {
				if err := d.open("spark-bellows://sp", settings[(first+nth)%len(settings)]); err != nil {
					return err
				}
			}
			if err := d.ask("tables", map[string]any{"folder": folder}, nil); err != nil {
				return err
			}
			for i := range numbers {
				number := numbers[(i+nth*len(numbers)/len(drivers))%len(numbers)] // each begins with another one
				if err := m.compare(d, "sp", number, want.queries[number]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := taker.ask("rest", nil, nil); err != nil {
		t.Fatal(err)
	}
	together(t, all, func(d *driver) error { return d.ask("close", nil, nil) })
	m.part("streams", func(m *machine) { m.streams(drivers[:2]) })
	m.part("apart", func(m *machine) { m.apart(drivers[0]) })
	m.run(m.bellows, "pool", "rm", "sp")
	m.part("cached", func(m *machine) { m.cached(all[:3], want.cached) })
}
