package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// mostRetries is how many tests are run again: more than that do not fail by chance.
const mostRetries = 4

// A failure with one of these texts in its output is not by chance, however rare it is.
var certain = regexp.MustCompile(
	`(?m)WARNING: DATA RACE|race detected during execution of test|^\s*panic: |^\s*fatal error: |^it did not end$`)

// retry runs failed tests once more, each alone, with its arguments. A test that passes then is flaky. retry runs no
// test again if a failure is certain: a data race, a panic, a test that did not end, a package that was not built.
func (r *run) retry(args []string, out, complaints io.Writer) {
	var tests []testName
	for _, o := range r.results {
		if o.Outcome != failed {
			continue
		}
		if o.Test == "" || certain.MatchString(o.Output) {
			return
		}
		if name := (testName{o.Package, independent(o.Test)}); !slices.Contains(tests, name) {
			tests = append(tests, name)
		}
	}
	if len(tests) > mostRetries {
		return
	}
	for _, name := range tests {
		fmt.Fprintf(out, "=== once more, alone: %s %s\n", name.pkg, name.test)
		again := goTest(alone(args, name), out, complaints)
		if again.hasFailed() || !again.ran(name) {
			continue
		}
		for i, o := range r.results {
			if o.Outcome == failed && o.Package == name.pkg && independent(o.Test) == name.test {
				r.results[i].Outcome = flaky
				r.results[i].Output += "once more, alone, it passed:\n" + again.said(name)
			}
		}
	}
}

// twoLevels returns the name of the test with at most one level of subtests: a script, or a guest with the tests that
// it ran.
func twoLevels(test string) string {
	parts := strings.SplitN(test, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// independent returns the name of the smallest part of the test that can run alone: a test in a guest by its user, else
// a test with at most one level of subtests.
func independent(test string) string {
	if parts := strings.SplitN(test, "/", 5); strings.HasPrefix(parts[0], "TestGuest") {
		return strings.Join(parts[:min(4, len(parts))], "/")
	}
	return twoLevels(test)
}

// alone returns args for one test.
func alone(args []string, name testName) []string {
	var pattern []string
	for _, part := range strings.Split(name.test, "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	var one []string
	for _, arg := range args {
		switch {
		case strings.HasPrefix(arg, "-run="):
		case strings.HasPrefix(arg, "-"):
			one = append(one, arg)
		case !slices.Contains(one, name.pkg):
			one = append(one, name.pkg) // at the place of the first package: flags of the test follow it
		}
	}
	return append([]string{"-run=" + strings.Join(pattern, "/")}, one...)
}

// said returns the output of the tests that passed at or below name.
func (r *run) said(name testName) (output string) {
	for _, o := range r.results {
		if o.Package == name.pkg && (o.Test == name.test || strings.HasPrefix(o.Test, name.test+"/")) {
			output += o.Output
		}
	}
	return output
}

// ran reports whether the test, or one below it, passed.
func (r *run) ran(name testName) bool {
	return slices.ContainsFunc(r.results, func(o result) bool {
		return o.Outcome == passed && o.Package == name.pkg &&
			(o.Test == name.test || strings.HasPrefix(o.Test, name.test+"/"))
	})
}
