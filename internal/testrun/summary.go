package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// summary counts what "go test -json" reports. Tests that have subtests are not counted beside them.
type summary struct {
	passed  int
	failed  int
	broken  int // packages and runs that failed beside their tests: not compiled, crashed
	skips   []skip
	passes  []testName
	failing []string
	missing []string
}

type skip struct{ pkg, test, reason string }

// event is a line of "go test -json".
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
}

type testName struct{ pkg, test string }

// read takes the events of one run until they end.
func (s *summary) read(events io.Reader, out io.Writer) error {
	output := map[testName]string{}
	parents := map[testName]bool{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) > 0 && json.Unmarshal(line, &e) != nil:
			fmt.Fprintf(out, "%s", line) // not an event: the go command itself
		case len(line) > 0:
			s.event(e, output, parents, out)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}

func (s *summary) event(e event, output map[testName]string, parents map[testName]bool, out io.Writer) {
	name := testName{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "run":
		for parent := path.Dir(e.Test); parent != "."; parent = path.Dir(parent) {
			parents[testName{e.Package, parent}] = true
		}
	case "output":
		if e.Test == "" {
			packageLine(e.Output, out)
			return
		}
		output[name] += e.Output
	case "pass", "fail", "skip":
		if e.Test == "" {
			if e.Action == "fail" && !s.failedIn(e.Package) {
				s.broken++
				s.failing = append(s.failing, e.Package)
			}
			return
		}
		s.result(e, output[name], parents[name], out)
		delete(output, name)
	}
}

// packageLine prints what the go command says of a package, less what says nothing.
func packageLine(text string, out io.Writer) {
	switch strings.TrimSpace(text) {
	case "PASS", "FAIL", "":
		return
	}
	if strings.Contains(text, "[no test files]") || strings.Contains(text, "[no tests to run]") || strings.HasPrefix(text, "testing: warning: no tests to run") {
		return
	}
	fmt.Fprint(out, text)
}

func (s *summary) failedIn(pkg string) bool {
	return slices.ContainsFunc(s.failing, func(name string) bool { return strings.HasPrefix(name, pkg+" ") })
}

func (s *summary) result(e event, output string, hasSubtests bool, out io.Writer) {
	if e.Action == "fail" {
		fmt.Fprint(out, output)
		s.failing = append(s.failing, e.Package+" "+e.Test)
	}
	if hasSubtests && e.Action != "skip" {
		return
	}
	switch e.Action {
	case "fail":
		s.failed++
	case "pass":
		s.passed++
		s.passes = append(s.passes, testName{e.Package, e.Test})
	case "skip":
		s.skips = append(s.skips, skip{e.Package, e.Test, reason(output)})
	}
}

// passedElsewhere reports whether a skipped test passed as a subtest of another one, which is how tests in guests appear.
func (s *summary) passedElsewhere(k skip) bool {
	return slices.ContainsFunc(s.passes, func(p testName) bool {
		return p.pkg == k.pkg && strings.HasSuffix(p.test, "/"+k.test)
	})
}

var skipLine = regexp.MustCompile(`(?m)^\s+[\w.-]+\.go:\d+: (.*)$`)

// reason returns what the test said when it skipped: its last words.
func reason(output string) string {
	said := skipLine.FindAllStringSubmatch(output, -1)
	if len(said) == 0 {
		return "it does not say why"
	}
	return strings.TrimSpace(said[len(said)-1][1])
}

// report prints the end of the run, its last line being "N passed, N failed, N skipped", and returns the exit code.
func (s *summary) report(out io.Writer, strict bool, took time.Duration) int {
	code := 0
	if s.failed+s.broken > 0 {
		code = 1
	}
	skipped := s.skips[:0:0]
	for _, k := range s.skips {
		if !s.passedElsewhere(k) {
			skipped = append(skipped, k)
		}
	}
	refused := 0
	refuse := func(why string) string {
		if !strict || strings.Contains(why, "../shared") {
			return ""
		}
		refused++
		return " [not allowed with TEST_STRICT=true]"
	}
	fmt.Fprintln(out)
	for _, m := range s.missing {
		fmt.Fprintf(out, "not run: %s%s\n", m, refuse(m))
	}
	for _, k := range skipped {
		fmt.Fprintf(out, "skipped: %s %s: %s%s\n", k.pkg, k.test, k.reason, refuse(k.reason))
	}
	if n := len(s.skips) - len(skipped); n > 0 {
		fmt.Fprintf(out, "%d more could not run here, but passed in a guest with another kernel.\n", n)
	}
	for _, f := range s.failing {
		fmt.Fprintf(out, "failed: %s\n", f)
	}
	if refused > 0 {
		fmt.Fprintf(out, "TEST_STRICT=true: %d of these must run on a machine that is there for tests.\n", refused)
		code = 1
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped in %s\n", s.passed, s.failed+s.broken, len(skipped), took.Round(time.Second))
	return code
}
