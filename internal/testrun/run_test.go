package main

import (
	"bufio"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// events is the output of the go command for a package whose tests passed, failed and were skipped.
const events = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"REPORT: 3 right\n"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"no REPORT: noise\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood","Elapsed":0}
{"Action":"run","Package":"m/a","Test":"TestSwap"}
{"Action":"output","Package":"m/a","Test":"TestSwap","Output":"LEFT OUT: there is no swap\n"}
{"Action":"output","Package":"m/a","Test":"TestSwap","Output":"    x_test.go:5: looked for swap\n"}
{"Action":"output","Package":"m/a","Test":"TestSwap","Output":"    x_test.go:7: needs swap\n"}
{"Action":"output","Package":"m/a","Test":"TestSwap","Output":"--- SKIP: TestSwap (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestSwap","Elapsed":0}
{"Action":"run","Package":"m/a","Test":"TestTraces"}
{"Action":"output","Package":"m/a","Test":"TestTraces","Output":"    x_test.go:9: needs ../shared/fixtures\n"}
{"Action":"skip","Package":"m/a","Test":"TestTraces","Elapsed":0}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.1s\n"}
{"Action":"pass","Package":"m/a","Elapsed":0.1}
`

const guestEvents = `{"Action":"run","Package":"m/a","Test":"TestGuest"}
{"Action":"run","Package":"m/a","Test":"TestGuest/root"}
{"Action":"run","Package":"m/a","Test":"TestGuest/root/TestSwap"}
{"Action":"pass","Package":"m/a","Test":"TestGuest/root/TestSwap"}
{"Action":"pass","Package":"m/a","Test":"TestGuest/root"}
{"Action":"pass","Package":"m/a","Test":"TestGuest"}
{"Action":"pass","Package":"m/a"}
`

const failing = `{"Action":"run","Package":"m/b","Test":"TestBad"}
{"Action":"run","Package":"m/b","Test":"TestBad/case"}
{"Action":"output","Package":"m/b","Test":"TestBad/case","Output":"    x_test.go:3: 1 is not 2\n"}
{"Action":"fail","Package":"m/b","Test":"TestBad/case"}
{"Action":"fail","Package":"m/b","Test":"TestBad"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.1s\n"}
{"Action":"fail","Package":"m/b"}
`

const notCompiled = `{"ImportPath":"m/c","Action":"build-output","Output":"c.go:3: undefined: x\n"}
{"ImportPath":"m/c","Action":"build-fail"}
{"Action":"output","Package":"m/c","Output":"FAIL\tm/c [build failed]\n"}
{"Action":"fail","Package":"m/c","FailedBuild":"m/c"}
`

// A package that was ended while one of its tests ran.
const endedEvents = `{"Action":"run","Package":"m/d","Test":"TestSlow"}
{"Action":"run","Package":"m/d","Test":"TestSlow/case"}
{"Action":"output","Package":"m/d","Test":"TestSlow/case","Output":"    x_test.go:3: begun\n"}
{"Action":"output","Package":"m/d","Output":"signal: terminated\n"}
{"Action":"fail","Package":"m/d"}
`

const slowEvents = `{"Action":"run","Package":"m/e","Test":"TestLong/b"}
{"Action":"run","Package":"m/e","Test":"TestLong/b/c"}
{"Action":"pass","Package":"m/e","Test":"TestLong/b/c","Elapsed":16.4}
{"Action":"pass","Package":"m/e","Test":"TestLong/b","Elapsed":16.4}
{"Action":"pass","Package":"m/e","Test":"TestLong","Elapsed":31.2}
{"Action":"pass","Package":"m/e","Elapsed":31.3}
`

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		want   string
		code   int
	}{
		{"skips are named", []string{events}, `REPORT: 3 right
LEFT OUT: there is no swap
ok  	m/a	0.1s

skipped: m/a TestSwap: needs swap
skipped: m/a TestTraces: needs ../shared/fixtures
1 passed, 0 failed, 2 skipped in 3s
`, 0},
		{"failures are shown", []string{failing}, `    x_test.go:3: 1 is not 2
FAIL	m/b	0.1s

failed: m/b TestBad/case
0 passed, 1 failed, 0 skipped in 3s
`, 1},
		{"what does not compile has failed", []string{events, notCompiled}, `REPORT: 3 right
LEFT OUT: there is no swap
ok  	m/a	0.1s
c.go:3: undefined: x
FAIL	m/c [build failed]

skipped: m/a TestSwap: needs swap
skipped: m/a TestTraces: needs ../shared/fixtures
failed: m/c
1 passed, 1 failed, 2 skipped in 3s
`, 1},
		{"slow ones are named, the slowest first", []string{slowEvents}, `
slow:   31 s m/e TestLong
slow:   16 s m/e TestLong/b
1 passed, 0 failed, 0 skipped in 3s
`, 0},
		{"what did not end is named", []string{endedEvents}, `signal: terminated

failed: m/d
failed: m/d TestSlow/case
0 passed, 2 failed, 0 skipped in 3s
`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			all := readRuns(t, &out, c.events...)
			if code := all.report(&out, 3*time.Second); out.String() != c.want || code != c.code {
				t.Errorf("exit code %d, want %d, and output\n%swant\n%s", code, c.code, out.String(), c.want)
			}
		})
	}
}

func readRuns(t *testing.T, out io.Writer, events ...string) (all run) {
	t.Helper()
	for _, text := range events {
		var r run
		if err := r.read(bufio.NewReader(strings.NewReader(text)), out); err != nil {
			t.Fatal(err)
		}
		all.add(&r)
	}
	return all
}

// TestAccount: several runs add to one ledger.
func TestAccount(t *testing.T) {
	long := strings.Replace(failing, `1 is not 2\n`, strings.Repeat(`1 is not 2\n`, 100), 1)
	for _, c := range []struct {
		name string
		runs []string
		want string
		code int
	}{
		{"a test that never ran", []string{events, events}, "skipped in every run: m/a TestSwap: needs swap\n", 1},
		{"a test that would run in a guest that was left to another turn", []string{events, `{"Action":"run","Package":"m/a","Test":"TestGuest/hybrid/root"}
{"Action":"output","Package":"m/a","Test":"TestGuest/hybrid/root","Output":"    guest.go:180: left to turn 2 of 3: TestGood TestSwap\n"}
{"Action":"skip","Package":"m/a","Test":"TestGuest/hybrid/root"}`}, "left to another turn: m/a TestSwap\nleft to another turn: m/a TestGuest/hybrid/root\n", 0},
		{"a test that no guest of another turn would run", []string{events, `{"Action":"run","Package":"m/a","Test":"TestGuest/hybrid/root"}
{"Action":"output","Package":"m/a","Test":"TestGuest/hybrid/root","Output":"    guest.go:180: left to turn 2 of 3: TestGood\n"}
{"Action":"skip","Package":"m/a","Test":"TestGuest/hybrid/root"}`}, "left to another turn: m/a TestGuest/hybrid/root\nskipped in every run: m/a TestSwap: needs swap\n", 1},
		{"a test that ran in a guest", []string{events, guestEvents}, "", 0},
		{"a test that ran in another run",
			[]string{events, `{"Action":"pass","Package":"m/a","Test":"TestSwap","Elapsed":20}`}, "", 0},
		{"a test of which a part ran in another run", []string{events, `{"Action":"run","Package":"m/a","Test":"TestSwap/file"}
{"Action":"pass","Package":"m/a","Test":"TestSwap/file","Elapsed":20}
{"Action":"pass","Package":"m/a","Test":"TestSwap","Elapsed":20}`}, "", 0},
		{"a test of which another one is no part",
			[]string{events, `{"Action":"pass","Package":"m/a","Test":"TestSwapped/file","Elapsed":20}`},
			"skipped in every run: m/a TestSwap: needs swap\n", 1},
		{"the end of what a failed test said", []string{long}, "--- fail: m/b TestBad/case\n" +
			strings.Repeat("1 is not 2\n", shownLines) + "failed: m/b TestBad/case\n", 1},
		{"what did not compile", []string{notCompiled},
			"--- fail: m/c\nc.go:3: undefined: x\nFAIL	m/c [build failed]\nfailed: m/c\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			ledger := filepath.Join(t.TempDir(), "ledger")
			for _, text := range c.runs {
				r := readRuns(t, io.Discard, text)
				if err := r.record(ledger); err != nil {
					t.Fatal(err)
				}
			}
			var out, complaints strings.Builder
			code := execute(t.Context(), []string{"-account", ledger}, &out, &complaints, "")
			if out.String() != c.want || code != c.code || complaints.Len() > 0 {
				t.Errorf("exit code %d, want %d, and output\n%s%swant\n%s", code, c.code, out.String(), complaints.String(), c.want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"--"}, {"-account", "x", "--", "."}, {"-nonsense"}} {
		var out strings.Builder
		if code := execute(t.Context(), args, &out, &out, ""); code != 2 {
			t.Errorf("%q: exit code %d, want 2: %s", args, code, out.String())
		}
	}
	var out strings.Builder
	if code := execute(t.Context(), []string{"-account", filepath.Join(t.TempDir(), "absent")}, &out, &out,
		""); code != 1 {
		t.Errorf("no ledger: exit code %d, want 1: %s", code, out.String())
	}
}

// TestExecute runs the go command on a package without tests, and on one that does not exist.
func TestExecute(t *testing.T) {
	var out strings.Builder
	if code := execute(t.Context(), []string{"--", "-run=^$", "."}, &out, &out, ""); code != 0 {
		t.Errorf("exit code %d: %s", code, out.String())
	}
	out.Reset()
	if code := execute(t.Context(), []string{"--", "./absent"}, &out, &out, ""); code != 1 ||
		!strings.Contains(out.String(), "1 failed") {
		t.Errorf("exit code %d, want 1: %s", code, out.String())
	}
}

func TestReason(t *testing.T) {
	for output, want := range map[string]string{
		"    a_test.go:5: a remark\n    a_test.go:9: needs swap\n": "needs swap",
		"    cmd.go:380: long: run without -short\n    testscript.go:609: WORK=$WORK\n        " +
			"HOME=/no-home\n": "long: run without -short",
		"--- SKIP: TestSwap (0.00s)\n": "it does not say why",
	} {
		if got := reason(output); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}
