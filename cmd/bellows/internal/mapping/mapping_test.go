package mapping_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/mapping"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// TestMain lets this test program be the command.
func TestMain(m *testing.M) {
	if os.Getenv("BELLOWS_TEST_MAP") != "" {
		cmd := mapping.Command()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.Execute()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(command.ExitCode(err))
	}
	os.Exit(m.Run())
}

// daemon serves one pool, p, on a socket, and has executors for it.
type daemon struct {
	t      *testing.T
	dir    string
	socket string
	pool   *pool.Pool
	server *http.Server

	mu    sync.Mutex
	calls map[string]int // by their arguments
	bad   string         // arguments for which calls fail
}

func start(t *testing.T) *daemon {
	dir, err := os.MkdirTemp("", "bellows") // not t.TempDir, since the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &daemon{t: t, dir: dir, socket: filepath.Join(dir, "s"), calls: map[string]int{}}
	d.begin()
	t.Cleanup(func() { d.end() })
	for n := range 3 {
		go func() {
			e := &executor.Executor{Socket: d.socket, Pool: "p", Number: n,
				Functions: map[string]executor.Function{"m:f": d.call}}
			_ = e.Run(t.Context())
		}()
	}
	return d
}

func (d *daemon) begin() {
	mira, err := policy.New("mira", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.pool = pool.Start(pool.Config{Name: "p", Policy: mira, Grace: 300 * time.Millisecond,
		Verify: func(int, string) bool { return true }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	mux.Handle("/v1/pools/p/", http.StripPrefix("/v1/pools/p", d.pool.Handler()))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"code":"not-found","detail":"pool q: you have no such pool"}`))
	})
	l, err := net.Listen("unix", d.socket)
	if err != nil {
		d.t.Fatal(err)
	}
	d.server = &http.Server{Handler: mux}
	go func() { _ = d.server.Serve(l) }()
}

func (d *daemon) end() {
	d.pool.Close()
	_ = d.server.Close()
}

// call is the function of the executors: it doubles JSON texts and bytes, after a while.
func (d *daemon) call(_ context.Context, arguments []byte) ([]byte, error) {
	d.mu.Lock()
	d.calls[string(arguments)]++
	bad := d.bad
	d.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(int(2 * time.Millisecond))))
	if bad != "" && strings.Contains(string(arguments), bad) {
		return nil, errors.New("Traceback:\n  line 1\nValueError: it is bad")
	}
	var text string
	if json.Unmarshal(arguments, &text) == nil {
		return json.Marshal(text + text)
	}
	return append(arguments, arguments...), nil
}

// called returns how often the function was called with some arguments.
func (d *daemon) called(arguments string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[arguments]
}

// fail makes calls fail whose arguments contain a text; empty means none.
func (d *daemon) fail(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bad = text
}

// run runs the command.
func (d *daemon) run(ctx context.Context, in io.Reader, args ...string) (out, errs string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := mapping.Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetIn(in)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append([]string{"--socket", d.socket, "--pool", "p"}, args...))
	err = cmd.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), err
}

// Results are printed in the order of the inputs, whatever these are.
func TestResults(t *testing.T) {
	d := start(t)
	for _, c := range []struct {
		in, out string
		args    []string
	}{
		{"a\nü\n\n\"", "\"aa\"\n\"üü\"\n\"\"\n\"\\\"\\\"\"\n", nil},
		{"a\nü\n", "aa\nüü\n", []string{"-r"}},
		{"a\nb\x00\x00c", "\"a\\nba\\nb\"\n\"\"\n\"cc\"\n", []string{"--null"}},
		{"12\n[1,2]\n", "1212\n[1,2][1,2]\n", []string{"--json"}}, // It doubles what is no text as bytes.
		{"\xff\x01\nb\n", "\xff\x01\xff\x01\nbb\n", []string{"--bytes"}},
		{"", "", nil},
	} {
		out, errs, err := d.run(t.Context(), strings.NewReader(c.in), append(c.args, "m:f")...)
		if err != nil || out != c.out || errs != "" {
			t.Errorf("%q %v: printed %q and %q, %v", c.in, c.args, out, errs, err)
		}
	}
	var in, want strings.Builder
	for i := range 3_000 {
		fmt.Fprintln(&in, i)
		fmt.Fprintf(&want, "%d%d\n", i, i)
	}
	file := filepath.Join(d.dir, "inputs")
	if err := os.WriteFile(file, []byte(in.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, err := d.run(t.Context(), nil, "--json", "m:f", file); err != nil || out != want.String() || errs != "" {
		t.Errorf("%d bytes instead of %d, %q, %v", len(out), want.Len(), errs, err)
	}
}

// A result is printed before the next input is there.
func TestStreams(t *testing.T) {
	d := start(t)
	in, write := io.Pipe()
	out, print := io.Pipe()
	cmd := mapping.Command()
	cmd.SetIn(in)
	cmd.SetOut(print)
	cmd.SetArgs([]string{"--socket", d.socket, "--pool", "p", "m:f"})
	ended := make(chan error)
	go func() { ended <- cmd.ExecuteContext(t.Context()) }()
	for range 3 {
		_, _ = io.WriteString(write, "a\n")
		line := make([]byte, len("\"aa\"\n"))
		if _, err := io.ReadFull(out, line); err != nil || string(line) != "\"aa\"\n" {
			t.Fatalf("read %q, %v", line, err)
		}
	}
	_ = write.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What fails is listed, and the rest runs, unless that is not wanted.
func TestFailures(t *testing.T) {
	d := start(t)
	d.fail("x")
	out, errs, err := d.run(t.Context(), strings.NewReader("a\nx1\nb\nx2\n"), "-r", "m:f")
	for _, says := range []string{"bellows: 2 of 4 inputs failed:\n",
		"  input 2 \"x1\": ValueError: it is bad\n  input 4 \"x2\": ValueError", "whole error of input 2:\nTraceback:\n"} {
		if !strings.Contains(errs, says) {
			t.Errorf("%q does not say %q", errs, says)
		}
	}
	if out != "aa\nbb\n" || command.ExitCode(err) != command.Failed {
		t.Errorf("printed %q, %v", out, err)
	}
	in := strings.NewReader("x\n" + strings.Repeat("a\n", 10_000))
	if _, errs, err := d.run(t.Context(), in, "--stop-on-failure", "m:f"); command.ExitCode(err) != command.Failed ||
		!strings.Contains(errs, "bellows: 1 of ") {
		t.Errorf("%q, %v", errs, err)
	}
	if n := d.called(`"a"`); n > 5_000 {
		t.Errorf("%d calls followed the failure", n)
	}
}

// What begins while there is no daemon waits for one, says so, and can be interrupted.
func TestBeginsWithoutADaemon(t *testing.T) {
	d := start(t)
	run := func(ctx context.Context, socket string) (said *bufio.Reader, printed *strings.Builder, ended chan error) {
		errs, say := io.Pipe()
		printed, ended = new(strings.Builder), make(chan error)
		cmd := mapping.Command()
		cmd.SetIn(strings.NewReader("a\n"))
		cmd.SetOut(printed)
		cmd.SetErr(say)
		cmd.SetArgs([]string{"--socket", socket, "--pool", "p", "--quiet", "m:f"})
		go func() { ended <- cmd.ExecuteContext(ctx); _ = say.Close() }()
		return bufio.NewReader(errs), printed, ended
	}
	waits := func(said *bufio.Reader) {
		t.Helper()
		line, err := said.ReadString('\n')
		if err != nil || !strings.Contains(line, "no daemon listens") || !strings.Contains(line, "map waits 30s for one") {
			t.Fatalf("said %q, %v", line, err)
		}
		go func() { _, _ = io.Copy(io.Discard, said) }()
	}
	later := filepath.Join(d.dir, "later")
	said, printed, ended := run(t.Context(), later)
	waits(said)
	if err := os.Symlink(d.socket, later); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || printed.String() != "\"aa\"\n" {
		t.Errorf("printed %q, %v", printed, err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	said, _, ended = run(ctx, filepath.Join(d.dir, "none"))
	waits(said)
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
}

// Mistakes are one sentence.
func TestMistakes(t *testing.T) {
	d := start(t)
	folder := filepath.Join(d.dir, "d")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in, says string
		args     []string
		code     int
	}{
		{"", "function: must be given", nil, command.WrongUsage},
		{"", "at most one", []string{"m:f", "a", "b"}, command.WrongUsage},
		{"", "only one of them", []string{"--json", "--bytes", "m:f"}, command.WrongUsage},
		{"", "no such file", []string{"m:f", filepath.Join(d.dir, "none")}, command.WrongUsage},
		{"", "d: must not be a folder", []string{"m:f", folder}, command.WrongUsage},
		{"", "none: must be a folder", []string{"--path", filepath.Join(d.dir, "none"), "m:f"}, command.WrongUsage},
		{"1\n" + strings.Repeat("a", executor.MostArguments+1),
			"input 2: must have less than 32 MiB: pass the name of a file", []string{"m:f"}, command.WrongUsage},
		{"1\n{\n", `input 2 "{": must be a JSON value`, []string{"--json", "m:f"}, command.WrongUsage},
		{"\xff\n", `must be text in UTF-8`, []string{"m:f"}, command.WrongUsage},
		{"1\n", `pool q: you have no such pool`, []string{"--pool", "q", "m:f"}, command.WrongUsage},
	} {
		_, _, err := d.run(t.Context(), strings.NewReader(c.in), c.args...)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.args, err, c.says)
		}
	}
}

// With a journal, what has a result does not run again.
func TestResume(t *testing.T) {
	d := start(t)
	journal := filepath.Join(d.dir, "journal")
	run := func(in string, args ...string) (string, string, error) {
		return d.run(t.Context(), strings.NewReader(in), append([]string{"-r", "--resume", journal}, args...)...)
	}
	d.fail("x")
	if out, _, err := run("a\nx\nb\n", "m:f"); out != "aa\nbb\n" || command.ExitCode(err) != command.Failed {
		t.Fatalf("printed %q, %v", out, err)
	}
	d.fail("")
	if out, errs, err := run("a\nx\nb\nc\n", "m:f"); out != "aa\nxx\nbb\ncc\n" || errs != "" || err != nil {
		t.Errorf("printed %q and %q, %v", out, errs, err)
	}
	if out, errs, err := run("a\nx\nb\nc\n", "m:f"); out != "aa\nxx\nbb\ncc\n" || errs != "" || err != nil {
		t.Errorf("printed %q and %q, %v", out, errs, err)
	}
	for text, want := range map[string]int{`"a"`: 1, `"x"`: 2, `"b"`: 1, `"c"`: 1} {
		if n := d.called(text); n != want {
			t.Errorf("%s was called %d times, want %d", text, n, want)
		}
	}
	if _, _, err := run("a\ny\n", "m:f"); err == nil || !strings.Contains(err.Error(), `input 2 "y": is another one`) {
		t.Errorf("with another input: %v", err)
	}
	if _, _, err := run("a\n", "m:g"); err == nil || !strings.Contains(err.Error(), `has results of function "m:f"`) {
		t.Errorf("with another function: %v", err)
	}
	if err := os.WriteFile(journal, []byte("something else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := run("a\n", "m:f"); err == nil ||
		!strings.Contains(err.Error(), "line 1: must be what `bellows map` wrote") {
		t.Errorf("with another file: %v", err)
	}
}

var (
	mapKills = flag.Int("kills", 25, "how often TestKilled kills the command")
	mapSeed  = flag.Uint64("kill-seed", 1, "what the moments of TestKilled come from")
)

// process returns the command as a process of its own.
func (d *daemon) process(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{"--socket", d.socket, "--pool", "p"}, args...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "BELLOWS_TEST_MAP=1"), d.t.Output()
	return cmd
}

// The command is killed, and the daemon ends, at random moments. In the end there is one result for each input, and
// what had a result when the command was killed has not run again.
func TestKilled(t *testing.T) {
	d := start(t)
	inputs, random := 120**mapKills, rand.New(rand.NewPCG(*mapSeed, 0))
	t.Logf("%d inputs, %d kills, seed %d", inputs, *mapKills, *mapSeed)
	var in, want strings.Builder
	for i := range inputs {
		fmt.Fprintf(&in, "input %d\n", i)
		fmt.Fprintf(&want, "input %dinput %d\n", i, i)
	}
	file, journal := filepath.Join(d.dir, "inputs"), filepath.Join(d.dir, "journal")
	if err := os.WriteFile(file, []byte(in.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func(out io.Writer) *exec.Cmd {
		cmd := d.process("-r", "--resume", journal, "m:f", file)
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	for i := range *mapKills {
		cmd := begin(nil)
		time.Sleep(time.Duration(random.IntN(80)) * time.Millisecond) // a random moment
		if i%6 == 5 {
			d.end()
			d.begin()
			time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		has, err := os.ReadFile(journal)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		d.mu.Lock()
		for _, line := range bytes.SplitAfter(has, []byte("\n")) {
			var r struct{ Input int }
			if bytes.HasSuffix(line, []byte("\n")) && json.Unmarshal(line, &r) == nil && r.Input > 0 {
				text := fmt.Sprintf("%q", fmt.Sprintf("input %d", r.Input-1))
				if d.calls[text] < 0 {
					continue
				}
				d.calls[text] = -1 << 20 // must not be called any more
			}
		}
		d.mu.Unlock()
	}
	var out bytes.Buffer
	if err := begin(&out).Wait(); err != nil || out.String() != want.String() {
		t.Errorf("printed %d bytes instead of %d, %v", out.Len(), want.Len(), err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for text, n := range d.calls {
		if n < 0 && n != -1<<20 {
			t.Errorf("%s ran again, and had a result", text)
		}
	}
}

// When the reader of the results ends, the command ends as other programs do, and cancels what it has submitted.
func TestReaderEnds(t *testing.T) {
	d := start(t)
	cmd := d.process("m:f")
	cmd.Stdin = strings.NewReader(strings.Repeat("a\n", 100_000))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGPIPE) {
		t.Errorf("it ended as %v", cmd.ProcessState)
	}
	if v, err := d.pool.View(t.Context()); err != nil || v.Applications[0].State != "cancelled" {
		t.Errorf("the pool is %+v, %v", v, err)
	}
}

// An interrupted command cancels what it has submitted.
func TestInterrupted(t *testing.T) {
	d := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, write := io.Pipe()
	defer write.Close()
	go func() {
		_, _ = io.WriteString(write, strings.Repeat("a\n", 3000))
		cancel()
	}()
	_, errs, err := d.run(ctx, in, "m:f")
	if command.ExitCode(err) != command.Interrupted || !strings.Contains(errs, "bellows: interrupted when ") {
		t.Errorf("%q, %v", errs, err)
	}
	if v, err := d.pool.View(t.Context()); err != nil || v.Applications[0].State != "cancelled" {
		t.Errorf("the pool is %+v, %v", v, err)
	}
}
