package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cgroup"
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/usage"
)

// step sleeps, then uses a core and 40 MiB for three seconds, and sleeps again. It prints when the step began and ended,
// as times of monotonic.
func step() {
	time.Sleep(2300 * time.Millisecond)
	from := monotonic()
	block := testswap.Memory[byte](40 << 20)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		for i := 0; i < len(block); i += 4096 {
			block[i]++
		}
	}
	_ = unix.Madvise(block, unix.MADV_DONTNEED)
	fmt.Println(int64(from), int64(monotonic()))
	time.Sleep(2300 * time.Millisecond)
	os.Exit(0)
}

// usageOf returns what was measured of a container, all of it.
func (b *bench) usageOf(id cluster.ContainerID) usage.Usage {
	b.t.Helper()
	u, err := b.Usage(id)
	if err != nil {
		b.t.Fatalf("container %s: %v", id, err)
	}
	return u
}

// A step of three seconds is found where it was, within a sample, in a container of each class.
func TestPlantedStep(t *testing.T) {
	b := newBench(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	orders := map[cluster.Class]cluster.Order{}
	for _, class := range []cluster.Class{cluster.Regular, cluster.Flex} {
		o := b.order(self, "step")
		o.Envelope.Class = class
		orders[class] = o
		b.Apply([]cluster.Order{o})
	}
	ends, heard := map[cluster.TaskID]cluster.Event{}, map[cluster.TaskID]timeline.Time{}
	for range orders {
		e := b.next(cluster.TaskEnded)
		ends[e.Task], heard[e.Task] = e, now()
	}
	for class, o := range orders {
		t.Run(class.String(), func(t *testing.T) {
			e := ends[o.Task]
			if e.Outcome != cluster.Succeeded {
				t.Fatalf("ended %+v: %s", e, e.Detail)
			}
			u := b.usageOf(o.Container)
			origin := monotonic() - time.Duration(now()-e.Exit.Started)
			var from, to int64
			fmt.Sscan(read(t, o.Launch.Stdout), &from, &to)
			began, ended := time.Duration(from)-origin, time.Duration(to)-origin
			within := 1200 * time.Millisecond // a sample a second, and a busy machine
			if slow() {
				within *= 2
			}
			before := rateAt(u, usage.Memory, time.Second) // while the program sleeps
			for kind, above := range map[usage.Kind]int64{usage.CPU: 150, usage.Memory: before + 20<<20} {
				first, last := whereAbove(u, kind, above)
				if (first-began).Abs() > within || (last-ended).Abs() > within {
					t.Errorf("kind %d: the step from %v to %v was seen from %v to %v in %+v", kind, began, ended, first, last, u.Spans)
				}
			}
			if total, ok := u.Total(usage.CPU); !ok || max(total-e.Exit.CPUTime.Milliseconds(), e.Exit.CPUTime.Milliseconds()-total) > 50 {
				t.Errorf("CPU time %d ms, its record says %v", total, e.Exit.CPUTime)
			}
			covers(t, &u, &e, heard[o.Task])
			if n, ok := u.Total(usage.Sent); ok != (b.Unmeasured(resource.Network) == "") || n != 0 {
				t.Errorf("sent %d bytes over the network (known: %v), where %q", n, ok, b.Unmeasured(resource.Network))
			}
		})
	}
}

// rateAt returns a rate at a time since the beginning; 0 if it is unknown.
func rateAt(u usage.Usage, k usage.Kind, at time.Duration) int64 {
	for i := range u.Spans {
		if at -= u.Spans[i].Length; at < 0 {
			r, _ := u.Spans[i].Rate(k)
			return r
		}
	}
	return 0
}

// whereAbove returns where, after the first second, a rate is above some amount for the first time, and where for the last.
func whereAbove(u usage.Usage, k usage.Kind, amount int64) (first, last time.Duration) {
	at := time.Duration(0)
	for i := range u.Spans {
		if r, _ := u.Spans[i].Rate(k); r > amount && at > time.Second {
			if first == 0 {
				first = at
			}
			last = at + u.Spans[i].Length
		}
		at += u.Spans[i].Length
	}
	return first, last
}

// dirty makes 2 MiB of each file dirty, and stays for a moment: "wait" has them written at once, and "remove" removes them. When
// that is done there is an empty file, the name of the last one with ".done".
func dirty(then string, paths []string) {
	for _, path := range paths {
		f, err := os.Create(path)
		if err == nil {
			_, err = f.Write(make([]byte, 2<<20))
		}
		if then == "wait" && err == nil {
			err = f.Sync()
		}
		if err == nil {
			err = f.Close()
		}
		if then == "remove" && err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	if done, err := os.Create(paths[len(paths)-1] + ".done"); err == nil {
		done.Close()
	}
	time.Sleep(300 * time.Millisecond)
	os.Exit(0)
}

// What a container writes is measured, also where the counters of groups miss what stays in the page cache: of programs that end
// before the first sample, of children that live between samples or through them, and only once.
func TestWritesAreMeasured(t *testing.T) {
	b := newBench(t)
	var st unix.Stat_t
	if err := unix.Stat(b.dir, &st); err != nil || unix.Major(st.Dev) == 0 {
		t.Skipf("needs temporary files on a disk: %v", err)
	}
	then := "leave"
	if boundsAll(b.root.Group) { // There, it is measured when it is written.
		then = "wait"
	}
	path := func(name string) string { return filepath.Join(b.dir, name) }
	orders := map[string]cluster.Order{
		"one program":   b.order(os.Args[0], "dirty", then, path("a"), path("b"), path("c"), path("d")),
		"children":      b.order("sh", "-c", fmt.Sprintf("for i in 1 2 3 4; do %s dirty %s %s$i; done; :", os.Args[0], then, path("e"))),
		"grandchildren": b.order("sh", "-c", fmt.Sprintf("(%[1]s dirty %[2]s %[3]s1 & %[1]s dirty %[2]s %[3]s2 & wait); (%[1]s dirty %[2]s %[3]s3 %[3]s4; :); sleep 1.5", os.Args[0], then, path("f"))),
		"remaining":     b.order("sh", "-c", fmt.Sprintf("setsid %s dirty %s %s1 %[3]s2 %[3]s3 %[3]s4 & until [ -e %[3]s4.done ]; do sleep 0.02; done", os.Args[0], then, path("g"))),
	}
	if then == "leave" {
		orders["removed"] = b.order(os.Args[0], "dirty", "remove", path("h"), path("i"), path("j"), path("k"))
	}
	for _, o := range orders {
		b.Apply([]cluster.Order{o})
	}
	for range orders {
		if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Succeeded {
			t.Fatalf("ended %+v: %s", e, e.Detail)
		}
	}
	for name, o := range orders {
		least, most := int64(8<<20), int64(9<<20)
		if name == "removed" {
			least, most = 0, 2<<20+64<<10 // a sample may see one file of the four before it is removed
		}
		if n, ok := b.usageOf(o.Container).Total(usage.Written); !ok || n < least || n > most {
			t.Errorf("%s: %d bytes were written (known: %v), want from %d to %d: %+v", name, n, ok, least, most, b.usageOf(o.Container).Spans)
		}
	}
}

// A program that ends at once has a usage, too: its counters.
func TestUsageOfShortProgram(t *testing.T) {
	b := newBench(t)
	o := b.order("true")
	b.run(o)
	u := b.usageOf(o.Container)
	if total, ok := u.Total(usage.CPU); !ok || len(u.Spans) == 0 || total > 10_000 {
		t.Errorf("%+v", u)
	}
	before := u
	b.reopen() // its record stays until it is forgotten
	if u := b.usageOf(o.Container); !reflect.DeepEqual(u, before) {
		t.Errorf("after a restart %+v, before %+v", u, before)
	}
	b.Forget(o.Container)
	if _, err := b.Usage(o.Container); err == nil || !strings.Contains(err.Error(), "not measured") {
		t.Errorf("forgotten: %v", err)
	}
}

// A daemon that is killed loses the samples of the last seconds. The next one goes on with the same log, and counts what was
// used in between.
func TestSamplesSurviveKill(t *testing.T) {
	b := newBench(t)
	b.Close()
	gate := filepath.Join(t.TempDir(), "gate")
	o := b.order("sh", "-c", "until [ -e "+gate+" ]; do :; done")
	daemon := exec.Command(os.Args[0], "daemon", b.dir)
	in, err := daemon.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(in).Encode(o); err != nil {
		t.Fatal(err)
	}
	file := b.folder(o.Container).path(usageFile)
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	for deadline := time.Now().Add(time.Minute); size() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no samples were written")
		}
	}
	for first := size(); size() == first; { // the next write has samples for sure
		time.Sleep(20 * time.Millisecond)
	}
	_ = daemon.Process.Kill()
	_ = daemon.Wait()
	before, err := b.folder(o.Container).usage()
	if err != nil || len(before.Usage.Spans) == 0 || before.Torn != 0 {
		t.Fatalf("left behind: %v, %+v", err, before)
	}
	// Half of a record at the end, as a loss of power may leave it.
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\x20torn"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	b.open()
	b.next(cluster.TaskAdopted)
	time.Sleep(1500 * time.Millisecond)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := b.next(cluster.TaskEnded)
	heard := now()
	u, err := b.Usage(o.Container)
	if err == nil || !strings.Contains(err.Error(), "last 5 bytes of its samples were damaged") {
		t.Errorf("with a torn end: %v", err)
	}
	if total, _ := u.Total(usage.CPU); max(total-e.Exit.CPUTime.Milliseconds(), e.Exit.CPUTime.Milliseconds()-total) > 50 {
		t.Errorf("CPU time %d ms, its record says %v", total, e.Exit.CPUTime)
	}
	covers(t, &u, &e, heard)
	if n := len(before.Usage.Spans) - 1; n > 0 && !reflect.DeepEqual(u.Spans[:n], before.Usage.Spans[:n]) {
		t.Errorf("after the restart %+v, before %+v", u.Spans, before.Usage.Spans)
	}
}

