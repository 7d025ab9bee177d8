// Package guest runs a Go test binary inside a virtual machine whose kernel, init, swap and users are known, and
// reports every test in it as a test of the host. It exists because a kernel has either version 1 or version 2 control
// groups for a controller, and a test machine has only one kernel.
//
// The machine is QEMU, with hardware acceleration where the processor supports it. Elsewhere, for example inside most
// virtual machines, it is emulated. It boots Debian's kernel in about two seconds. internal/guest/setup downloads its
// parts; Run skips where they are missing.
//
// Only tests import this package.
package guest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/guest/internal/plan"
)

// Init is the first program of a guest.
type Init int

const (
	// BareInit is a few lines of our own: no services, and every process begins in the root cgroup.
	BareInit Init = iota
	// Systemd has systemd, dbus and logind, and two ordinary users.
	Systemd
)

// Cgroups says which versions of control groups the guest mounts.
type Cgroups int

const (
	// Unified is version 2 alone.
	Unified Cgroups = iota
	// Legacy is version 1 alone, one hierarchy per controller.
	Legacy
	// Hybrid is version 1 for all controllers but pids, which is version 2. Under systemd it is systemd's own hybrid
	// layout.
	Hybrid
)

// As is the user who runs the tests.
type As string

const (
	// Root is root; under systemd, in a service of its own without delegation.
	Root As = "root"
	// RootScope is root in a scope that systemd delegated.
	RootScope As = "root-scope"
	// Narrow is an ordinary user in a delegated scope with the controllers cpu, memory and pids.
	Narrow As = "narrow"
	// Wide is an ordinary user in a delegated scope that also has io and cpuset.
	Wide As = "wide"
)

// runs translates each As for a plan. internal/guest/setup makes the users.
var runs = map[As]plan.Run{
	Root:      {Name: string(Root)},
	RootScope: {Name: string(RootScope), Scope: true},
	Narrow:    {Name: string(Narrow), UID: 1000, GID: 1000, Scope: true},
	Wide:      {Name: string(Wide), UID: 1001, GID: 1001, Scope: true},
}

// Config is the machine and its users. The zero Config is a bare machine of 768 MiB and one CPU, used by root. With two
// CPUs a guest now and then hangs for ever in tests that throttle CPU.
type Config struct {
	Init      Init
	Cgroups   Cgroups
	MemoryMiB int
	CPUs      int
	// SwapBytes is the size of a swap disk, ZramBytes the size of a zram device for swap; 0 means none.
	SwapBytes, ZramBytes int64
	// ScratchBytes is the size of a disk that any user may overwrite. Its device is in the environment of the tests as
	// BELLOWS_SCRATCH_DEVICE; 0 means none.
	ScratchBytes int64
	// KernelArgs are added to the kernel's command line.
	KernelArgs []string
	// As lists the users who run the tests, one after the other in the same guest. All but Root need Systemd.
	As []As
	// Env is added to the environment of the tests.
	Env []string
	// Files are copied from the host (the values) to /guest/NAME (the keys), executable for all.
	Files map[string]string
	// Programs are programs and directories of the host. In a guest with systemd they are below the directory that the
	// variable BELLOWS_PROGRAMS names, at the same paths, with the libraries that they need: a root for chroot.
	Programs []string
	// Skips reports which tests skip in the guest, because As lacks what they need. Such a test fails if it does not
	// skip, and any other test fails if it does. nil means that no test skips.
	Skips func(as As, test string) bool
	// Run is the regular expression of the tests that As runs; without an entry, As runs the tests that the args of Run
	// select.
	Run map[As]string
	// Timeout is how long the guest may take; 0 means 3 minutes.
	Timeout time.Duration
}

// Build compiles the tests of the package in dir ("." is the package under test) to a binary that runs in any guest,
// and returns its path. tags are build tags, for instance "guest".
func Build(t *testing.T, dir string, tags ...string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "program")
	build(t, "test", "-c", "-tags", strings.Join(tags, ","), "-o", binary, dir)
	return binary
}

