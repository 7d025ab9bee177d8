package coreshare

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	into   = flag.String("measure", "", "measure on this machine, and write the file, or add to it: some minutes a round")
	rounds = flag.Int("rounds", 5, "pairs of runs for each program and number of copies")
	core   = flag.Int("core", 0, "the core on which all programs run")
)

// walkOf makes this test binary the program that walks through so many bytes of memory.
const walkOf = "CORESHARE_WALK"

func TestMain(m *testing.M) {
	if size, err := strconv.Atoi(os.Getenv(walkOf)); err == nil {
		walk(size)
		return
	}
	os.Exit(m.Run())
}

// walk visits cache lines of a memory area in a random order, each after the one before, which no processor foresees.
func walk(size int) {
	const line = 16 // words of 4 bytes
	memory := make([]uint32, size/4)
	lines := rand.New(rand.NewPCG(1, 2)).Perm(len(memory) / line)
	for i, at := range lines {
		memory[at*line] = uint32(lines[(i+1)%len(lines)] * line)
	}
	steps, at := 80_000_000, uint32(0) // less than a second
	if size > 8<<20 {
		steps = 4_000_000
	}
	for range steps {
		at = memory[at]
	}
	if at == 1 {
		fmt.Println("never")
	}
}

// program is a program to be measured. command is called with the folder of inputs.
type program struct {
	name    string
	shown   string
	command func(folder string) []string
	walks   int
}

// programs are ordinary ones, and two that do nothing but wait for memory: one whose memory just fits into the core's
// own cache, which is the worst case, and one whose memory fits into none.
var programs = []program{
	{name: "gzip", shown: "gzip -9 of 3 MB of text",
		command: func(f string) []string { return []string{"gzip", "-9", "-c", filepath.Join(f, "text-3")} }},
	{name: "xz", shown: "xz -6 -T1 of 1 MB of text",
		command: func(f string) []string { return []string{"xz", "-6", "-T1", "-c", filepath.Join(f, "text-1")} }},
	{name: "sort", shown: "sort --parallel=1 of 6 MB of text",
		command: func(f string) []string {
			return []string{"sort", "--parallel=1", "-S", "256M", filepath.Join(f, "text-6")}
		}},
	{name: "python", shown: "python3 counts the words of 3 MB of text in a dictionary",
		command: func(f string) []string { return []string{python(), "-c", counter, filepath.Join(f, "text-3")} }},
	{name: "walk, 768 KiB", shown: "random reads, each after the one before, of 768 KiB", walks: 768 << 10},
	{name: "walk, 64 MiB", shown: "the same of 64 MiB", walks: 64 << 20},
}

const counter = `import collections, sys
words = collections.Counter()
for line in open(sys.argv[1]):
    for word in line.split(): words[word] += 1
`

// python is the interpreter itself, and no script that starts it.
var python = sync.OnceValue(func() string {
	path, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return "python3"
	}
	return strings.TrimSpace(string(path))
})

// TestMeasure makes coreshare.json anew, if asked for. Otherwise it measures one pair, of which it keeps nothing.
func TestMeasure(t *testing.T) {
	file, list, copies, rounds := *into, programs, []int{2, 4, 8, 16}, *rounds
	folder := t.TempDir()
	if file == "" {
		file, list, copies, rounds = filepath.Join(folder, "one.json"), programs[:1], copies[:1], 1
	}
	for _, mb := range []int{1, 3, 6} {
		writeText(t, filepath.Join(folder, fmt.Sprint("text-", mb)), mb<<20)
	}
	groups := newGroups(t, 16)
	s := Series{Date: time.Now().Format(time.DateOnly), Processor: field("/proc/cpuinfo", "model name"), Caches: caches(),
		Kernel: strings.TrimSpace(content("/proc/sys/kernel/osrelease")), Groups: groups.kind, Counters: counters()}
	if data, err := os.ReadFile(file); err == nil {
		if s, err = read(data); err != nil || len(s.Programs) != len(list) {
			t.Fatal("the file is of other programs: ", err)
		}
	}
	for i := len(s.Programs); i < len(list); i++ {
		one := Program{Name: list[i].name, Command: list[i].shown, Ordinary: list[i].walks == 0}
		for _, n := range copies {
			one.Points = append(one.Points, Point{Copies: n})
		}
		s.Programs = append(s.Programs, one)
	}
	for range rounds {
		for i := range list {
			for k := range s.Programs[i].Points {
				at := &s.Programs[i].Points[k]
				pair, round := Pair{Load: load()}, len(at.Pairs)
				runs := []func(){
					func() { pair.Together = groups.run(t, &list[i], folder, at.Copies, true) },
					func() { pair.Apart = groups.run(t, &list[i], folder, at.Copies, false) },
				}
				for n := range runs { // the order alternates
					runs[(n+round+k)%2]()
				}
				at.Pairs = append(at.Pairs, pair)
				t.Logf("%s x%d: CPU time %.3f, throughput %.3f, others %.2f s, stolen %.2f s", list[i].name, at.Copies,
					pair.Apart.CPU/pair.Together.CPU, pair.Apart.Wall/pair.Together.Wall, pair.Together.Others, pair.Together.Stolen)
			}
		}
		data, err := json.MarshalIndent(&s, "", " ")
		if err == nil {
			err = os.WriteFile(file, append(data, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range s.Programs {
		for _, point := range s.Programs[i].Points {
			for _, pair := range point.Pairs {
				if pair.Together.CPU <= 0 || pair.Apart.CPU <= 0 {
					t.Errorf("%s x%d used no CPU: %+v", s.Programs[i].Name, point.Copies, pair)
				}
			}
		}
	}
}

// groups are control groups of equal weight, in each of which one copy runs at a time.
type groups struct {
	kind string
	dirs []string
}

func newGroups(t *testing.T, n int) *groups {
	t.Helper()
	g := &groups{kind: "version 1"}
	root := "/sys/fs/cgroup/cpu"
	if _, err := os.Stat(root); err != nil {
		g.kind, root = "version 2", "/sys/fs/cgroup"
	}
	above := filepath.Join(root, fmt.Sprint("coreshare-", os.Getpid()))
	dirs := []string{above}
	for i := range n {
		dirs = append(dirs, filepath.Join(above, strconv.Itoa(i)))
	}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skip("no control groups: ", err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) }) // the inner ones first
		if g.kind == "version 2" && dir == above {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+cpu"), 0o644); err != nil {
				t.Skip("no control groups: ", err)
			}
		}
	}
	// Other programs get a small part of the core meanwhile.
	weight, most := "cpu.shares", "8192"
	if g.kind == "version 2" {
		weight, most = "cpu.weight", "800"
	}
	if err := os.WriteFile(filepath.Join(above, weight), []byte(most), 0o644); err != nil {
		t.Fatal(err)
	}
	g.dirs = dirs[1:]
	return g
}