// covers checks that a usage covers the run of its container. A sample between the end of the program and the time at
// which its end was heard of counts, too, however late a busy machine tells.
func covers(t *testing.T, u *usage.Usage, e *cluster.Event, heard timeline.Time) {
	t.Helper()
	const start = 300 * time.Millisecond
	least, most := time.Duration(e.Exit.Ended-e.Exit.Started), time.Duration(heard-e.Exit.Started)
	if u.Length() < least-start || u.Length() > most+start {
		t.Errorf("covers %v of a run of %v, whose end was heard of after %v", u.Length(), least, most)
	}
}

// Where the daemon may open few files, they are opened for each sample, and closed.
func TestFewFiles(t *testing.T) {
	b := newBench(t)
	b.monitor.openMost = 1
	orders := []cluster.Order{b.order("sleep", "0.7"), b.order("sleep", "0.7")}
	b.Apply(orders)
	for range orders {
		b.next(cluster.TaskEnded)
	}
	for _, o := range orders {
		u := b.usageOf(o.Container)
		if _, ok := u.Peak(usage.Memory); !ok || u.Length() < 600*time.Millisecond {
			t.Errorf("container %s: %+v", o.Container, u)
		}
	}
	if b.monitor.open != 0 {
		t.Errorf("%d containers have open files after their end", b.monitor.open)
	}
}