func build(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Run boots a guest, runs the test binary in it with args ("-test.run=..." and the like) once for each of c.As, and
// makes each test a subtest of t with its output. It skips if this machine has no QEMU or no guest kernel. On failure
// it logs the console, with the messages of the kernel and systemd.
func Run(t *testing.T, c Config, binary string, args ...string) {
	t.Helper()
	cache, why := available()
	if why != "" {
		t.Skip("needs " + why)
	}
	c = c.withDefaults()
	dir := t.TempDir()
	m := machine{config: c, cache: cache, dir: dir, plan: plan.Plan{
		Systemd: c.Init == Systemd,
		Mounts:  c.mounts(),
		Zram:    c.ZramBytes,
		Program: plan.Program,
		Args: append([]string{
			"-test.v=test2json",
			// A test that hangs prints its stacks before the guest is switched off; args may override this.
			fmt.Sprintf("-test.timeout=%v", c.Timeout*9/10),
		}, args...),
		Env: c.Env,
	}}
	for _, as := range c.As {
		run, ok := runs[as]
		if !ok || as != Root && c.Init != Systemd {
			t.Fatalf("guest: user %q does not exist in this guest", as)
		}
		tests, selected := selection(t.Name(), as)
		if !selected {
			continue
		}
		if tests == "" {
			tests = c.Run[as]
		}
		if turn := c.turn(as); turn != "" {
			t.Run(string(as), func(t *testing.T) { t.Skip(turn + ": " + strings.Join(c.list(t, binary, as, tests, args), " ")) })
			continue
		}
		if tests != "" {
			run.Args = []string{"-test.run=" + tests}
		}
		m.plan.Runs = append(m.plan.Runs, run)
	}
	if len(m.plan.Runs) == 0 {
		return
	}
	if err := m.addDisks(); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(dir, "init")
	build(t, "build", "-o", first, "github.com/bellows-rm/bellows/internal/guest/init")
	if err := m.pack(first, binary); err != nil {
		t.Fatalf("guest: pack its files: %v", err)
	}
	m.boot(t)
}

// selection returns what the flag -test.run of this process selects below the test that runs a guest: whether as is
// selected, and the regular expression of the tests, "" for all. So one test can run alone in a guest:
// -run='TestGuest/^v2$/^root$/^TestLease$'.
func selection(test string, as As) (tests string, selected bool) {
	levels := strings.Split(flag.Lookup("test.run").Value.String(), "/")
	levels = levels[min(len(levels), strings.Count(test, "/")+1):]
	if len(levels) == 0 {
		return "", true
	}
	selected, err := regexp.MatchString(levels[0], string(as))
	return strings.Join(levels[1:], "/"), selected || err != nil // testing itself reports a wrong expression
}

// turn says why a run is left to another turn; "" if it is not. TURN=K/N in the environment means that this is turn K
// of N: root with version 2 of control groups runs in each of them, all else in one.
func (c Config) turn(as As) string {
	var k, n int
	if _, err := fmt.Sscanf(os.Getenv("TURN"), "%d/%d", &k, &n); err != nil || n < 1 {
		return ""
	}
	var of int
	switch {
	case c.Cgroups != Unified:
		of = 0
	case as == RootScope || c.ZramBytes > 0:
		of = 1
	case as != Root:
		of = 2
	default:
		return ""
	}
	if of = of%n + 1; of == k {
		return ""
	}
	return fmt.Sprintf("left to turn %d of %d", of, n)
}

// list returns the names of the tests that as would run in the guest: those that match run, or args without it. So
// internal/testrun knows which tests wait for another turn.
func (c Config) list(t *testing.T, binary string, as As, run string, args []string) (tests []string) {
	t.Helper()
	skip := "^$"
	for _, arg := range args {
		if text, ok := strings.CutPrefix(arg, "-test.run="); ok && run == "" {
			run = text
		} else if text, ok := strings.CutPrefix(arg, "-test.skip="); ok {
			skip = text
		}
	}
	run, _, _ = strings.Cut(cmp.Or(run, "."), "/")
	out, err := exec.Command(binary, "-test.list="+run).Output()
	if err != nil {
		t.Fatalf("guest: list the tests of %s: %v", binary, err)
	}
	left := regexp.MustCompile(skip)
	return slices.DeleteFunc(strings.Fields(string(out)), func(test string) bool {
		return left.MatchString(test) || c.Skips(as, test)
	})
}

func (c Config) withDefaults() Config {
	if c.MemoryMiB == 0 {
		c.MemoryMiB = 768
	}
	if c.CPUs == 0 {
		c.CPUs = 1
	}
	if c.Timeout == 0 {
		c.Timeout = 3 * time.Minute
	}
	if len(c.As) == 0 {
		c.As = []As{Root}
	}
	if c.Skips == nil {
		c.Skips = func(As, string) bool { return false }
	}
	return c
}

// mounts lists the file systems that the first program mounts. systemd mounts its own.
func (c Config) mounts() []plan.Mount {
	out := []plan.Mount{{Kind: "proc", Dir: "/proc"}, {Kind: "sysfs", Dir: "/sys"}, {Kind: "devtmpfs", Dir: "/dev"},
		{Kind: "tmpfs", Dir: "/tmp"}}
	const top = "/sys/fs/cgroup"
	switch {
	case c.Init == Systemd:
		return out
	case c.Cgroups == Unified:
		return append(out, plan.Mount{Kind: "cgroup2", Dir: top})
	}
	controllers := []string{"memory", "cpu", "cpuacct", "cpuset", "freezer", "blkio"}
	if c.Cgroups == Legacy {
		controllers = append(controllers, "pids")
	}
	out = append(out, plan.Mount{Kind: "tmpfs", Dir: top})
	for _, name := range controllers {
		out = append(out, plan.Mount{Kind: "cgroup", Dir: top + "/" + name, Options: name})
	}
	if c.Cgroups == Hybrid {
		out = append(out, plan.Mount{Kind: "cgroup2", Dir: top + "/unified"})
	}
	return out
}

// commandLine is the kernel's command line.
func (c Config) commandLine() string {
	words := []string{"console=ttyS0", "psi=1", "panic=-1", "reboot=t", "quiet", "loglevel=4"}
	if c.Cgroups == Unified {
		words = append(words, "cgroup_no_v1=all")
	}
	if c.Init == Systemd {
		words = append(words, "systemd.show_status=0", "systemd.log_level=warning", "systemd.log_target=console", "rw")
		if c.Cgroups != Unified {
			words = append(words, "systemd.unified_cgroup_hierarchy=0")
		}
		if c.Cgroups == Legacy {
			words = append(words, "systemd.legacy_systemd_cgroup_controller=1")
		}
	}
	return strings.Join(append(words, c.KernelArgs...), " ")
}

// available returns the directory that internal/guest/setup filled, or the name of a missing part.
func available() (cache, missing string) {
	if _, err := exec.LookPath(emulator); err != nil {
		return "", "QEMU: run internal/guest/setup"
	}
	cache = os.Getenv("BELLOWS_GUEST_CACHE")
	if cache == "" {
		out, err := exec.Command("go", "env", "GOMOD").Output()
		if err != nil {
			return "", fmt.Sprintf("the go command: %v", err)
		}
		cache = filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), ".cache", "guest")
	}
	if _, err := os.Stat(filepath.Join(cache, "layout")); err != nil {
		return "", "a guest kernel: run internal/guest/setup"
	}
	return cache, ""
}