// run runs copies of a program, all at a time or one after the other.
func (g *groups) run(t *testing.T, p *program, folder string, copies int, together bool) (r Run) {
	t.Helper()
	var waits []func()
	before := stat()
	from := time.Now()
	for i := range copies {
		wait := g.start(t, p, folder, i, &r)
		if together {
			waits = append(waits, wait)
		} else {
			wait()
		}
	}
	for _, wait := range waits {
		wait()
	}
	r.Wall = time.Since(from).Seconds()
	after := stat()
	r.Others, r.Stolen = max(0, after.busy-before.busy-r.CPU), after.stolen-before.stolen
	return r
}

// start starts a copy in its group, on the core, and returns what waits for its end.
func (g *groups) start(t *testing.T, p *program, folder string, i int, r *Run) (wait func()) {
	t.Helper()
	command := []string{"/proc/self/exe"}
	if p.command != nil {
		command = p.command(folder)
	} else if exe, err := os.Executable(); err == nil {
		command[0] = exe
	}
	// The shell moves itself before it becomes the program.
	c := exec.Command("taskset", append([]string{"-c", strconv.Itoa(*core), "sh", "-c",
		`echo $$ > "$0" && exec "$@"`, filepath.Join(g.dirs[i], "cgroup.procs")}, command...)...)
	c.Env = append(os.Environ(), "LC_ALL=C", "GOMAXPROCS=1")
	if p.walks > 0 {
		c.Env = append(c.Env, fmt.Sprint(walkOf, "=", p.walks))
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := c.Wait(); err != nil {
			t.Fatal(p.name, ": ", err)
		}
		u := c.ProcessState.SysUsage().(*syscall.Rusage)
		r.CPU += (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
		r.Switches, r.Faults = r.Switches+u.Nivcsw, r.Faults+u.Majflt
	}
}

// coreStat is what /proc/stat says of the core, in seconds.
type coreStat struct{ busy, stolen float64 }

func stat() (s coreStat) {
	for line := range strings.Lines(content("/proc/stat")) {
		f := strings.Fields(line)
		if len(f) < 9 || f[0] != fmt.Sprint("cpu", *core) {
			continue
		}
		for i, of := range f[1:9] {
			ticks, _ := strconv.ParseFloat(of, 64)
			switch i {
			case 0, 1, 2, 5, 6: // user, nice, system, and interrupts
				s.busy += ticks / 100
			case 7:
				s.stolen += ticks / 100
			}
		}
	}
	return s
}

// writeText writes lines of words, some of which are frequent.
func writeText(t *testing.T, path string, size int) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(r, 1.2, 4, 200_000)
	var b strings.Builder
	for b.Len() < size {
		for range 8 {
			fmt.Fprintf(&b, "w%x ", zipf.Uint64()*2654435761%(1<<32))
		}
		b.WriteByte('\n')
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// counters says which counters of the processor the kernel offers.
func counters() string {
	var has, lacks []string
	for _, c := range []struct {
		name  string
		kind  uint32
		event uint64
	}{
		{"cycles", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
		{"instructions", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
		{"cache misses", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES},
		{"context switches", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CONTEXT_SWITCHES},
		{"migrations", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_MIGRATIONS},
	} {
		a := unix.PerfEventAttr{Type: c.kind, Config: c.event, Size: uint32(unix.PERF_ATTR_SIZE_VER0)}
		fd, err := unix.PerfEventOpen(&a, 0, -1, -1, 0)
		if err == nil {
			has = append(has, c.name)
			_ = unix.Close(fd)
			continue
		}
		var no syscall.Errno
		errors.As(err, &no)
		lacks = append(lacks, fmt.Sprintf("%s (%s)", c.name, no.Error()))
	}
	return fmt.Sprintf("offered: %s; not offered: %s", strings.Join(has, ", "), strings.Join(lacks, ", "))
}

// caches lists the caches of the core.
func caches() string {
	var all []string
	for i := range 8 {
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cache/index%d/", *core, i)
		if level := strings.TrimSpace(content(dir + "level")); level != "" {
			all = append(all, fmt.Sprintf("L%s %s %s", level, strings.TrimSpace(content(dir+"type")),
				strings.TrimSpace(content(dir+"size"))))
		}
	}
	return strings.Join(all, ", ")
}

func load() float64 {
	f, _ := strconv.ParseFloat(strings.Fields(content("/proc/loadavg") + " 0")[0], 64)
	return f
}

func field(path, name string) string {
	for line := range strings.Lines(content(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func content(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}