// A program that ends while there is no daemon has its counters counted.
func TestEndWithoutDaemonIsMeasured(t *testing.T) {
	b := newBench(t)
	gate := filepath.Join(t.TempDir(), "gate")
	o := b.order("sh", "-c", "until [ -e "+gate+" ]; do :; done")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	time.Sleep(500 * time.Millisecond)
	b.Close()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for held(b.folder(o.Container)) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond) // it has ended, and nobody looks
	b.open()
	e := b.next(cluster.TaskEnded)
	u := b.usageOf(o.Container)
	if total, _ := u.Total(usage.CPU); max(total-e.Exit.CPUTime.Milliseconds(), e.Exit.CPUTime.Milliseconds()-total) > 50 {
		t.Errorf("CPU time %d ms, its record says %v", total, e.Exit.CPUTime)
	}
	if length := time.Duration(e.Exit.Ended - e.Exit.Started); (u.Length() - length).Abs() > 300*time.Millisecond {
		t.Errorf("covers %v of %v", u.Length(), length)
	}
}

// A container of an earlier release has no samples: what was before the restart is a gap.
func TestFoundWithoutSamples(t *testing.T) {
	b := newBench(t)
	o := b.order("sleep", "1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.Close()
	dir := b.folder(o.Container)
	if err := os.Remove(dir.path(usageFile)); err != nil {
		t.Fatal(err)
	}
	before := min(time.Hour, monotonic()/2) // no container is older than its machine's start
	s := started{now().Add(-before)}
	if err := dir.putStarted(s); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.next(cluster.TaskAdopted)
	time.Sleep(2500 * time.Millisecond)
	u := b.usageOf(o.Container)
	if u.Gap() < before-time.Second || u.Length() < u.Gap()+time.Second/2 {
		t.Errorf("gap %v of %v", u.Gap(), u.Length())
	}
	// A container that has ended and has no samples was not measured.
	b.Apply(kill(o.Container))
	b.next(cluster.TaskEnded)
	b.Close()
	if err := os.Remove(dir.path(usageFile)); err != nil {
		t.Fatal(err)
	}
	b.open()
	if _, err := b.Usage(o.Container); err == nil || !strings.Contains(err.Error(), "not measured") {
		t.Errorf("without samples: %v", err)
	}
}

// Samples that cannot be written affect nothing else; they are kept for as long as the daemon lives.
func TestUnwritableSamples(t *testing.T) {
	b := newBench(t)
	gate := filepath.Join(t.TempDir(), "gate")
	o := b.order("sh", "-c", "until [ -e "+gate+" ]; do sleep 0.01; done; exit 6")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	if err := os.Mkdir(b.folder(o.Container).path(usageFile), 0o700); err != nil {
		t.Fatal(err)
	}
	w := b.monitor.all[o.Container]
	w.mu.Lock()
	w.sample(monotonic())
	w.write()
	w.mu.Unlock()
	if !b.monitor.full {
		t.Error("a write succeeded that cannot")
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := b.next(cluster.TaskEnded); e.Exit == nil || e.Exit.Code != 6 {
		t.Errorf("ended %+v: %s", e, e.Detail)
	}
	if u := b.usageOf(o.Container); len(u.Spans) == 0 {
		t.Error("nothing was measured")
	}
}

// A container whose folder or group is gone is sampled no more, and nobody is alarmed: it was forgotten a moment ago.
func TestSamplesOfWhatIsGone(t *testing.T) {
	b := newBench(t)
	g, err := b.root.Create("gone")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.root.Discard(t.Context(), "gone") }()
	c := &container{id: cluster.ContainerID{Task: cluster.TaskID{Job: 1_000_000}, Run: 1}, dir: folder(t.TempDir()), group: g, spec: &spec{Grant: resource.Of(1000, 64*resource.MiB)}}
	w := b.monitor.add(c, now())
	sample := func(after time.Duration) time.Duration {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sample(monotonic() + after)
		w.write()
		return w.log.Last()
	}
	if sample(time.Second) == 0 {
		t.Error("it is not sampled")
	}
	if err := os.RemoveAll(string(c.dir)); err != nil {
		t.Fatal(err)
	}
	last := sample(2 * time.Second)
	if last < 2*time.Second || b.monitor.full {
		t.Errorf("without a folder, the last sample is at %v; reported: %v", last, b.monitor.full)
	}
	if err := b.root.Discard(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if at := sample(3 * time.Second); at != last {
		t.Errorf("without a group, a sample was taken at %v", at)
	}
	open := b.monitor.open
	b.monitor.end(c, 0)
	b.monitor.end(c, 0)
	b.monitor.forget(c.id)
	if !w.ended || b.monitor.open != open-1 || b.monitor.full {
		t.Errorf("ended: %v, %d of %d containers have open files; reported: %v", w.ended, b.monitor.open, open, b.monitor.full)
	}
}

// What could not be written for a while, as on a full disk, is written later.
func TestSamplesAreWrittenAgain(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", "while :; do :; done")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	w := b.monitor.all[o.Container]
	file := w.dir.path(usageFile)
	w.mu.Lock()
	defer w.mu.Unlock()
	at := max(monotonic(), w.origin+w.log.Last())
	for range 3 {
		at += time.Second
		w.sample(at)
	}
	w.write()
	if b.monitor.full {
		t.Fatal("it cannot be written")
	}
	aside := file + ".aside"
	if err := errors.Join(os.Rename(file, aside), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		at += time.Second
		w.sample(at)
		w.write()
	}
	if !b.monitor.full {
		t.Error("nobody learns that samples cannot be written")
	}
	if err := errors.Join(os.Remove(file), os.Rename(aside, file)); err != nil {
		t.Fatal(err)
	}
	at += time.Second
	w.sample(at)
	w.write()
	p, err := w.dir.usage()
	if err != nil || b.monitor.full || p.Torn != 0 || p.Usage.Length() != w.log.Last() {
		t.Errorf("%v: %v of %v are in the file, %d bytes are torn; reported: %v", err, p.Usage.Length(), w.log.Last(), p.Torn, b.monitor.full)
	}
}

// A clock that jumps makes a gap; one that goes back adds nothing, and neither changes totals.
func TestClockJumps(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", "while :; do :; done")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	w := b.monitor.all[o.Container]
	w.mu.Lock()
	defer w.mu.Unlock()
	at := monotonic()
	for _, seconds := range []int{2, 3, 3603, 3604, 4, 3605, 3606} {
		w.sample(at + time.Duration(seconds)*time.Second)
	}
	text, offset := w.log.Unwritten()
	if offset != 0 {
		t.Skip("the file was written meanwhile")
	}
	p, err := usage.Parse(text)
	if err != nil || p.Usage.Gap() != time.Hour || p.Usage.Length() < 3606*time.Second || p.Usage.Length() > 3607*time.Second {
		t.Errorf("%v: gap %v of %v", err, p.Usage.Gap(), p.Usage.Length())
	}
}

// The cost of a sample of 100 containers with real groups, in each of which a program uses CPU, memory and the disk now and then.
// "%core" is the part of a core that a sample a second takes, in percent.
func BenchmarkMonitor(b *testing.B) {
	const containers = 100
	host, err := cgroup.Discover("")
	if err != nil {
		b.Skip(err)
	}
	root, err := host.Root("bench-monitor", cgroup.Memory)
	if err != nil {
		b.Skipf("needs control groups of its own: %v", err)
	}
	defer func() {
		if err := root.Remove(b.Context()); err != nil {
			b.Error(err)
		}
	}()
	for _, old := range []bool{false, true} {
		a := &Agent{root: root, log: slog.New(slog.DiscardHandler), config: Config{Dir: b.TempDir()}}
		a.network = newNetwork(a)
		m := newMonitor(a, a.accountIO())
		var programs []*exec.Cmd
		for i := range containers {
			g, err := root.Create(fmt.Sprint("c", i))
			if err != nil {
				b.Fatal(err)
			}
			dir := b.TempDir()
			program := exec.Command("sh", "-c", "while :; do sleep 0.2; : $(seq 200); echo > data; done")
			program.Dir = dir
			if err := program.Start(); err != nil {
				b.Fatal(err)
			}
			programs = append(programs, program)
			for _, file := range g.JoinFiles() {
				if err := os.WriteFile(file, fmt.Append(nil, program.Process.Pid), 0); err != nil {
					b.Fatal(err)
				}
			}
			c := &container{id: cluster.ContainerID{Task: cluster.TaskID{Job: 1, Index: int32(i)}}, dir: folder(dir), group: g,
				spec: &spec{Grant: resource.Of(1000, 256*resource.MiB)}}
			m.add(c, now())
		}
		if old {
			m.clock = func() time.Duration { return monotonic() + time.Hour }
		}
		b.Run(map[bool]string{false: "young", true: "old"}[old], func(b *testing.B) {
			var used time.Duration
			ticks := 0
			for b.Loop() {
				time.Sleep(100 * time.Millisecond)
				begun := cpuTime()
				if old { // a second passes between samples
					at := monotonic() + time.Hour + time.Duration(ticks)*time.Second
					m.clock = func() time.Duration { return at }
				}
				m.sample()
				used += cpuTime() - begun
				ticks++
			}
			b.ReportMetric(100*used.Seconds()/float64(ticks)/sampling.Seconds(), "%core")
			b.ReportMetric(float64(used.Microseconds())/float64(ticks)/containers, "µs/sample")
			size := 0
			for _, w := range m.each() {
				info, err := os.Stat(w.dir.path(usageFile))
				if err == nil {
					size += int(info.Size())
				}
			}
			b.ReportMetric(float64(size)/containers/float64(ticks), "bytes/sample")
		})
		for _, w := range m.each() {
			w.close()
		}
		for i, program := range programs {
			_ = program.Process.Kill()
			_ = program.Wait()
			if err := root.Discard(b.Context(), fmt.Sprint("c", i)); err != nil {
				b.Error(err)
			}
		}
	}
}