const emulator = "qemu-system-x86_64"

// machine is one running guest.
type machine struct {
	config Config
	cache  string
	dir    string
	plan   plan.Plan
	disks  []string // arguments of QEMU

	qemu *exec.Cmd
	in   io.Writer // what the guest reads from plan.Port
}

// addDisks makes the disks and enters their names in the plan; the kernel assigns names in the order of QEMU's
// arguments.
func (m *machine) addDisks() error {
	add := func(options string) (device string) {
		m.disks = append(m.disks, "-drive", options+",if=virtio,format=raw")
		return "/dev/vd" + string(rune('a'+len(m.disks)/2-1))
	}
	if m.plan.Systemd {
		m.plan.Root = add("file=" + filepath.Join(m.cache, "rootfs.ext4") + ",snapshot=on")
	}
	if len(m.config.Programs) > 0 {
		file, err := programsDisk(m.dir, m.config.Programs)
		if err != nil {
			return err
		}
		m.plan.Programs = add("file=" + file + ",cache=unsafe")
		m.plan.Env = append(slices.Clip(m.plan.Env), "BELLOWS_PROGRAMS="+plan.Programs)
	}
	for _, d := range []struct {
		name   string
		bytes  int64
		device *string
	}{{"swap", m.config.SwapBytes, &m.plan.Swap}, {"scratch", m.config.ScratchBytes, &m.plan.Scratch}} {
		if d.bytes == 0 {
			continue
		}
		file := filepath.Join(m.dir, d.name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return err
		}
		if err := os.Truncate(file, d.bytes); err != nil {
			return err
		}
		*d.device = add("file=" + file + ",cache=unsafe")
	}
	return nil
}

