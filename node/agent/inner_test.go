package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// notShown is the Most of a FLEX container without an inner group, as the last baseline started all of them.
const notShown = -1

// sized holds so many MiB, or a share (50%) of the memory limit of its own control group, and says what it reads as
// that limit before and after. "locked" locks its memory; "below" moves it into a group that it makes below its own
// before.
func sized(size, how string) {
	host, err := cgroup.Discover("")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	own, _ := host.Serves(cgroup.Memory)
	if how == "below" {
		own.Own = filepath.Join(own.Own, "below")
		fmt.Println(os.Mkdir(own.Own, 0o755), os.WriteFile(filepath.Join(own.Own, "cgroup.procs"), []byte("0"), 0))
		own.Own = filepath.Dir(own.Own)
	}
	file := filepath.Join(own.Own, "memory.max")
	if own.Version == cgroup.V1 {
		file = filepath.Join(own.Own, "memory.limit_in_bytes")
	}
	limit := func() int64 {
		text, err := os.ReadFile(file)
		bytes, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			fmt.Println(err)
		}
		return bytes
	}
	saw := limit()
	share, isShare := strings.CutSuffix(size, "%")
	bytes, _ := strconv.ParseInt(share, 10, 64)
	if bytes <<= 20; isShare {
		bytes = bytes >> 20 * saw / 100
	}
	block := testswap.Memory[byte](int(max(1, bytes)))
	if how == "locked" {
		_ = unix.Mlock(block)
	}
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	fmt.Printf("saw %d, held %d, sees %d\n", saw>>20, len(block)>>20, limit()>>20)
	os.Exit(0)
}

func (b *bench) sizedOrder(size, how string, min, max resource.Amount) cluster.Order {
	return asFlex(b.order(os.Args[0], "sized", size, how), min*resource.MiB, max*resource.MiB)
}

// succeeds runs an order and returns what it printed.
func (b *bench) succeeds(o cluster.Order) string {
	b.t.Helper()
	if e := b.run(o); e.Outcome != cluster.Succeeded {
		b.t.Fatalf("it ended as %s: %s\n%s%s", e.Outcome, e.Detail, read(b.t, o.Launch.Stdout), read(b.t, o.Launch.Stderr))
	}
	return read(b.t, o.Launch.Stdout)
}

// A program in a FLEX container sizes itself by what the container may have, not by what it has when it starts.
func TestFlexShowsWhatItMayHave(t *testing.T) {
	testswap.Need(t, 256<<20)
	b := newBench(t)
	if got := b.succeeds(b.sizedOrder("25%", "", 64, 600)); got != "saw 600, held 150, sees 600\n" {
		t.Errorf("started with 64 MiB of 600 it says %q", got)
	}
	regular := b.order(os.Args[0], "sized", "10%", "")
	if got := b.succeeds(regular); got != "saw 64, held 6, sees 64\n" {
		t.Errorf("in a REGULAR container it says %q", got)
	}
	// It may have more than it is told to count on: where no limit is stated, that is half of the node.
	o := b.sizedOrder("200", "", 64, 400)
	o.Launch.Most = 96 * resource.MiB
	got, saw, held, sees := b.succeeds(o), 0, 0, 0
	if _, err := fmt.Sscanf(got, "saw %d, held %d, sees %d", &saw, &held, &sees); err != nil || saw < 96 || sees < 200 {
		t.Errorf("grown beyond what it counts on, it says %q", got)
	}
	if got := b.succeeds(b.sizedOrder("100", "below", 64, 400)); got != "<nil> <nil>\nsaw 400, held 100, sees 400\n" {
		t.Errorf("in a group of its own making it says %q", got)
	}
}

