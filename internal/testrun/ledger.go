package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// mostOutput is the length of the end of a test's output that the ledger keeps.
const mostOutput = 16 << 10

// record adds the results to the ledger, one line of JSON each. An empty path is no ledger.
func (r *run) record(path string) error {
	if path == "" {
		return nil
	}
	var text bytes.Buffer
	for _, o := range r.results {
		if o.Outcome == passed {
			o.Output = ""
		}
		o.Output = o.Output[max(0, len(o.Output)-mostOutput):]
		if err := json.NewEncoder(&text).Encode(o); err != nil {
			return fmt.Errorf("record %s: %w", o.name(), err)
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return fmt.Errorf("open the ledger: %w", err)
	}
	_, err = file.Write(text.Bytes())
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return nil
}

func readLedger(path string) (results []result, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	defer file.Close()
	for lines := json.NewDecoder(file); ; {
		var o result
		if err := lines.Decode(&o); err == io.EOF {
			return results, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the ledger %s: %w", path, err)
		}
		results = append(results, o)
	}
}

// The limits of what accountFor prints, so that the last lines of a long output contain it: the number of lines of a
// test's output, and the number of failed tests with output. Each flaky test has output; the other failed tests are
// only named.
const (
	shownTests  = 3
	shownLines  = 12
	shownOthers = 10
)

// accountFor prints the outcomes of the tests in a ledger, and returns the exit code.
func accountFor(path string, out, complaints io.Writer) int {
	results, err := readLedger(path)
	if err != nil {
		fmt.Fprintln(complaints, "testrun:", err)
		return 1
	}
	var never, left, faults []result
	ran, later := map[testName]bool{}, map[testName]bool{}
	for _, o := range results {
		_, tests := leftToTurn(o)
		for _, test := range tests {
			later[testName{o.Package, test}] = true
		}
		if o.Outcome != skipped {
			markRun(ran, o.Package, o.Test)
			markRun(ran, o.Package, inGuest(o.Test))
		}
	}
	for _, o := range results {
		name := testName{o.Package, o.Test}
		switch {
		case o.Outcome == failed || o.Outcome == flaky:
			faults = append(faults, o)
		case o.Outcome == skipped && !ran[name] && !strings.Contains(o.Output, "../shared"):
			ran[name] = true // once is enough
			top, _, _ := strings.Cut(o.Test, "/")
			if turn, _ := leftToTurn(o); turn != "" || later[testName{o.Package, top}] {
				left = append(left, o)
			} else {
				never = append(never, o)
			}
		}
	}
	// flaky first: the end is read most
	slices.SortStableFunc(faults, func(a, b result) int { return strings.Compare(string(b.Outcome), string(a.Outcome)) })
	showOutputs(faults, out)
	list(out, "left to another turn", left, result.name)
	list(out, "skipped in every run", never, func(o result) string { return o.name() + ": " + o.Output })
	for _, kind := range []outcome{flaky, failed} {
		of := slices.DeleteFunc(slices.Clone(faults), func(o result) bool { return o.Outcome != kind })
		list(out, map[outcome]string{flaky: "FLAKY, to be mended", failed: "failed"}[kind], of, result.name)
	}
	if len(never) > 0 || slices.ContainsFunc(faults, func(o result) bool { return o.Outcome == failed }) {
		return 1
	}
	return 0
}

// leftToTurn returns to which turn a guest was left, and the tests that it would run (package guest); nothing if o is
// no such guest.
func leftToTurn(o result) (turn string, tests []string) {
	if o.Outcome != skipped || !strings.HasPrefix(o.Output, "left to turn ") {
		return "", nil
	}
	turn, names, _ := strings.Cut(o.Output, ": ")
	return turn, strings.Fields(names)
}

// markRun marks a test as run, and the tests that it is a part of: the ledger has only the innermost.
func markRun(ran map[testName]bool, pkg, test string) {
	for ok := true; ok; {
		ran[testName{pkg, test}] = true
		at := strings.LastIndexByte(test, '/')
		if ok = at >= 0; ok {
			test = test[:at]
		}
	}
}

// inGuest returns the name outside of a guest of a test in a guest: "TestGuest/v2/root/TestX/case" is "TestX/case".
func inGuest(test string) string {
	if strings.HasPrefix(test, "TestGuest") {
		if _, inner, ok := strings.Cut(test, "/Test"); ok {
			return "Test" + inner
		}
	}
	return test
}

// showOutputs prints the last lines of the tests' output, also of flaky tests, because it is not printed anywhere else.
func showOutputs(faults []result, out io.Writer) {
	for _, o := range faults[max(0, len(faults)-shownTests):] {
		lines := strings.Split(strings.TrimRight(o.Output, "\n"), "\n")
		fmt.Fprintf(out, "--- %s: %s\n%s\n", o.Outcome, o.name(), strings.Join(lines[max(0, len(lines)-shownLines):], "\n"))
	}
}

func list(out io.Writer, title string, results []result, show func(result) string) {
	for i, o := range results {
		if i == shownOthers {
			fmt.Fprintf(out, "%s: %d more\n", title, len(results)-i)
			return
		}
		fmt.Fprintf(out, "%s: %s\n", title, show(o))
	}
}
