package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// mostRetries is how many tests are run again: more do not fail by chance.
const mostRetries = 4

// A failure with one of these in its output is no chance, however seldom it is.
var certain = regexp.MustCompile(`(?m)WARNING: DATA RACE|race detected during execution of test|^\s*panic: |^\s*fatal error: |^it did not end$`)

// retry runs tests that failed once more, each alone, with the arguments that they had. What passes then is flaky. Nothing is
// run again if anything failed for certain: a data race, a panic, a test that did not end, a package that was not built.
func (r *run) retry(args []string, out, complaints io.Writer) {
	var tests []testName
	for _, o := range r.results {
		if o.Outcome != failed {
			continue
		}
		if o.Test == "" || certain.MatchString(o.Output) {
			return
		}
		if name := (testName{o.Package, twoLevels(o.Test)}); !slices.Contains(tests, name) {
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
			if o.Outcome == failed && o.Package == name.pkg && twoLevels(o.Test) == name.test {
				r.results[i].Outcome = flaky
				r.results[i].Output += "once more, alone, it passed:\n" + again.said(name)
			}
		}
	}
}

// twoLevels is the test, and which of its subtests: a script, or a guest with what it ran.
func twoLevels(test string) string {
	parts := strings.SplitN(test, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// alone is args for one test.
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
			one = append(one, name.pkg) // where the first package stood: flags of the test follow it
		}
	}
	return append([]string{"-run=" + strings.Join(pattern, "/")}, one...)
}

// said is the output of what passed at or below name.
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
		return o.Outcome == passed && o.Package == name.pkg && (o.Test == name.test || strings.HasPrefix(o.Test, name.test+"/"))
	})
}