// A database that takes 0.8 of the memory that it finds is not lost in a container that starts small.
func TestFlexDuckDB(t *testing.T) {
	const script = `import duckdb
print(duckdb.sql("select current_setting('memory_limit')").fetchall()[0][0], flush=True)
duckdb.sql("set temp_directory = ''; set enable_progress_bar = false")
duckdb.sql("create table t as select range as i, hash(range) as h from range(9000000)")
print(duckdb.sql("select count(distinct h) from t").fetchall()[0][0])
`
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import duckdb").Run() != nil {
		t.Skip("needs duckdb for python3")
	}
	testswap.Need(t, 512<<20)
	b := newBench(t)
	o := asFlex(b.order(python, "-c", script), 64*resource.MiB, 800*resource.MiB)
	if got := b.succeeds(o); got != "640.0 MiB\n9000000\n" {
		t.Errorf("it says %q", got)
	}
}

// The kernel kills a program at the most that its container may have, and that is known.
func TestFlexKillAtItsMost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: others may lock only little")
	}
	b := newBench(t)
	e := b.run(b.sizedOrder("200", "locked", 32, 64))
	if e.Outcome != cluster.OutOfMemory || e.Exit.OOMKills < 1 || e.Exit.Held < 60*resource.MiB ||
		!strings.Contains(e.Detail, "the kernel killed a process of it for memory; ") {
		t.Errorf("ended %s %+v: %s", e.Outcome, e.Exit, e.Detail)
	}
}

// A container is found again, grows, and ends politely, whether or not it has an inner group.
func TestFlexFoundAgain(t *testing.T) {
	testswap.Need(t, 256<<20)
	for name, most := range map[string]resource.Amount{"shown": 0, "not shown": notShown} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			gate := filepath.Join(t.TempDir(), "gate")
			grows := b.gatedOrder(150, gate)
			waits := asFlex(b.order("sh", "-c", `trap "echo bye; exit 4" TERM; echo ready; while :; do sleep 0.01; done`),
				16*resource.MiB, 64*resource.MiB)
			grows.Launch.Most, waits.Launch.Most = most, most
			b.Apply([]cluster.Order{grows, waits})
			b.next(cluster.DecisionDone)
			b.next(cluster.DecisionDone)
			b.awaitOutput(waits, "ready\n")
			b.reopen()
			b.next(cluster.TaskAdopted)
			b.next(cluster.TaskAdopted)
			r := b.until("all that it holds", grows.Container, func(r cluster.Reading) bool {
				return *r.Anonymous > 145<<20 && r.State == cluster.ContainerRunning
			})
			if r.Processes == nil || *r.Processes != 1 || r.LimitShown != (most == notShown) {
				t.Errorf("its processes: %v, its programs see its limit: %v", r.Processes, r.LimitShown)
			}
			if files := b.container(grows.Container).group.JoinFiles(); strings.Contains(strings.Join(files, " "), "-inner") ==
				(most == notShown) {
				t.Errorf("it has the groups %q", files)
			}
			b.Apply(kill(waits.Container))
			if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Killed || e.Exit.Code != 4 {
				t.Errorf("killed, it ended %s %+v", e.Outcome, e.Exit)
			}
			b.openGate(gate, 1)
		})
	}
}

// What a program of a FLEX container leaves running is counted, and killed.
func TestFlexEndsWithItsProgram(t *testing.T) {
	b := newBench(t)
	e := b.run(asFlex(b.order("sh", "-c", `sleep 1000 & echo $!`), 64*resource.MiB, 128*resource.MiB))
	if e.Outcome != cluster.Succeeded || e.Exit.Left != 1 || !strings.Contains(e.Detail, "left a process running") {
		t.Errorf("ended %s %+v: %s", e.Outcome, e.Exit, e.Detail)
	}
}

// Where no inner group can be made, a FLEX container runs as well.
func TestFlexWithoutInnerGroup(t *testing.T) {
	b := newBench(t)
	dir, ok := b.groups.root.Unified()
	if v, _ := b.groups.root.Has(cgroup.Memory); !ok || v != cgroup.V2 {
		t.Skip("needs control groups of version 2, whose depth can be bounded")
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.max.depth"), []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	got, saw := b.succeeds(b.sizedOrder("10%", "", 64, 600)), 0
	if _, err := fmt.Sscanf(got, "saw %d,", &saw); err != nil || saw < 64 || saw == 600 {
		t.Errorf("it says %q", got)
	}
}
