package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/live/api"
)

// squaresInGo is an executor, which is built with the library of either program.
const squaresInGo = `package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/bellows-rm/bellows/executor"
)

func main() {
	executor.Main(map[string]executor.Function{"squares:square": func(_ context.Context, arguments []byte) ([]byte,
		error) {
		var n int
		if err := json.Unmarshal(arguments, &n); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(n%5) * time.Millisecond)
		return json.Marshal(n * n)
	}})
}
`

const squaresInPython = `import time
def square(n):
    time.sleep(n % 5 / 1000)
    return n * n
`

// TestPoolsOfTwoPrograms lets the daemon of the baseline and the present one take turns on a state directory, each
// ended by SIGKILL, while the maps of both programs stream through a pool of Go and one of Python, whose executors
// are started by both daemons, and those of Go have the libraries of both. Each result is right and there once, and
// the definitions of the pools stay as they are.
func TestPoolsOfTwoPrograms(t *testing.T) {
	commit := upgradedFrom(t)
	needControlGroups(t)
	source := filepath.Join(t.TempDir(), "squares.go")
	if err := os.WriteFile(source, []byte(squaresInGo), 0o600); err != nil {
		t.Fatal(err)
	}
	u := &upgrade{t: t, program: buildAt(t, commit, source), state: upgradeState(t)}
	squares := filepath.Join(t.TempDir(), "squares")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", squares, source).CombinedOutput(); err != nil {
		t.Fatalf("build an executor: %v: %s", err, out)
	}
	t.Cleanup(func() { u.run("bellows", "down", "--force") })
	turns := []string{u.program, "bellows"}
	libraries := []string{filepath.Join(filepath.Dir(u.program), "squares"), squares}
	begin := func(program string) {
		if said, code := u.run(program, "up", "--memory", "512MiB", "--cpus", "1", "--policy", "fifo",
			"--detach"); code != 0 {
			t.Fatalf("up: exit code %d: %s", code, said)
		}
	}
	create := func(program, library string) {
		if said, code := u.run(program, "pool", "create", "go", "--language", "go", "--cpus", "0.25", "--memory", "48MiB",
			"--min", "1", "--max", "2", "--", library); code != 0 {
			t.Fatalf("pool create: exit code %d: %s", code, said)
		}
	}
	begin(turns[0])
	create(turns[0], libraries[0])
	names := []string{"go"}
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		names = append(names, "python")
		u.old(0, "pool", "create", "python", "--language", "python", "--cpus", "0.25", "--memory", "48MiB", "--min", "1",
			"--max", "2", "--idle", "7s", "--", "/usr/bin/python3")
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "squares.py"), []byte(squaresInPython), 0o644); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var maps sync.WaitGroup
	for _, program := range turns {
		for _, name := range names {
			maps.Go(func() { u.mapUntil(over, folder, program, name) })
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const changes = 8
	schema := 0
	for i := range changes {
		time.Sleep(time.Duration(1000+random.IntN(1000)) * time.Millisecond) // a random moment
		u.kill()
		if now := u.schemaOf(); i == 0 {
			schema = now
		} else if now > schema { // The earlier program refuses it.
			turns[0] = turns[1]
		}
		begin(turns[(i+1)%2])
		if i%2 == 1 { // executors of the other library, and each program changes one of the other
			create(turns[(i/2+1)%2], libraries[(i/2+1)%2])
		}
		u.killExecutors(names)
	}
	time.Sleep(time.Second)
	close(over)
	maps.Wait()
	u.checkPools(names)
}

// mapUntil streams numbers through a pool until it is over, and checks that their squares come out in order.
func (u *upgrade) mapUntil(over <-chan struct{}, folder, program, pool string) {
	path, err := exec.LookPath(program)
	if err != nil {
		u.t.Error(err)
		return
	}
	cmd := exec.Command(path, "map", "--pool", pool, "--json", "--quiet", "squares:square")
	cmd.Dir, cmd.Env, cmd.Stderr = folder, []string{"PATH=/usr/local/bin:/usr/bin:/bin", "BELLOWS_STATE=" + u.state},
		u.t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		u.t.Error(err)
		return
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		u.t.Error(err)
		return
	}
	wrote := make(chan int, 1)
	go func() {
		defer in.Close()
		for n := 0; ; n++ {
			select {
			case <-over:
				wrote <- n
				return
			case <-time.After(8 * time.Millisecond):
			}
			if _, err := io.WriteString(in, strconv.Itoa(n)+"\n"); err != nil {
				u.t.Errorf("map by %s in pool %s takes no input: %v", program, pool, err)
				wrote <- n
				return
			}
		}
	}()
	lines := bufio.NewScanner(out)
	n := 0
	for ; lines.Scan(); n++ {
		if lines.Text() != strconv.Itoa(n*n) {
			u.t.Errorf("map by %s in pool %s: result %d is %q", program, pool, n, lines.Text())
			break
		}
	}
	err = cmd.Wait()
	if inputs := <-wrote; err != nil || n != inputs {
		u.t.Errorf("map by %s in pool %s: %d results of %d inputs, %v", program, pool, n, inputs, err)
	}
	u.t.Logf("map by %s in pool %s: %d results", filepath.Base(program), pool, n)
}

// top returns what the present daemon, of either program, says of a pool.
func (u *upgrade) top(pool string) (d api.PoolDetail) {
	u.t.Helper()
	said := u.new(0, "pool", "top", pool, "--once", "--json")
	if err := json.Unmarshal([]byte(said), &d); err != nil {
		u.t.Fatalf("pool top: %v: %s", err, said)
	}
	return d
}

// killExecutors kills an executor of each pool, which the present daemon replaces.
func (u *upgrade) killExecutors(names []string) {
	for _, name := range names {
		defer func() {
			if u.t.Failed() {
				u.t.Log(u.new(0, "pool", "explain", name))
			}
		}()
		u.await("an executor of pool "+name, func() bool {
			for _, e := range u.top(name).Members {
				if e.PID > 0 && unix.Kill(e.PID, unix.SIGKILL) == nil {
					return true
				}
			}
			return false
		})
	}
}

// checkPools checks that the definitions have outlived all changes.
func (u *upgrade) checkPools(names []string) {
	for _, name := range names {
		s := u.top(name).Spec
		want := fmt.Sprint(name, " 1 2 250 ", 48<<20)
		if got := fmt.Sprint(s.Name, " ", s.Min, " ", s.Max, " ", int64(s.CPU), " ", int64(s.Memory)); got != want {
			u.t.Errorf("pool %s is %q, want %q", name, got, want)
		}
		if name == "python" && (s.Idle != 7*time.Second || len(s.Command) != 1 ||
			!strings.HasSuffix(s.Command[0], "python3")) {
			u.t.Errorf("pool %s is %+v", name, s)
		}
	}
}
