package spark_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// A table is what a query returns, by rows. Values are of JSON; only floating numbers have a point or an exponent.
type table [][]any

func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// floating returns the value of a floating number.
func floating(v any) (value float64, is bool) {
	n, ok := v.(json.Number)
	if !ok || !strings.ContainsAny(n.String(), ".eE") {
		return 0, false
	}
	value, err := n.Float64()
	return value, err == nil
}

// tolerance is by how much floating sums of the same numbers in another order may differ, of their size.
const tolerance = 1e-9

func sameValue(a, b any) bool {
	x, isFloating := floating(a)
	y, both := floating(b)
	if isFloating && both {
		return math.Abs(x-y) <= tolerance*max(math.Abs(x), math.Abs(y))
	}
	return a == b
}

// normalised returns the rows in an order that depends on them alone: by exact values, then by floating ones.
func (t table) normalised() table {
	exact := func(row []any) string {
		var text strings.Builder
		for _, v := range row {
			if _, is := floating(v); !is {
				fmt.Fprintf(&text, "%v\x00", v)
			}
		}
		return text.String()
	}
	out := slices.Clone(t)
	slices.SortStableFunc(out, func(a, b []any) int {
		order := cmp.Compare(exact(a), exact(b))
		for i := 0; order == 0 && i < min(len(a), len(b)); i++ {
			x, _ := floating(a[i])
			y, _ := floating(b[i])
			order = cmp.Compare(x, y)
		}
		return order
	})
	return out
}

// differs returns how a table differs from the one that it should be; empty if it does not. Rows may have any order,
// but the columns that a query is ordered by have the same values from row to row.
func (t table) differs(want table, by ...int) string {
	if len(t) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(t), len(want))
	}
	for i := range want {
		for _, column := range by {
			if !sameValue(t[i][column], want[i][column]) {
				return fmt.Sprintf("row %d in order: column %d is %v, want %v", i, column, t[i][column], want[i][column])
			}
		}
	}
	got, want := t.normalised(), want.normalised()
	for i := range want {
		if !slices.EqualFunc(got[i], want[i], sameValue) {
			return fmt.Sprintf("row %d: %v, want %v", i, got[i], want[i])
		}
	}
	return ""
}

// swapped returns a table in which values of two rows are exchanged; nil if no exchange makes a difference.
func (t table) swapped() table {
	for i := range t {
		for j := range t[:i] {
			for column := range t[i] {
				out := slices.Clone(t)
				out[i], out[j] = slices.Clone(t[i]), slices.Clone(t[j])
				out[i][column], out[j][column] = t[j][column], t[i][column]
				if out.differs(t) != "" {
					return out
				}
			}
		}
	}
	return nil
}

// Tables that differ in a row, in a value or in their order do not pass for the same, and nothing else keeps two from
// that.
func TestTablesDiffer(t *testing.T) {
	read := func(text string) (rows table) {
		if err := decode([]byte(text), &rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	want := read(`[["a", 1, 0.1, "1.50"], ["b", 2, 0.2, null], ["b", 3, 2e10, "9007199254740993"]]`)
	for _, c := range []struct {
		name, rows string
		by         []int
		same       bool
	}{
		{"the same", `[["a", 1, 0.1, "1.50"], ["b", 2, 0.2, null], ["b", 3, 2e10, "9007199254740993"]]`, []int{0, 1}, true},
		{"another order", `[["b", 3, 2e10, "9007199254740993"], ["a", 1, 0.1, "1.50"], ["b", 2, 0.2, null]]`, nil, true},
		{"another order among equals", `[["a", 1, 0.1, "1.50"], ["b", 3, 2e10, "9007199254740993"], ["b", 2, 0.2, null]]`,
			[]int{0}, true},
		{"not in order", `[["b", 2, 0.2, null], ["a", 1, 0.1, "1.50"], ["b", 3, 2e10, "9007199254740993"]]`, []int{0}, false},
		{"a sum in another order", `[["a", 1, 0.1, "1.50"], ["b", 2, 0.20000000000000001, null],
			["b", 3, 20000000001.0, "9007199254740993"]]`, []int{0, 1}, true},
		{"another sum", `[["a", 1, 0.1, "1.50"], ["b", 2, 0.2, null], ["b", 3, 20000001000.0, "9007199254740993"]]`, nil, false},
		{"a row is missing", `[["a", 1, 0.1, "1.50"], ["b", 2, 0.2, null]]`, nil, false},
		{"a row twice", `[["a", 1, 0.1, "1.50"], ["b", 2, 0.2, null], ["b", 2, 0.2, null]]`, nil, false},
		{"a whole number", `[["a", 2, 0.1, "1.50"], ["b", 2, 0.2, null], ["b", 3, 2e10, "9007199254740993"]]`, nil, false},
		{"a decimal", `[["a", 1, 0.1, "1.5"], ["b", 2, 0.2, null], ["b", 3, 2e10, "9007199254740993"]]`, nil, false},
		{"something for nothing", `[["a", 1, 0.1, "1.50"], ["b", 2, 0.2, ""], ["b", 3, 2e10, "9007199254740993"]]`, nil, false},
		{"a column is missing", `[["a", 1, 0.1, "1.50"], ["b", 2, 0.2], ["b", 3, 2e10, "9007199254740993"]]`, nil, false},
	} {
		if got := read(c.rows).differs(want, c.by...); (got == "") != c.same {
			t.Errorf("%s: differs by %q", c.name, got)
		}
	}
	if got := want.swapped(); got == nil || got.differs(want) == "" {
		t.Errorf("swapped returns %v", got)
	}
}
