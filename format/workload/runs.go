package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// runs is a list of integers as written in a workload file of version 1: a value, or [value,count] for a repeated
// value.
type runs struct {
	values []run
	total  int // of all counts
}

type run struct {
	value int64
	count int
}

// mostListed is the most integers that one list may contain.
const mostListed = 1 << 22

// UnmarshalJSON implements json.Unmarshaler. Text is valid JSON.
func (r *runs) UnmarshalJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if first, _ := dec.Token(); first != json.Delim('[') {
		return fmt.Errorf("must be a list of whole numbers")
	}
	*r = runs{}
	for dec.More() {
		var element any
		if err := dec.Decode(&element); err != nil {
			return err
		}
		one, ok := runOf(element)
		if !ok {
			return fmt.Errorf("must be a list of whole numbers, or of [number,count] for one that repeats")
		}
		if r.total += one.count; r.total > mostListed {
			return fmt.Errorf("must hold at most %d numbers", mostListed)
		}
		r.values = append(r.values, one)
	}
	return nil
}

// runOf reads an element of a list.
func runOf(element any) (one run, ok bool) {
	one.count = 1
	if pair, repeats := element.([]any); repeats {
		if len(pair) != 2 {
			return one, false
		}
		count, isNumber := pair[1].(json.Number)
		n, err := count.Int64()
		if !isNumber || err != nil || n < 1 || n > mostListed {
			return one, false
		}
		element, one.count = pair[0], int(n)
	}
	number, isNumber := element.(json.Number)
	value, err := number.Int64()
	one.value = value
	return one, isNumber && err == nil
}
