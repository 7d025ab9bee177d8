package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// step sleeps, then uses a core and 40 MiB for three seconds, and writes and reads a file of a disk meanwhile, and
// sleeps again. It prints when the step began and ended, as times of monotonic, and how many bytes it wrote, and
// read; 0 where the file is on no disk.
func step(path string) {
	const block = 256 << 10
	time.Sleep(2300 * time.Millisecond)
	from := monotonic()
	memory, buffer := testswap.Memory[byte](40<<20), testswap.Memory[byte](block)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_DIRECT, 0o600)
	moved := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		for i := 0; i < len(memory); i += 4096 {
			memory[i]++
		}
		if since := int(monotonic() - from); err == nil && moved < since/int(100*time.Millisecond)*block {
			if _, err = file.WriteAt(buffer, int64(moved)); err == nil {
				_, err = file.ReadAt(buffer, int64(moved))
			}
			moved += block
		}
	}
	_ = unix.Madvise(memory, unix.MADV_DONTNEED)
	if err != nil {
		moved = 0
	}
	fmt.Println(int64(from), int64(monotonic()), moved)
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
		o := b.order(self, "step", filepath.Join(b.dir, "step-"+class.String()))
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
			var from, to, moved int64
			fmt.Sscan(read(t, o.Launch.Stdout), &from, &to, &moved)
			began, ended := time.Duration(from)-origin, time.Duration(to)-origin
			within := 1200 * time.Millisecond // a sample a second, and a busy machine
			if slow() {
				within *= 2
			}
			before := rateAt(u, usage.Memory, time.Second) // while the program sleeps
			above := map[usage.Kind]int64{usage.CPU: 150, usage.Memory: before + 20<<20}
			if why := b.Unmeasured(resource.Disk); moved > 0 && why == "" {
				above[usage.Read], above[usage.Written] = 256<<10, 256<<10
				for _, k := range []usage.Kind{usage.Read, usage.Written} {
					if n, ok := u.Total(k); !ok || n < moved || n > moved+moved/10 {
						t.Errorf("kind %d: %d bytes (known: %v), and it transferred %d", k, n, ok, moved)
					}
				}
			} else {
				t.Logf("the step on the disk is not checked: %d bytes were transferred; %s", moved, why)
			}
			for kind, above := range above {
				first, last := whereAbove(u, kind, above)
				if (first-began).Abs() > within || (last-ended).Abs() > within {
					t.Errorf("kind %d: the step from %v to %v was seen from %v to %v in %+v", kind, began, ended, first, last, u.Spans)
				}
			}
			if total, ok := u.Total(usage.CPU); !ok ||
				max(total-e.Exit.CPUTime.Milliseconds(), e.Exit.CPUTime.Milliseconds()-total) > 50 {
				t.Errorf("CPU time %d ms, its record says %v", total, e.Exit.CPUTime)
			}
			covers(t, &u, &e, heard[o.Task])
			if n, ok := u.Total(usage.Sent); ok != (b.Unmeasured(resource.Network) == "") || n != 0 {
				t.Errorf("sent %d bytes over the network (known: %v), where %q", n, ok, b.Unmeasured(resource.Network))
			}
		})
	}
}

