package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// outcome is how a test ended.
type outcome string

const (
	passed  outcome = "pass"
	failed  outcome = "fail"
	skipped outcome = "skip"
	flaky   outcome = "flaky" // failed, and passed when it was run once more
)

// result is the outcome of one test that ended or was interrupted. A failure of a package outside of its tests has no
// Test.
type result struct {
	Package, Test string
	Outcome       outcome
	Output        string // the reason if the test was skipped
}

func (r result) name() string { return strings.TrimSpace(r.Package + " " + r.Test) }

// run is the report of "go test -json". A test with subtests is not among the results in addition to them, unless it
// was skipped.
type run struct {
	results []result
	open    []testName // began and did not end
	slow    []slowTest
	output  map[testName]*strings.Builder // so far; a test may print megabytes
	parents map[testName]bool
}

type testName struct{ pkg, test string }

// slowTest is a slow test, or one of its subtests (a guest, a script): a place to start for faster tests.
type slowTest struct {
	name    testName
	seconds float64
}

const slowSeconds = 15

// event is a line of "go test -json".
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// read processes events until they end.
func (r *run) read(events *bufio.Reader, out io.Writer) error {
	r.output, r.parents = map[testName]*strings.Builder{}, map[testName]bool{}
	for {
		line, err := events.ReadBytes('\n')
		var e event
		switch {
		case len(line) > 0 && json.Unmarshal(line, &e) != nil:
			fmt.Fprintf(out, "%s", line) // not an event: the go command itself
		case len(line) > 0:
			r.event(e, out)
		}
		if err == io.EOF {
			r.close()
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}

func (r *run) event(e event, out io.Writer) {
	name := testName{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(out, e.Output)
		pkg, _, _ := strings.Cut(e.ImportPath, " ") // "m/a [m/a.test]"
		r.keep(testName{pkg: pkg}, e.Output)
	case "run":
		r.open = append(r.open, name)
		for parent := path.Dir(e.Test); parent != "."; parent = path.Dir(parent) {
			r.parents[testName{e.Package, parent}] = true
		}
	case "output":
		r.keep(name, e.Output)
		switch {
		case e.Test == "":
			packageLine(e.Output, out)
		case saidAtOnce.MatchString(e.Output):
			fmt.Fprint(out, e.Output)
		}
	case "pass", "fail", "skip":
		if e.Elapsed >= slowSeconds && e.Test != "" && e.Test == twoLevels(e.Test) {
			r.slow = append(r.slow, slowTest{name, e.Elapsed})
		}
		r.ended(name, outcome(e.Action), out)
	}
}

func (r *run) keep(name testName, text string) {
	if r.output[name] == nil {
		r.output[name] = &strings.Builder{}
	}
	r.output[name].WriteString(text)
}

// take returns and removes a test's output.
func (r *run) take(name testName) string {
	output := r.output[name]
	delete(r.output, name)
	if output == nil {
		return ""
	}
	return output.String()
}

// ended processes the end of a test, or of a package.
func (r *run) ended(name testName, how outcome, out io.Writer) {
	r.open = slices.DeleteFunc(r.open, func(n testName) bool { return n == name })
	output := r.take(name)
	if name.test != "" && how == failed {
		fmt.Fprint(out, output)
	}
	switch {
	case name.test == "" && (how != failed || r.failedIn(name.pkg)):
		return // Its tests say more than the package.
	case how == failed && r.failedBelow(name):
		return // Its subtests say more than the test.
	case how == passed && r.parents[name]:
		return
	case how == skipped:
		output = reason(output)
	}
	r.results = append(r.results, result{name.pkg, name.test, how, output})
}

// close reports tests that began and did not end as failures, because their package ended first: only the innermost
// ones.
func (r *run) close() {
	for _, name := range r.open {
		if !r.parents[name] {
			r.results = append(r.results, result{name.pkg, name.test, failed, r.take(name) + "it did not end\n"})
		}
	}
	r.open = nil
}

func (r *run) failedIn(pkg string) bool {
	return slices.ContainsFunc(r.results, func(o result) bool { return o.Package == pkg && o.Outcome == failed })
}

func (r *run) failedBelow(name testName) bool {
	return slices.ContainsFunc(r.results, func(o result) bool {
		return o.Package == name.pkg && o.Outcome == failed && strings.HasPrefix(o.Test, name.test+"/")
	})
}

func (r *run) hasFailed() bool {
	return slices.ContainsFunc(r.results, func(o result) bool { return o.Outcome == failed })
}

func (r *run) add(other *run) {
	r.results = append(r.results, other.results...)
	r.slow = append(r.slow, other.slow...)
}

// saidAtOnce matches lines that a test prints for whoever runs it, however it ends: what it could not do here, on which
// .ci/run relies, and what it has counted.
var saidAtOnce = regexp.MustCompile(`^(LEFT OUT|REPORT): `)

// packageLine prints the go command's line about a package, unless it says nothing.
func packageLine(text string, out io.Writer) {
	switch strings.TrimSpace(text) {
	case "PASS", "FAIL", "":
		return
	}
	if strings.Contains(text, "[no test files]") || strings.Contains(text, "[no tests to run]") ||
		strings.HasPrefix(text, "testing: warning: no tests to run") {
		return
	}
	fmt.Fprint(out, text)
}

var skipLine = regexp.MustCompile(`(?m)^\s+[\w.-]+\.go:\d+: (.*)$`)

// reason returns why a test was skipped: the last line of its output. A script says so before its log, which begins
// with its environment.
func reason(output string) string {
	why := "it does not say why"
	for _, said := range skipLine.FindAllStringSubmatch(output, -1) {
		if !strings.HasPrefix(said[1], "WORK=") {
			why = strings.TrimSpace(said[1])
		}
	}
	return why
}

// report prints the end of the run, its last line being "N passed, N failed, N skipped", and returns the exit code.
func (r *run) report(out io.Writer, took time.Duration) int {
	count := map[outcome]int{}
	fmt.Fprintln(out)
	slices.SortFunc(r.slow, func(a, b slowTest) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, s := range r.slow {
		fmt.Fprintf(out, "slow: %4.0f s %s %s\n", s.seconds, s.name.pkg, s.name.test)
	}
	for _, kind := range []outcome{skipped, flaky, failed} {
		for _, o := range r.results {
			switch {
			case o.Outcome != kind:
			case kind == skipped:
				turn, _ := leftToTurn(o) // The tests would make the line long.
				fmt.Fprintf(out, "skipped: %s: %s\n", o.name(), cmp.Or(turn, o.Output))
			default:
				fmt.Fprintf(out, "%s: %s\n", map[outcome]string{flaky: "FLAKY", failed: "failed"}[kind], o.name())
			}
		}
	}
	for _, o := range r.results {
		count[o.Outcome]++
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped in %s\n", count[passed]+count[flaky], count[failed],
		count[skipped], took.Round(time.Second))
	if count[failed] > 0 {
		return 1
	}
	return 0
}
