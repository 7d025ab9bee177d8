// Command testrun runs the tests and says at the end what was skipped, and why:
//
//	go run ./internal/testrun -- GO-TEST-ARGUMENTS [-- GO-TEST-ARGUMENTS]...
//	go run ./internal/testrun -account LEDGER
//
// Each list of arguments is one run of "go test"; write a flag with a value as -name=value. The output of failed tests
// is printed whole, the rest as one line per package. A test that failed is run once more, alone. If it then passes, it
// is flaky: the run continues, and its end names the test (retry.go says which tests are not run again).
//
// If the environment has TEST_LEDGER=FILE, the outcome of each test is added to that file. -account reads the results
// of several runs from the file and prints which tests failed and which were flaky. It fails if a test was skipped in
// all runs, unless the test needs data that is next to the project and not in it ("../shared"), or a guest would run it
// that was left to another turn (TURN of .ci/run).
//
// Exit codes: 0 all passed, 1 a test failed, 2 wrong usage.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	// A signal that ends a run that takes too long ends the tests, too. This names the tests then.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv("TEST_LEDGER")))
}

func execute(ctx context.Context, args []string, out, complaints io.Writer, ledger string) int {
	flags := flag.NewFlagSet("testrun", flag.ContinueOnError)
	flags.SetOutput(complaints)
	account := flags.String("account", "", "say what became of the tests in this `ledger`")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	lists := split(flags.Args())
	if *account != "" && len(lists) == 0 {
		return accountFor(*account, out, complaints)
	}
	if *account != "" || len(lists) == 0 {
		fmt.Fprintln(complaints, "testrun: needs either -account or at least one list of arguments for go test")
		return 2
	}
	began := time.Now()
	var all run
	for _, list := range lists {
		r := goTest(list, out, complaints)
		if ctx.Err() == nil {
			r.retry(list, out, complaints)
		}
		all.add(r)
		if ctx.Err() != nil {
			break
		}
	}
	code := all.report(out, time.Since(began))
	if err := all.record(ledger); err != nil {
		fmt.Fprintln(complaints, "testrun:", err)
		return 1
	}
	return code
}

// split cuts args at "--".
func split(args []string) [][]string {
	var lists [][]string
	for len(args) > 0 {
		at := slices.Index(args, "--")
		if at < 0 {
			at = len(args)
		}
		if at > 0 {
			lists = append(lists, args[:at])
		}
		args = args[min(at+1, len(args)):]
	}
	return lists
}

// propertySeed is an environment variable of package rapid: the seed of the random cases on which properties are
// tested; 0 draws new ones in each run.
const propertySeed = "RAPID_SEED"

// goTest runs the go command. It does not vet: "make check" has done so, by more rules, and with empty caches it would
// take as long again, since it begins with all that is imported. Unless the environment has a seed, properties are
// tested on the same cases in each run, so that a failure is due to a change. If the command failed although no test
// and no package did, that is a failure, too.
func goTest(args []string, out, complaints io.Writer) *run {
	r := &run{}
	cmd := exec.Command("go", append([]string{"test", "-json", "-vet=off"}, args...)...)
	cmd.Stderr = complaints
	if _, chosen := os.LookupEnv(propertySeed); !chosen {
		cmd.Env = append(os.Environ(), propertySeed+"=1")
	}
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		errRead := r.read(bufio.NewReader(events), out)
		err = errors.Join(errRead, cmd.Wait())
	}
	if err != nil && !r.hasFailed() {
		r.results = append(r.results, result{Package: fmt.Sprintf("go test %q", args), Outcome: failed,
			Output: err.Error() + "\n"})
	}
	return r
}