// A FLEX container that is swapped out, for three seconds at least, because a REGULAR one starts, is seen in swap
// within a sample, and in memory again.
func TestPlantedStepInSwap(t *testing.T) {
	testswap.Need(t, 256<<20)
	b := newBench(t)
	b.rival(filepath.Join(t.TempDir(), "gate"), 48)
	flex := b.flexOrder(120)
	b.Apply([]cluster.Order{flex})
	b.next(cluster.DecisionDone)
	b.until("what it holds", flex.Container, func(r cluster.Reading) bool { return *r.Anonymous > 115<<20 })
	time.Sleep(2 * sampling)
	regular := b.order("sleep", "1000")
	regular.Grant = resource.Of(500, 924*resource.MiB)
	b.Apply([]cluster.Order{regular})
	const above = 20 << 20
	origin := b.monitor.all[flex.Container].origin
	b.until("swap", flex.Container, func(r cluster.Reading) bool { return *r.Swap > above })
	began := monotonic() - origin
	b.next(cluster.DecisionDone)
	time.Sleep(3 * time.Second)
	b.Apply(kill(regular.Container))
	b.until("memory again", flex.Container, func(r cluster.Reading) bool { return *r.Swap < above })
	ended := monotonic() - origin
	time.Sleep(3 * sampling)
	within := 1200 * time.Millisecond
	if slow() {
		within *= 2
	}
	u := b.usageOf(flex.Container)
	if first, last := whereAbove(u, usage.Swap, above); (first-began).Abs() > within || (last-ended).Abs() > within {
		t.Errorf("swap from %v to %v was seen from %v to %v in %+v", began, ended, first, last, u.Spans)
	}
	if peak, ok := u.Peak(usage.Swap); !ok || peak < above || peak > 120<<20+1<<20 {
		t.Errorf("at most %d bytes in swap (known: %v)", peak, ok)
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

// whereAbove returns where, after the first second, a rate is above some amount for the first time, and where for the
// last.
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

// dirty makes 2 MiB of each file dirty, and stays: "wait" has them written at once, and "remove" removes them. When
// that is done there is an empty file, the name of the last one with ".done".
func dirty(then, stays string, paths []string) {
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
	d, err := time.ParseDuration(stays)
	if err != nil {
		panic(err)
	}
	time.Sleep(d)
	os.Exit(0)
}

// What a container writes is measured, also where the counters of groups miss what stays in the page cache: of
// programs that end before the first sample, of children that live between samples or through them, and only once.
func TestWritesAreMeasured(t *testing.T) {
	b := newBench(t)
	var st unix.Stat_t
	if err := unix.Stat(b.dir, &st); err != nil || unix.Major(st.Dev) == 0 {
		t.Skipf("needs temporary files on a disk: %v", err)
	}
	then := "leave"
	if b.groups.root.Group.BoundsAll() { // There, it is measured when it is written.
		then = "wait"
	}
	path := func(name string) string { return filepath.Join(b.dir, name) }
	orders := map[string]cluster.Order{
		"one program": b.order(os.Args[0], "dirty", then, "0.3s", path("a"), path("b"), path("c"), path("d")),
		"children": b.order("sh", "-c", fmt.Sprintf("for i in 1 2 3 4; do %s dirty %s 0.3s %s$i; done; :", os.Args[0],
			then, path("e"))),
		"grandchildren": b.order("sh", "-c",
			fmt.Sprintf("(%[1]s dirty %[2]s 0.3s %[3]s1 & %[1]s dirty %[2]s 0.3s %[3]s2 & wait); (%[1]s dirty %[2]s 0.3s "+
				"%[3]s3 %[3]s4; :); sleep 1.5", os.Args[0], then, path("f"))),
		"remaining": b.order("sh", "-c",
			fmt.Sprintf("setsid %s dirty %s 100s %s1 %[3]s2 %[3]s3 %[3]s4 & until [ -e %[3]s4.done ]; do sleep 0.02; done",
				os.Args[0], then, path("g"))),
	}
	if then == "leave" {
		orders["removed"] = b.order(os.Args[0], "dirty", "remove", "0.3s", path("h"), path("i"), path("j"), path("k"))
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
			t.Errorf("%s: %d bytes were written (known: %v), want from %d to %d: %+v", name, n, ok, least, most,
				b.usageOf(o.Container).Spans)
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

// A daemon that is killed loses the samples of the last seconds. The next one goes on with the same log, and counts
// what was used in between.
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

// covers checks that a usage covers the run of its container. A sample between the end of the program and the
// report of its end counts, too, however late a busy machine reports it.
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
	time.Sleep(500 * time.Millisecond) // it has ended, and no daemon reads
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

// What a container held that ended for want of memory is told once, whether an agent saw the end or found it. Of others
// it is not told, though the kernel killed a process of them.
func TestEndWithoutDaemonTellsWhatWasHeld(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for last, want := range map[string]cluster.Outcome{"": cluster.OutOfMemory, "; exit 0": cluster.Succeeded} {
		t.Run(want.String(), func(t *testing.T) {
			b := newBench(t)
			gate := filepath.Join(t.TempDir(), "gate")
			o := b.order("sh", "-c", "until [ -e "+gate+" ]; do sleep 0.01; done; "+self+" allocate 200"+last)
			b.Apply([]cluster.Order{o})
			b.next(cluster.DecisionDone)
			b.Close()
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			await(t, "the record of the end", func() bool { return !held(b.folder(o.Container)) })
			b.open()
			e, granted := b.next(cluster.TaskEnded), o.Grant[resource.Memory]
			if e.Outcome != want || e.Exit == nil || e.Exit.OOMKills < 1 || e.Exit.Used < granted {
				t.Fatalf("ended %s %+v: %s", e.Outcome, e.Exit, e.Detail)
			}
			if held := e.Exit.Held; want == cluster.OutOfMemory && held < granted || want == cluster.Succeeded && held != 0 {
				t.Errorf("held %d of %d when it ended %s", held, granted, e.Outcome)
			}
		})
	}
}

// A container may have no samples, on a full disk: what was before the restart is a gap.
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
	s := started{At: now().Add(-before)}
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

// A container whose folder or group is gone is no longer sampled, and no error is logged: it was forgotten a moment
// ago.
func TestSamplesOfWhatIsGone(t *testing.T) {
	b := newBench(t)
	g, err := b.groups.root.Create("gone")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.groups.root.Discard(t.Context(), "gone") }()
	c := &container{id: cluster.ContainerID{Task: cluster.TaskID{Job: 1_000_000}, Run: 1}, dir: folder(t.TempDir()),
		group: g, kept: keeper.NewContainer(keeper.Setup{Group: g}), spec: &spec{Grant: resource.Of(1000, 64*resource.MiB)}}
	w := b.monitor.found(c, now())
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
	if err := b.groups.root.Discard(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if at := sample(3 * time.Second); at != last {
		t.Errorf("without a group, a sample was taken at %v", at)
	}
	open := b.monitor.open
	b.monitor.end(c, nil)
	b.monitor.end(c, nil)
	b.monitor.forget(c.id)
	if !w.ended || b.monitor.open != open-1 || b.monitor.full {
		t.Errorf("ended: %v, %d of %d containers have open files; reported: %v", w.ended, b.monitor.open, open,
			b.monitor.full)
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
		t.Error("that samples cannot be written is not logged")
	}
	if err := errors.Join(os.Remove(file), os.Rename(aside, file)); err != nil {
		t.Fatal(err)
	}
	at += time.Second
	w.sample(at)
	w.write()
	p, err := w.dir.usage()
	if err != nil || b.monitor.full || p.Torn != 0 || p.Usage.Length() != w.log.Last() {
		t.Errorf("%v: %v of %v are in the file, %d bytes are torn; reported: %v", err, p.Usage.Length(), w.log.Last(),
			p.Torn, b.monitor.full)
	}
}

// The file of a container that runs for long is replaced by a smaller one, which the daemon shows and the next daemon
// goes on with.
func TestLongRun(t *testing.T) {
	w := &monitored{monitor: &monitor{agent: &Agent{log: slog.New(slog.NewTextHandler(t.Output(), nil))},
		clock: monotonic}, dir: folder(t.TempDir())}
	w.tolerance = usage.ToleranceFor(resource.Of(1000, resource.GiB))
	w.log = usage.NewLog(0, w.tolerance)
	noise := rand.New(rand.NewPCG(1, 2))
	s := usage.Sample{Known: usage.SetOf(usage.CPU, usage.Memory)}
	run := func() (shrunk bool) {
		for range 100 {
			s.At += time.Second
			s.Value[usage.CPU] += noise.Int64N(1000)
			s.Value[usage.Memory] = noise.Int64N(1 << 30)
			w.log.Add(s)
		}
		full := w.log.Full()
		w.write()
		return full && !w.log.Full()
	}
	for !run() {
		if s.At > 24*time.Hour {
			t.Fatal("it never shrinks")
		}
	}
	path := w.dir.path(usageFile)
	info, err := os.Stat(path)
	if err != nil || info.Size() > usage.FileMost*2/3 {
		t.Fatalf("%v: %d bytes", err, info.Size())
	}
	check := func(u usage.Usage, err error) {
		t.Helper()
		if total, _ := u.Total(usage.CPU); err != nil || u.Length() != s.At || u.Gap() != 0 || total != s.Value[usage.CPU] {
			t.Errorf("%v: %v of %v, gap %v, %d of %d", err, u.Length(), s.At, u.Gap(), total, s.Value[usage.CPU])
		}
	}
	check(w.usage())
	p, err := w.dir.usage()
	check(p.Usage, errors.Join(err, missing(p.Torn)))
	w.log = p.Continue(w.tolerance)
	for !w.log.Full() {
		run()
	}
	aside := w.dir.path("aside") // Where it cannot be replaced, it is written as before.
	if err := os.MkdirAll(filepath.Join(path+".tmp", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	run()
	check(w.usage())
	if w.log.Full() || w.monitor.full {
		t.Errorf("it is tried again at once: %v; reported: %v", w.log.Full(), w.monitor.full)
	}
	if err := os.Rename(path+".tmp", aside); err != nil {
		t.Fatal(err)
	}
	for !run() {
		if s.At > 48*time.Hour {
			t.Fatal("it never shrinks again")
		}
	}
	check(w.usage())
}

// paper is a monitor with one container in a control group of plain files, whose clock and whose memory the test sets.
type paper struct {
	*monitor
	c     *container
	dir   string // of the group
	clock time.Duration
	log   bytes.Buffer
}

func newPaper(t *testing.T) *paper {
	root := t.TempDir()
	p := &paper{dir: filepath.Join(root, "memory", "bellows-paper", "c"), clock: 1000 * time.Hour}
	for name, text := range map[string]string{
		"proc/self/mountinfo": "35 31 0:32 / /memory rw - cgroup cgroup rw,memory\n", "proc/self/cgroup": "4:memory:/\n",
		"proc/sys/kernel/random/boot_id": "b00t\n",
		"memory/memory.use_hierarchy":    "1\n",
	} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	host, err := cgroup.Discover(root)
	if err != nil {
		t.Fatal(err)
	}
	on, err := host.Root("paper", cgroup.Memory)
	if err != nil {
		t.Fatal(err)
	}
	g, err := on.Create("c")
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{groups: &groups{root: on}, log: slog.New(slog.NewTextHandler(&p.log, nil))}
	a.network = &network{why: "not in this test"}
	p.monitor = newMonitor(a)
	p.monitor.clock = func() time.Duration { return p.clock }
	p.c = &container{id: cluster.ContainerID{Task: cluster.TaskID{Job: 1}, Run: 1}, dir: folder(t.TempDir()), group: g,
		kept: keeper.NewContainer(keeper.Setup{Group: g}), spec: &spec{Grant: resource.Of(1000, resource.GiB)}}
	p.holds(t, 0, 0)
	if err := os.WriteFile(filepath.Join(p.dir, "cgroup.procs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// holds lets the container hold memory and page cache, in MiB.
// begins samples the container from now on. Of a container that was found, the calendar says when it began, and goes
// on meanwhile.
func (p *paper) begins() *monitored {
	return p.add(p.c, usage.NewLog(p.clock, usage.ToleranceFor(p.c.spec.Grant)))
}

func (p *paper) holds(t *testing.T, memory, cache int) {
	t.Helper()
	for file, text := range map[string]string{
		"memory.stat":                 fmt.Sprintf("total_rss %d\ntotal_cache %d\n", memory<<20, cache<<20),
		"memory.usage_in_bytes":       fmt.Sprintln((memory + cache) << 20),
		"memory.memsw.usage_in_bytes": fmt.Sprintln((memory + cache) << 20),
	} {
		if err := os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A container is sampled each second. After ten minutes, memory is read in detail every five seconds, and in the same
// second when it may have grown by more than a tenth of the grant, of 1 GiB here: because the charge has moved, or
// because page cache may have made room.
func TestWhenMemoryIsRead(t *testing.T) {
	type change struct{ second, memory, cache int } // in MiB
	for _, c := range []struct {
		name    string
		age     time.Duration
		changes []change
		within  int // seconds until the last change must be seen; 1 is the sample after it
	}{
		{"a young container, and what the charge does not show", 0, []change{{0, 100, 60}, {7, 130, 30}}, 1},
		{"a step up", 10 * time.Minute, []change{{0, 100, 0}, {7, 210, 0}}, 1},
		{"a step down", 10 * time.Minute, []change{{0, 310, 0}, {7, 200, 0}}, 1},
		{"a small step, twice", 10 * time.Minute, []change{{0, 100, 0}, {6, 120, 0}, {7, 140, 0}}, 1},
		{"growth while page cache shrinks, as at the limit", 10 * time.Minute, []change{{0, 500, 500}, {7, 650, 350}}, 1},
		{"a fall while page cache grows", 10 * time.Minute, []change{{0, 300, 0}, {7, 100, 200}}, 5},
		{"little growth that the charge does not show", 10 * time.Minute, []change{{0, 100, 60}, {7, 130, 30}}, 5},
		{"a step too small to be read at once", 10 * time.Minute, []change{{0, 100, 0}, {7, 110, 0}}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPaper(t)
			w := p.begins()
			defer w.close()
			p.clock += c.age
			var last change
			seen := 0
			for second := range 20 {
				for _, ch := range c.changes {
					if ch.second == second {
						p.holds(t, ch.memory, ch.cache)
						last = ch
					}
				}
				p.clock += sampling
				p.sample()
				if got := w.log.Last(); got != c.age+time.Duration(second+1)*time.Second {
					t.Fatalf("after %d s the last sample is at %v", second+1, got)
				}
				if seen == 0 && second >= 7 && w.held.AnonBytes == int64(last.memory)<<20 {
					seen = second - 6
				}
			}
			if c.within == 1 && seen != 1 || seen < 1 || seen > c.within {
				t.Errorf("the change was seen after %d s, want %d", seen, c.within)
			}
			if c.within > 1 && seen == 1 {
				t.Error("it was seen at once: memory.stat is read more often than necessary")
			}
		})
	}
}

// A clock that jumps makes a gap; one that goes back adds nothing, and neither changes totals.
func TestClockJumps(t *testing.T) {
	p := newPaper(t)
	w := p.begins()
	defer w.close()
	at := p.clock
	for _, seconds := range []int{2, 3, 3603, 3604, 4, 3605, 3606} {
		p.clock = at + time.Duration(seconds)*time.Second
		p.sample()
	}
	u, err := w.usage()
	if err != nil || u.Gap() != time.Hour || (u.Length()-3606*time.Second).Abs() > time.Second {
		t.Errorf("%v: gap %v of %v", err, u.Gap(), u.Length())
	}
}

// A container without samples that is found after a restart has run since its begin by the clock, whatever the
// calendar says; where only the calendar's time is known, what cannot be right is reported. A container with samples
// goes on with its own begin.
func TestFoundAfterCalendarWasSet(t *testing.T) {
	const age = 20 * time.Minute
	for _, c := range []struct {
		name     string
		calendar time.Duration // how long ago it began, as the calendar has it
		clock    bool          // the record has the clock's time
		want     time.Duration // length of the first span
		said     string
	}{
		{"unchanged", age, true, age, ""},
		{"set forward", age + 5*time.Hour, true, age, "the calendar was set since a container began"},
		{"set back", age - 5*time.Hour, true, age, "the calendar was set since a container began"},
		{"only the calendar", age, false, age, ""},
		{"only the calendar, set forward by years", 30_000 * time.Hour, false, 1000 * time.Hour,
			"the length of what it used without samples is unknown"},
		{"only the calendar, set back", age - 5*time.Hour, false, 0, "the length of what it used without samples is unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPaper(t)
			s := started{At: now().Add(-c.calendar)}
			if c.clock {
				s.Clock = p.clock - age
			}
			if err := p.c.dir.putStarted(s); err != nil {
				t.Fatal(err)
			}
			w := p.found(p.c, s.At)
			p.clock += time.Second
			p.sample()
			u, err := w.usage()
			if err != nil || (u.Gap()-c.want-time.Second).Abs() > time.Second && c.want > 0 || u.Length() > c.want+
				2*time.Second {
				t.Errorf("%v: %v, of which %v are a gap, want %v", err, u.Length(), u.Gap(), c.want)
			}
			if said := p.log.String(); c.said == "" && said != "" || !strings.Contains(said, c.said) {
				t.Errorf("the log says %q, want %q", said, c.said)
			}
			p.log.Reset()
			p.forget(p.c.id)
			if err := p.c.dir.putStarted(started{At: s.At.Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			if again := p.found(p.c, s.At.Add(time.Hour)); again.origin != w.origin || p.log.Len() > 0 {
				t.Errorf("with samples it begins at %v, before at %v, and the log says %q", again.origin, w.origin, p.log.String())
			}
		})
	}
}

// The cost of sampling 100 containers with real groups, in each of which a program comes and goes every second, uses
// CPU and memory, and writes. A second passes between samples, as in the daemon, so that every write and every
// process of that second counts: "-benchtime 60x" takes a minute for each age. "%core" is the part of a core that
// this takes, in percent, and "most%core" the most of ten seconds, which two writes are a part of.
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
		b.Run(map[bool]string{false: "young", true: "old"}[old], func(b *testing.B) {
			benchmarkMonitor(b, root, containers, old)
		})
	}
}

func benchmarkMonitor(b *testing.B, root *cgroup.Root, containers int, old bool) {
	log := slog.New(slog.DiscardHandler)
	a := &Agent{groups: &groups{dir: b.TempDir(), root: root, log: log}, log: log}
	a.network = newNetwork(a)
	a.groups.accountIO()
	m := newMonitor(a)
	var programs []*exec.Cmd
	defer func() {
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
	}()
	for i := range containers {
		g, err := root.Create(fmt.Sprint("c", i))
		if err != nil {
			b.Fatal(err)
		}
		counter := a.network.begin(g)
		dir := b.TempDir()
		program := exec.Command("sh", "-c", "while :; do sleep 1; : $(seq 200); echo > data; done")
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
		m.found(&container{id: cluster.ContainerID{Task: cluster.TaskID{Job: 1, Index: int32(i)}}, dir: folder(dir),
			group: g, kept: keeper.NewContainer(keeper.Setup{Group: g}),
			spec: &spec{Grant: resource.Of(1000, 256*resource.MiB)}, counter: counter}, now())
	}
	if old {
		m.clock = func() time.Duration { return monotonic() + time.Hour }
	}
	tick := time.NewTicker(sampling)
	defer tick.Stop()
	m.sample()                         // opens files, and writes them for the first time
	used := []time.Duration{cpuTime()} // after each sample; programs do not count
	most := time.Duration(0)
	for b.Loop() {
		<-tick.C
		m.sample()
		used = append(used, cpuTime())
		if n := len(used); n > 10 {
			most = max(most, (used[n-1]-used[n-11])/10)
		}
	}
	ticks := len(used) - 1
	mean := (used[ticks] - used[0]) / time.Duration(ticks)
	b.ReportMetric(100*mean.Seconds()/sampling.Seconds(), "%core")
	b.ReportMetric(100*most.Seconds()/sampling.Seconds(), "most%core")
	b.ReportMetric(float64(mean.Microseconds())/float64(containers), "µs/sample")
	size := 0
	for _, w := range m.each() {
		if info, err := os.Stat(w.dir.path(usageFile)); err == nil {
			size += int(info.Size())
		}
	}
	b.ReportMetric(float64(size)/float64(ticks*containers), "bytes/sample")
	version, _ := root.Has(cgroup.Memory)
	u, err := m.each()[0].usage()
	_, network := u.Total(usage.Sent)
	b.Logf("memory is counted by version %d; network: %v %s; %v", version, network, a.network.why, err)
}