// pack writes the initial file system.
func (m *machine) pack(first, binary string) error {
	f, err := os.Create(filepath.Join(m.dir, "initramfs"))
	if err != nil {
		return err
	}
	defer f.Close()
	buffered := bufio.NewWriterSize(f, 1<<20)
	a := &archive{w: buffered}
	for _, dir := range []string{"guest", "guest/modules", "dev", "proc", "sys", "tmp", "sysroot"} {
		a.dir(dir)
	}
	copyIn := func(to, from string) error {
		content, err := os.ReadFile(from)
		if err == nil {
			a.file(strings.TrimPrefix(to, "/"), 0o755, content)
		}
		return err
	}
	files := map[string]string{"/init": first, plan.Init: first, plan.Program: binary}
	for name, from := range m.config.Files {
		files[path.Join("/guest", path.Base(name))] = from
	}
	modules, err := filepath.Glob(filepath.Join(m.cache, "modules", "*"))
	if err != nil {
		return err
	}
	for _, module := range modules {
		files[path.Join(plan.Modules, filepath.Base(module))] = module
	}
	for to, from := range files {
		if err := copyIn(to, from); err != nil {
			return err
		}
	}
	text, err := json.Marshal(m.plan)
	if err != nil {
		return err
	}
	a.file(strings.TrimPrefix(plan.File, "/"), 0o644, text)
	if err := a.close(); err != nil {
		return err
	}
	return buffered.Flush()
}

// accelerator is KVM where it can run a machine. The existence of /dev/kvm is no proof: in some virtual machines it
// creates a machine that never executes an instruction.
func accelerator() string {
	device, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return "tcg,thread=multi"
	}
	device.Close()
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !virtualizes.Match(info) {
		return "tcg,thread=multi"
	}
	return "kvm"
}

// virtualizes finds the flags of Intel's and AMD's processors with hardware virtualization.
var virtualizes = regexp.MustCompile(`(?m)^flags\s*:.*\b(vmx|svm)\b`)

// boot starts QEMU and reads its answers until it ends.
func (m *machine) boot(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), m.config.Timeout)
	defer cancel()
	console := filepath.Join(m.dir, "console")
	args := append([]string{
		"-accel", accelerator(), "-machine", "q35", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-m", strconv.Itoa(m.config.MemoryMiB), "-smp", strconv.Itoa(m.config.CPUs),
		"-kernel", filepath.Join(m.cache, "vmlinuz"), "-initrd", filepath.Join(m.dir, "initramfs"),
		"-append", m.config.commandLine(),
		"-serial", "file:" + console, "-chardev", "stdio,id=answers,signal=off", "-serial", "chardev:answers",
		"-qmp", "unix:" + m.monitor() + ",server=on,wait=off",
	}, m.disks...)
	if len(m.config.Programs) > 0 { // they may expect more than QEMU's plain processor
		args = append(args, "-cpu", "max")
	}
	qemu := exec.CommandContext(ctx, emulator, args...)
	var complaints strings.Builder
	qemu.Stderr = &complaints
	qemu.WaitDelay = 5 * time.Second
	out, err := qemu.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if m.in, err = qemu.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	m.qemu = qemu
	began := time.Now()
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	r := &reporter{t: t, config: m.config, began: began, stop: m.stop}
	r.read(out)
	err = qemu.Wait()
	switch {
	case ctx.Err() != nil:
		t.Errorf("guest: not done after %v", m.config.Timeout)
	case err != nil:
		t.Errorf("guest: QEMU: %v: %s", err, complaints.String())
	case !r.done:
		t.Errorf("guest: it ended before its last answer")
	}
	t.Logf("guest: %d tests in %.1f s", r.tests, time.Since(began).Seconds())
	if t.Failed() {
		text, _ := os.ReadFile(console)
		t.Logf("guest: the end of its console:\n%s", tail(string(text), 60))
	}
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// reporter turns the answers of a guest into subtests.
type reporter struct {
	t      *testing.T
	config Config
	began  time.Time
	stop   func(request string)
	tests  int
	done   bool
}

