package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/machine"
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/cli/command/commandtest"
	"github.com/bellows-rm/bellows/internal/testcert"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/live/watchdog"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/profiler"
	"github.com/bellows-rm/bellows/node/swap"
)

func TestMain(m *testing.M) {
	// Programs with the race detector sleep for a second when they end, unless GORACE says otherwise.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	testscript.Main(m, map[string]func(){"bellows": func() {
		if name := os.Getenv("BELLOWS_TEST_HANGS_ON"); name != "" {
			hangOn(name)
		}
		if name := os.Getenv("BELLOWS_TEST_SLOW_ON"); name != "" {
			beSlowOn(name)
		}
		if path := os.Getenv("BELLOWS_TEST_GOROUTINES"); path != "" && len(os.Args) > 1 && os.Args[1] == "up" {
			tellGoroutines(path)
		}
		main()
	}, "bellows-grows": soakGrows, "bellows-repeats": repeater})
}

// hangOn makes every policy spin as soon as a job has the given name, and makes the daemon detect that soon.
func hangOn(name string) {
	machine.Patience = watchdog.Patience{Hangs: 500 * time.Millisecond, Dead: 10 * time.Second}
	machine.NewPolicy = func(of string, settings map[string]string) (policy.Policy, error) {
		p, err := policy.New(of, settings)
		return &spinning{p, name}, err
	}
}

type spinning struct {
	policy.Policy
	on string
}

func (s *spinning) Decide(now timeline.Time, p *book.Plan) {
	for _, j := range p.Jobs {
		if j.Job.Name == s.on {
			s.spin()
		}
	}
	s.Policy.Decide(now, p)
}

func (s *spinning) spin() {
	//lint:ignore SA5002 an engine that hangs is what is tested
	for {
	}
}

// beSlowOn makes every policy take 3 s for a step as soon as a job has the given name, once.
func beSlowOn(name string) {
	machine.NewPolicy = func(of string, settings map[string]string) (policy.Policy, error) {
		p, err := policy.New(of, settings)
		return &slow{Policy: p, on: name}, err
	}
}

type slow struct {
	policy.Policy
	on   string
	once sync.Once
}

func (s *slow) Decide(now timeline.Time, p *book.Plan) {
	for _, j := range p.Jobs {
		if j.Job.Name == s.on {
			s.once.Do(func() { time.Sleep(3 * time.Second) })
		}
	}
	s.Policy.Decide(now, p)
}

// commands are the script commands in addition to testscript's own.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"otherstate":  otherState,
	"certificate": certificate,
	"exits":       commandtest.Exits,
	"until":       until,
	"wide":        commandtest.Wide,
}

// until is "until PATTERN COMMAND...": it repeats the command until its output matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND...")
	}
	pattern := regexp.MustCompile("(?m)" + args[0])
	const patience = time.Minute
	for deadline := time.Now().Add(patience); ; {
		cmd := exec.Command(args[1], args[2:]...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), append(os.Environ(), "BELLOWS_STATE="+ts.Getenv("BELLOWS_STATE"))
		printed, err := cmd.CombinedOutput()
		if pattern.Match(printed) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v (%v) never printed what matches %q, but\n%s", args[1:], err, args[0], printed)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// certificate is "certificate DIR": it writes the files cert.pem and key.pem of a new certificate for this machine.
func certificate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: certificate DIR")
	}
	_, _, err := testcert.Write(ts.MkAbs(args[0]))
	ts.Check(err)
}

// otherState is "otherstate DIR VERSION": it makes a state directory whose store has a version of the schema.
func otherState(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: otherstate DIR VERSION")
	}
	version, err := strconv.ParseUint(args[1], 10, 32)
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	s, err := store.Open(dir)
	ts.Check(err)
	ts.Check(s.Close())
	file, err := os.OpenFile(filepath.Join(dir, store.File), os.O_WRONLY, 0)
	ts.Check(err)
	const userVersion = 60 // where SQLite has the version of the schema, as 4 bytes
	_, err = file.WriteAt(binary.BigEndian.AppendUint32(nil, uint32(version)), userVersion)
	ts.Check(errors.Join(err, file.Close()))
}

