package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/resource"
)

// readModel reads a model that was written as JSON, as whoever keeps one does.
func readModel(text []byte) (m Model, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return m, errors.New("must be one JSON object, but more follows it")
	}
	return m, m.Check()
}

func checkRoundTrip(t rapid.TB, m Model) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := readModel(text)
	if err != nil {
		t.Fatalf("%v in its own %s", err, text)
	}
	if !reflect.DeepEqual(m, again) {
		t.Fatalf("%+v read back as %+v", m, again)
	}
}

const (
	stepText = `{"version":1,"kind":"step","ideal_memory_bytes":1000,"ideal_duration_ns":100,"min_memory_bytes":10,"undersized_duration_ns":150}`
	sawText  = `{"version":1,"kind":"sawtooth","ideal_memory_bytes":1000,"ideal_duration_ns":100,"min_memory_bytes":10,"buffer":{"share":0.8,"overhead_bytes":4},"input_bytes":700,"spill_rate_bytes_per_s":1000000}`
	monoText = `{"version":1,"kind":"monotone","ideal_memory_bytes":1000,"ideal_duration_ns":100,"min_memory_bytes":10,"points":[{"memory_bytes":10,"duration_ns":300},{"memory_bytes":1000,"duration_ns":100}]}`
)

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ text, from, to, want string }{
		{stepText, `"version":1`, `"version":2`, "version 2: must be 1"},
		{stepText, `"step"`, `"stairs"`, `"stairs": must be one of`},
		{stepText, `"kind":"step",`, ``, "kind 0: must be one of"},
		{stepText, `:150`, `:0`, "undersized_duration_ns 0: must be above 0"},
		{stepText, `_bytes":10,`, `_bytes":1001,`, "min_memory_bytes 1001: must be 1 to ideal_memory_bytes, 1000"},
		{stepText, `"kind"`, `"color":1,"kind"`, `unknown field "color"`},
		{stepText, `150}`, `150}{}`, "more follows"},
		{sawText, `0.8`, `1.5`, "buffer share 1.5: must be above 0"},
		{sawText, `700`, `-7`, "input_bytes -7"},
		{sawText, `"buffer":{"share":0.8,"overhead_bytes":4},`, ``, "buffer: must be given"},
		{monoText, `300`, `30`, "points[1].duration_ns 100: must not be above"},
		{monoText, `[{"memory_bytes":10`, `[{"memory_bytes":1000`, "points[1].memory_bytes 1000: must be above"},
		{monoText, `{"memory_bytes":1000,`, `{"memory_bytes":999,`, "points: must end at the ideal"},
	} {
		text := strings.Replace(c.text, c.from, c.to, 1)
		if _, err := readModel([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want it to say %q", text, err, c.want)
		}
	}
}

// Bytes that are read at all give a model that is safe to use everywhere.
func FuzzRead(f *testing.F) {
	// It spills so slowly that it takes 7e9 times as long.
	slow := `{"version":1,"kind":"sawtooth","ideal_memory_bytes":100,"ideal_duration_ns":1,"min_memory_bytes":1,` +
		`"buffer":{"share":0.8,"overhead_bytes":4},"input_bytes":7,"spill_rate_bytes_per_s":1}`
	for _, text := range []string{stepText, sawText, monoText, slow, `{}`, `null`, `[`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := readModel(text)
		if err != nil {
			return
		}
		checkRoundTrip(t, m)
		checkScheduler(t, m)
		for _, memory := range []resource.Amount{1, m.MinMemory, m.IdealMemory - 1, m.IdealMemory, maxMemory} {
			if d := m.Duration(memory); d <= 0 {
				t.Fatalf("run time at %d bytes: %v, from %s", memory, d, text)
			}
		}
	})
}
