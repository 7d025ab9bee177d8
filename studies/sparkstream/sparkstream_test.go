package sparkstream

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A job waits for its first task only if its application ran none; the logs of all applications count.
func TestStarts(t *testing.T) {
	one := `{"Event":"SparkListenerLogStart","Spark Version":"4.2.0"}
{"Event":"SparkListenerJobStart","Job ID":0,"Submission Time":1000}
{"Event":"SparkListenerTaskStart","Stage ID":0,"Task Info":{"Task ID":0,"Launch Time":1250}}
{"Event":"SparkListenerTaskStart","Stage ID":0,"Task Info":{"Task ID":1,"Launch Time":1900}}
{"Event":"SparkListenerJobStart","Job ID":1,"Submission Time":1950}
{"Event":"SparkListenerTaskEnd","Stage ID":0,"Task Info":{"Task ID":0,"Launch Time":1250}}
{"Event":"SparkListenerTaskEnd","Stage ID":0,"Task Info":{"Task ID":1,"Launch Time":1900}}
{"Event":"SparkListenerJobStart","Job ID":2,"Submission Time":5000}
{"Event":"SparkListenerJobStart","Job ID":3,"Submission Time":5500}
{"Event":"SparkListenerTaskStart","Stage ID":1,"Task Info":{"Task ID":2,"Launch Time":6000}}
`
	other := strings.ReplaceAll(one, ":1250", ":1004")
	dir := t.TempDir()
	for name, text := range map[string]string{"a/events_1_app": one, "b/events_1_app": other, "b/appstatus_app": "x"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := starts(dir); err != nil || !reflect.DeepEqual(got, []float64{0.25, 1, 0.004, 1}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := starts(t.TempDir()); err == nil {
		t.Errorf("without logs: %v", got)
	}
}

// The table has medians, and the ratio of each round.
func TestWrite(t *testing.T) {
	r := &Result{Applications: 2, Executors: 2, Queries: 1, Think: 4 * time.Second}
	for round := 1; round <= 3; round++ {
		for i := range contenders {
			took := float64(i + 1)
			r.Runs = append(r.Runs, Run{Contender: contenders[i].Name, Round: round, Took: 10 * took * float64(round),
				Queries: []Query{{Took: took}, {Took: took}}, Starts: []float64{took, took / 1e3, took / 10}})
		}
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Medians of 3 rounds", "20.0      1.00      100     1000",
		"80.0      4.00      400     4000", "0.25 (0.25–0.25)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}

// What the machine has done is what its counters have grown by.
func TestMachine(t *testing.T) {
	before, err := readMachine()
	if err != nil {
		t.Fatal(err)
	}
	if before.Used <= 0 {
		t.Errorf("%+v", before)
	}
	after := before
	after.Used, after.Steal, after.Load = after.Used+2, after.Steal+1, 7
	if got := after.since(before); got != (machine{2, 1, 7}) {
		t.Errorf("%+v", got)
	}
}