// condition evaluates a condition in brackets.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "passable": // other users can reach files below the temporary folder
		for dir := os.TempDir(); ; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil || info.Mode()&0o001 == 0 || dir == filepath.Dir(dir) {
				return err == nil && info.Mode()&0o001 != 0, err
			}
		}
	case "zswap": // and it can be turned on
		z := swap.Machine{}.Zswap()
		return z != nil && !z.Enabled, nil
	case "measurable":
		_, err := profiler.MeasureDisk(os.TempDir())
		return err == nil, nil
	case "containers":
		host, err := cgroup.Discover("")
		if err != nil {
			return false, nil
		}
		_, ok := host.Serves(cgroup.Memory)
		return ok && os.Geteuid() == 0, nil
	}
	return false, fmt.Errorf("condition %q: must be root, passable, zswap, measurable or containers", name)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", Cmds: commands, UpdateScripts: testfile.Rewriting(), RequireUniqueNames: true,
		Condition: condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("BELLOWS_STATE", filepath.Join(env.WorkDir, "state"))
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
	})
}

// TestSwap makes swap and removes it.
func TestSwap(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	testswap.Lock(t)
	runSwapScripts(t, "testdata/swap")
}

// TestWithoutSwap runs FLEX jobs on a machine without swap.
func TestWithoutSwap(t *testing.T) {
	lockWithoutSwap(t)
	runSwapScripts(t, "testdata/noswap")
}

// TestLastSwap removes the only swap of a machine.
func TestLastSwap(t *testing.T) {
	lockWithoutSwap(t)
	runSwapScripts(t, "testdata/lastswap")
}

// lockWithoutSwap sees to it that the machine has no swap but what the test makes.
func lockWithoutSwap(t *testing.T) {
	t.Helper()
	needControlGroups(t)
	testswap.Lock(t)
	if devices, err := (swap.Machine{}).Devices(); err != nil || len(devices) > 0 {
		t.Skipf("needs a machine without swap: %v %v", devices, err)
	}
}

func runSwapScripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir: dir, Cmds: commands, Condition: condition, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			// A folder of its own, since the name of a socket must be short.
			state, err := os.MkdirTemp("", "bellows")
			if err != nil {
				return err
			}
			env.Setenv("BELLOWS_STATE", state)
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Defer(func() {
				bellows := func(args ...string) error {
					cmd := exec.Command("bellows", args...)
					cmd.Env = append(os.Environ(), "BELLOWS_STATE="+state)
					return cmd.Run()
				}
				_ = bellows("down", "--force") // Most scripts run no daemon, or have ended it.
				if err := bellows("swap", "remove", "--all", "--force"); err != nil {
					t.Errorf("swap is left behind: %v", err)
				}
				_ = errors.Join(os.RemoveAll(state), os.RemoveAll(state+store.Mark))
			})
			return nil
		},
	})
}

// machineTime is the time limit for all scripts of TestMachine, many times the time that they take: a script that hangs
// does not hold up other tests for longer.
const machineTime = 10 * time.Minute

// TestMachine runs a real daemon with real programs in real control groups.
func TestMachine(t *testing.T) {
	needControlGroups(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/machine", Cmds: commands, RequireUniqueNames: true, Condition: condition,
		Deadline: time.Now().Add(machineTime),
		Setup: func(env *testscript.Env) error {
			// A folder of its own, since the name of a socket must be short.
			state, err := os.MkdirTemp("", "bellows")
			if err != nil {
				return err
			}
			env.Setenv("BELLOWS_STATE", state)
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Defer(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				down := exec.CommandContext(ctx, "bellows", "down", "--force")
				down.Env = append(os.Environ(), "BELLOWS_STATE="+state)
				_ = down.Run() // Most scripts have ended the daemon themselves.
				_ = errors.Join(os.RemoveAll(state), os.RemoveAll(state+store.Mark))
			})
			return nil
		},
	})
}

// needControlGroups skips a test on a machine that cannot make containers.
func needControlGroups(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	lacks, err := makesControlGroups()
	if lacks != nil {
		t.Skipf("needs control groups with a memory controller: %v", lacks)
	}
	if err != nil {
		t.Error(err)
	}
}

// makesControlGroups returns what this machine lacks for containers, and otherwise how the removal of what it has
// made failed. It tries that once, because tests run at the same time.
var makesControlGroups = sync.OnceValues(func() (lacks, err error) {
	host, err := cgroup.Discover("")
	if err != nil {
		return err, nil
	}
	root, err := host.Root(fmt.Sprintf("test-%d", os.Getpid()), cgroup.Memory)
	if err != nil {
		return err, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return nil, root.Remove(ctx)
})
