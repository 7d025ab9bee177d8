package workload

import (
	"fmt"
	"strconv"
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

// UnmarshalJSON implements json.Unmarshaler. Text is valid JSON without space around it.
func (r *runs) UnmarshalJSON(text []byte) error {
	s := runScanner{text: text}
	if !s.take('[') {
		return fmt.Errorf("must be a list of whole numbers")
	}
	*r = runs{}
	for !s.take(']') {
		if len(r.values) > 0 && !s.take(',') {
			return fmt.Errorf("must be a list of whole numbers")
		}
		one := run{count: 1}
		pair := s.take('[')
		ok := s.whole(&one.value)
		if ok && pair {
			var count int64
			ok = s.take(',') && s.whole(&count) && s.take(']') && count >= 1 && count <= mostListed
			one.count = int(count)
		}
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

// runScanner reads the few kinds of tokens of such a list.
type runScanner struct {
	text []byte
	at   int
}

func (s *runScanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t' || s.text[s.at] == '\r' || s.text[s.at] == '\n') {
		s.at++
	}
}

func (s *runScanner) take(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *runScanner) whole(to *int64) bool {
	s.space()
	start := s.at
	for s.at < len(s.text) && (s.text[s.at] == '-' || isDigit(s.text[s.at])) {
		s.at++
	}
	v, err := strconv.ParseInt(string(s.text[start:s.at]), 10, 64)
	*to = v
	return err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// expand returns the expanded list.
func expand[T ~int64](r *runs, convert func(int64) (T, bool)) (all []T, ok bool) {
	if r == nil {
		return nil, true
	}
	all = make([]T, 0, r.total)
	for _, one := range r.values {
		v, ok := convert(one.value)
		if !ok {
			return nil, false
		}
		for range one.count {
			all = append(all, v)
		}
	}
	return all, true
}
