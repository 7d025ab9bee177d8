// Command testrun runs the tests and says at the end what was skipped, and why:
//
//	go run ./internal/testrun [-missing SENTENCE]... -- GO-TEST-ARGUMENTS [-- GO-TEST-ARGUMENTS]...
//
// Each list of arguments is one run of "go test". What fails is printed whole, the rest as one line per package. A test
// that was skipped in one place and passed in another (in a guest with another kernel, say) was not skipped. -missing
// names, in one sentence, what could not be run at all.
//
// With TEST_STRICT=true a test that was skipped makes the run fail, and so does -missing, unless what it needs is data that stands
// beside the project and not in it ("../shared"): a machine that is there for tests has the rest.
//
// Exit codes: 0 all passed, 1 something failed, 2 the usage was wrong.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr, os.Getenv("TEST_STRICT") == "true"))
}

func execute(args []string, out, complaints io.Writer, strict bool) int {
	flags := flag.NewFlagSet("testrun", flag.ContinueOnError)
	flags.SetOutput(complaints)
	var missing []string
	flags.Func("missing", "one `sentence` on what cannot be run", func(s string) error {
		if s != "" {
			missing = append(missing, s)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return 2
	}
	runs := split(flags.Args())
	if len(runs) == 0 {
		fmt.Fprintln(complaints, "testrun: must be told at least one list of arguments for go test")
		return 2
	}
	began := time.Now()
	s := summary{missing: missing}
	for _, run := range runs {
		if err := s.run(run, out, complaints); err != nil {
			fmt.Fprintf(out, "FAIL\tgo test %q: %v\n", run, err)
			s.broken++
		}
	}
	return s.report(out, strict, time.Since(began))
}

// split cuts args at "--".
func split(args []string) [][]string {
	var runs [][]string
	for len(args) > 0 {
		at := slices.Index(args, "--")
		if at < 0 {
			at = len(args)
		}
		if at > 0 {
			runs = append(runs, args[:at])
		}
		args = args[min(at+1, len(args)):]
	}
	return runs
}

// run runs the go command. It returns an error if that failed without any test or package having failed.
func (s *summary) run(args []string, out, complaints io.Writer) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = complaints
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	before := s.failed + s.broken
	errRead := s.read(events, out)
	err = cmd.Wait()
	if errRead != nil {
		return errRead
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) && s.failed+s.broken > before {
		return nil // already told
	}
	return err
}
