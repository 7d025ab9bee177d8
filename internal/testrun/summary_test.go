package main

import (
	"strings"
	"testing"
	"time"
)

// events is what the go command prints of a package whose tests passed, failed and were skipped.
const events = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood","Elapsed":0}
{"Action":"run","Package":"m/a","Test":"TestSwap"}
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

const inGuest = `{"Action":"run","Package":"m/a","Test":"TestGuest"}
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

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name    string
		runs    []string
		missing []string
		strict  bool
		want    string
		code    int
	}{
		{"skips are named", []string{events}, nil, false, `ok  	m/a	0.1s

skipped: m/a TestSwap: needs swap
skipped: m/a TestTraces: needs ../shared/fixtures
1 passed, 0 failed, 2 skipped in 3s
`, 0},
		{"some skips are not allowed", []string{events}, nil, true, `ok  	m/a	0.1s

skipped: m/a TestSwap: needs swap [not allowed with TEST_STRICT=true]
skipped: m/a TestTraces: needs ../shared/fixtures
TEST_STRICT=true: 1 of these must run on a machine that is there for tests.
1 passed, 0 failed, 2 skipped in 3s
`, 1},
		{"what ran in a guest was not skipped", []string{events, inGuest}, nil, true, `ok  	m/a	0.1s

skipped: m/a TestTraces: needs ../shared/fixtures
1 more could not run here, but passed in a guest with another kernel.
2 passed, 0 failed, 1 skipped in 3s
`, 0},
		{"a part is missing", []string{inGuest}, []string{"guests: need root"}, false, `
not run: guests: need root
1 passed, 0 failed, 0 skipped in 3s
`, 0},
		{"a part must not be missing", []string{inGuest}, []string{"guests: need root"}, true, `
not run: guests: need root [not allowed with TEST_STRICT=true]
TEST_STRICT=true: 1 of these must run on a machine that is there for tests.
1 passed, 0 failed, 0 skipped in 3s
`, 1},
		{"failures are shown", []string{failing}, nil, false, `    x_test.go:3: 1 is not 2
FAIL	m/b	0.1s

failed: m/b TestBad/case
failed: m/b TestBad
0 passed, 1 failed, 0 skipped in 3s
`, 1},
		{"what does not compile has failed", []string{notCompiled}, nil, false, `c.go:3: undefined: x
FAIL	m/c [build failed]

failed: m/c
0 passed, 1 failed, 0 skipped in 3s
`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			s := summary{missing: c.missing}
			for _, run := range c.runs {
				if err := s.read(strings.NewReader(run), &out); err != nil {
					t.Fatal(err)
				}
			}
			code := s.report(&out, c.strict, 3*time.Second)
			if out.String() != c.want || code != c.code {
				t.Errorf("exit code %d, want %d, and output\n%swant\n%s", code, c.code, out.String(), c.want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"--"}, {"-missing", "x"}, {"-nonsense"}} {
		var out strings.Builder
		if code := execute(args, &out, &out, false); code != 2 {
			t.Errorf("%q: exit code %d, want 2: %s", args, code, out.String())
		}
	}
}

// TestExecute runs the go command on a package that has nothing to test, and on one that is not there.
func TestExecute(t *testing.T) {
	var out strings.Builder
	if code := execute([]string{"--", "-run=^$", "."}, &out, &out, true); code != 0 {
		t.Errorf("exit code %d: %s", code, out.String())
	}
	out.Reset()
	if code := execute([]string{"--", "./absent"}, &out, &out, false); code != 1 || !strings.Contains(out.String(), "1 failed") {
		t.Errorf("exit code %d, want 1: %s", code, out.String())
	}
}