// read takes answers until they end.
func (r *reporter) read(out io.Reader) {
	answers := bufio.NewReaderSize(out, 1<<16)
	for {
		line, err := answers.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, plan.Begin):
			as := As(strings.TrimPrefix(line, plan.Begin))
			r.t.Run(string(as), func(t *testing.T) { r.readRun(t, as, answers) })
		case strings.HasPrefix(line, plan.Fail):
			r.t.Errorf("guest: %s", strings.TrimPrefix(line, plan.Fail))
		case line == plan.Done:
			r.done = true
		case line != "":
			r.t.Log(line)
		}
		if err != nil {
			return
		}
	}
}

// readRun reads the answers of one run, through the go command's own converter.
func (r *reporter) readRun(t *testing.T, as As, answers *bufio.Reader) {
	converter := exec.Command("go", "tool", "test2json", "-t")
	in, err := converter.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := converter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := converter.Start(); err != nil {
		t.Fatal(err)
	}
	code := make(chan string, 1)
	go func() {
		defer in.Close()
		code <- copyRun(in, answers, r.stop)
	}()
	r.convert(t, as, out)
	if err := converter.Wait(); err != nil {
		t.Errorf("guest: go tool test2json: %v", err)
	}
	if end := <-code; end != "0" && !t.Failed() {
		t.Errorf("guest: the program ended with %s", end)
	}
}

// copyRun copies lines up to the mark that ends a run, and returns the text after the mark: the exit code, or the
// failure. It calls stop for each request to stop the guest.
func copyRun(to io.Writer, answers *bufio.Reader, stop func(request string)) string {
	for {
		line, err := answers.ReadString('\n')
		mark := strings.TrimRight(line, "\r\n")
		if end, ok := strings.CutPrefix(mark, plan.End); ok {
			return end
		}
		if what, ok := strings.CutPrefix(mark, plan.Fail); ok {
			return what
		}
		if err != nil {
			return "nothing: the guest is gone"
		}
		if request, ok := strings.CutPrefix(mark, plan.Stop); ok {
			stop(request)
			continue
		}
		if _, err := io.WriteString(to, line); err != nil {
			return err.Error()
		}
	}
}

// event is a line of test2json's output.
type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64
}

func (r *reporter) convert(t *testing.T, as As, events io.Reader) {
	output := map[string]string{}
	var open []string
	decoder := json.NewDecoder(events)
	for {
		var e event
		if err := decoder.Decode(&e); err != nil {
			break
		}
		switch e.Action {
		case "run":
			open = append(open, e.Test)
		case "output":
			output[e.Test] += e.Output
		case "pass", "fail", "skip":
			open = slices.DeleteFunc(open, func(s string) bool { return s == e.Test })
			if e.Test == "" {
				if e.Action == "fail" {
					t.Errorf("failed:\n%s", output[""])
				}
				continue
			}
			r.tests++
			t.Run(e.Test, func(t *testing.T) { r.result(t, as, e, output[e.Test]) })
			delete(output, e.Test)
		}
	}
	for _, name := range open {
		t.Errorf("%s did not end:\n%s", name, output[name])
	}
}

func (r *reporter) result(t *testing.T, as As, e event, output string) {
	t.Logf("%.2f s in the guest, over %.1f s after its start\n%s", e.Elapsed, time.Since(r.began).Seconds(), output)
	switch skips := r.config.Skips(as, e.Test); {
	case e.Action == "fail":
		t.Fail()
	case e.Action == "skip" && !skips:
		t.Error("skipped in the guest, which has all it needs")
	case e.Action == "pass" && skips:
		t.Error("not skipped in the guest, which lacks what it needs")
	}
}
