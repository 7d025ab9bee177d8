package netcount

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// The tests named TestKernel run against the kernel of the machine. The test binary is also the program that is
// counted: with the environment variable NETCOUNT_JOIN it joins the group with that name, and then does what its
// arguments say.
func TestMain(m *testing.M) {
	dir := os.Getenv("NETCOUNT_JOIN")
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := counted(dir, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func counted(dir string, args []string) error {
	if args[0] == "attach" { // as a daemon that will be killed
		if _, err := Attach(dir); err != nil {
			return err
		}
		fmt.Println("attached")
		time.Sleep(time.Hour)
	}
	if args[0] == "refuse" {
		if err := unix.Setuid(65534); err != nil {
			return err
		}
		_, err := Attach(dir)
		fmt.Println(err)
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
		return err
	}
	return exchange(args[0], args[1])
}

// What exchange sends and receives: with TCP a stream each way, with UDP datagrams one after the other.
const (
	streamSent, streamReceived     = 3 << 20, 1 << 20
	datagrams                      = 50
	datagramSent, datagramReceived = 1000, 500
)

// exchange talks with serve.
func exchange(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if network == "tcp" {
		if _, err := c.Write(make([]byte, streamSent)); err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, c)
		if err == nil && n != streamReceived {
			err = fmt.Errorf("received %d bytes", n)
		}
		return err
	}
	for range datagrams {
		if _, err := c.Write(make([]byte, datagramSent)); err != nil {
			return err
		}
		if _, err := c.Read(make([]byte, 2*datagramReceived)); err != nil {
			return err
		}
	}
	return nil
}

// serve answers one exchange at a time, in the network namespace of the calling thread, and returns the address.
func serve(t *testing.T, network, host string) string {
	t.Helper()
	if network == "udp" {
		c, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		go func() {
			in := make([]byte, 2*datagramSent)
			for {
				_, from, err := c.ReadFrom(in)
				if err != nil {
					return
				}
				_, _ = c.WriteTo(make([]byte, datagramReceived), from)
			}
		}()
		return c.LocalAddr().String()
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.CopyN(io.Discard, c, streamSent)
			_, _ = c.Write(make([]byte, streamReceived))
			c.Close()
		}
	}()
	return l.Addr().String()
}

var groups atomic.Int64

// testGroup makes a version 2 group, in a mount of the test's own if the machine has none, or skips.
func testGroup(t *testing.T) string {
	t.Helper()
	mount := ""
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
			mount = dir
		}
	}
	if mount == "" {
		mount = t.TempDir()
		if err := unix.Mount("cgroup2", mount, "cgroup2", 0, ""); err != nil {
			t.Skipf("needs version 2 groups: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(mount, 0); err != nil {
				t.Errorf("clean up: %v", err)
			}
		})
	}
	dir := filepath.Join(mount, fmt.Sprintf("bellows-netcount-test-%d-%d", os.Getpid(), groups.Add(1)))
	if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) {
		t.Skipf("needs version 2 groups of its own: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, dir) })
	return dir
}

func removeGroup(t *testing.T, dir string) {
	t.Helper()
	err := os.Remove(dir)
	for range 500 {
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond) // a process that has ended leaves its group a moment later
		err = os.Remove(dir)
	}
	t.Errorf("clean up: %v", err)
}

// attachOrSkip is Attach for a kernel that can count; other devices than except count.
func attachOrSkip(t *testing.T, dir string, except int32) *Counter {
	t.Helper()
	if !privileged() {
		t.Skip("needs CAP_SYS_ADMIN")
	}
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	c, err := attach(int(group.Fd()), except)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func read(t *testing.T, c *Counter) Reading {
	t.Helper()
	r, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// transfer runs a counted program, from the network namespace of the calling thread.
func transfer(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "NETCOUNT_JOIN="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// expect compares what was counted of one exchange with what was sent.
func expect(t *testing.T, network string, ip netip.Addr, got Reading) {
	t.Helper()
	header := int64(20)
	if ip.Is6() {
		header = 40
	}
	if network == "udp" {
		want := Reading{Sent: datagrams * (datagramSent + 8 + header), Received: datagrams * (datagramReceived + 8 + header)}
		if got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
		return
	}
	// The headers of packets of 1,448 bytes are 4 %; those of merged packets less. Each way also carries acknowledgements
	// of the other one. A retransmission counts again.
	bounds := func(what string, got, payload, other int64) {
		t.Helper()
		if most := payload + (payload+other)/20 + 4096; got < payload || got > most {
			t.Errorf("counted %d bytes %s, want %d to %d", got, what, payload, most)
		}
	}
	bounds("sent", got.Sent, streamSent, streamReceived)
	bounds("received", got.Received, streamReceived, streamSent)
	t.Logf("%s to %v: sent %d bytes and received %d, of which data are %d and %d", network, ip, got.Sent, got.Received,
		streamSent, streamReceived)
}

// tryAll exchanges data by each protocol with servers at the given hosts, and compares what was counted. near and far
// run functions in the namespaces of the counted program and of the servers.
func tryAll(t *testing.T, dir string, c *Counter, hosts []string, near, far func(func())) {
	for _, network := range []string{"tcp", "udp"} {
		for _, host := range hosts {
			ip := netip.MustParseAddr(host)
			t.Run(fmt.Sprintf("%s%d", network, ip.BitLen()), func(t *testing.T) {
				address := ""
				far(func() { address = serve(t, network, host) })
				before := read(t, c)
				near(func() { transfer(t, dir, network, address) })
				after := read(t, c)
				expect(t, network, ip, Reading{after.Received - before.Received, after.Sent - before.Sent})
			})
		}
	}
}

// inline runs f in the namespace of the test.
func inline(f func()) { f() }

// TestKernelLoopback: the programs count the bytes on a loopback device exactly if they are told to, and else none.
func TestKernelLoopback(t *testing.T) {
	up(t)
	hosts := []string{"127.0.0.1"}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		l.Close()
		hosts = append(hosts, "::1")
	}
	dir := testGroup(t)
	tryAll(t, dir, attachOrSkip(t, dir, 0), hosts, inline, inline)

	dir = testGroup(t)
	c := attachOrSkip(t, dir, loopback)
	for _, network := range []string{"tcp", "udp"} {
		transfer(t, dir, network, serve(t, network, "127.0.0.1"))
	}
	if got := read(t, c); got != (Reading{}) {
		t.Errorf("counted %+v on the loopback device", got)
	}
}

// up raises the loopback device, which is down in a guest without services.
func up(t *testing.T) {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	r, err := unix.NewIfreq("lo")
	if err == nil {
		err = unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, r)
	}
	if err == nil && r.Uint16()&unix.IFF_UP == 0 {
		r.SetUint16(r.Uint16() | unix.IFF_UP)
		err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
	}
	if err != nil {
		t.Skipf("needs a loopback device: %v", err)
	}
}

// namespace runs functions on a thread in a network namespace of its own.
type namespace struct {
	tid  int
	todo chan func()
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{todo: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		n.tid = unix.Gettid()
		err := unix.Unshare(unix.CLONE_NEWNET)
		ready <- err
		if err != nil {
			return
		}
		for f := range n.todo {
			f()
		}
	}()
	if err := <-ready; err != nil {
		t.Skipf("needs network namespaces: %v", err)
	}
	t.Cleanup(func() { close(n.todo) })
	return n
}

func (n *namespace) do(f func()) {
	done := make(chan struct{})
	n.todo <- func() { defer close(done); f() }
	<-done
}

// ip runs the program ip in the namespace.
func (n *namespace) ip(t *testing.T, args string) {
	t.Helper()
	var out []byte
	var err error
	n.do(func() { out, err = exec.Command("ip", strings.Fields(args)...).CombinedOutput() })
	if err != nil {
		t.Skipf("ip %s: %v: %s", args, err, bytes.TrimSpace(out))
	}
}

// TestKernelVeth: what crosses a link is counted, each way and with the headers of IP.
func TestKernelVeth(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs the program ip")
	}
	dir := testGroup(t)
	c := attachOrSkip(t, dir, loopback)
	near, far := newNamespace(t), newNamespace(t)
	// The index of the counted end must not be that of the loopback device of the other namespace.
	near.ip(t, "link add near type veth peer name far netns "+strconv.Itoa(far.tid))
	for device, end := range map[string]*namespace{"near": near, "far": far} {
		last := map[string]string{"near": "1", "far": "2"}[device]
		end.ip(t, "addr add 192.0.2."+last+"/24 dev "+device)
		end.ip(t, "addr add 2001:db8::"+last+"/64 dev "+device+" nodad")
		end.ip(t, "link set lo up")
		end.ip(t, "link set "+device+" up")
	}
	tryAll(t, dir, c, []string{"192.0.2.2", "2001:db8::2"}, near.do, far.do)
}

// TestKernelKilledDaemon: the programs count on when the process that attached them was killed, and are found again.
func TestKernelKilledDaemon(t *testing.T) {
	up(t)
	dir := testGroup(t)
	attachOrSkip(t, dir, 0).Close()
	daemon := exec.Command("/proc/self/exe", "attach")
	daemon.Env, daemon.Stderr = append(os.Environ(), "NETCOUNT_JOIN="+dir), os.Stderr
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait() // killed
	transfer(t, dir, "udp", serve(t, "udp", "127.0.0.1"))
	c, err := Attach(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !c.Resumed {
		t.Error("the programs were not found")
	}
	expect(t, "udp", netip.MustParseAddr("127.0.0.1"), read(t, c))
	for d := range directions {
		if n := len(attached(t, dir, d)); n != 1 {
			t.Errorf("%d programs are attached to %v", n, d.where())
		}
	}
}

func attached(t *testing.T, dir string, d direction) []link.AttachedProgram {
	t.Helper()
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	r, err := link.QueryPrograms(link.QueryOptions{Target: int(group.Fd()), Attach: d.where()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Programs
}

// TestKernelHalfAttached: a process that was killed while it attached leaves one program, which is replaced.
func TestKernelHalfAttached(t *testing.T) {
	up(t)
	dir := testGroup(t)
	attachOrSkip(t, dir, 0).Close()
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	if err := sent.detach(int(group.Fd())); err != nil {
		t.Fatal(err)
	}
	c := attachOrSkip(t, dir, 0)
	transfer(t, dir, "udp", serve(t, "udp", "127.0.0.1"))
	expect(t, "udp", netip.MustParseAddr("127.0.0.1"), read(t, c))
	if c.Resumed || len(attached(t, dir, received)) != 1 {
		t.Errorf("resumed: %v; %d programs", c.Resumed, len(attached(t, dir, received)))
	}
}

// TestKernelOthers: programs of others on the same group stay, and run.
func TestKernelOthers(t *testing.T) {
	up(t)
	dir := testGroup(t)
	attachOrSkip(t, dir, 0).Close()
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	theirs, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "theirs", Type: ebpf.CGroupSKB, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: int(group.Fd()), Program: theirs,
		Attach: received.where(), Flags: allowMulti}); err != nil {
		t.Fatal(err)
	}
	c := attachOrSkip(t, dir, 0)
	if n := len(attached(t, dir, received)); !c.Resumed || n != 2 {
		t.Errorf("resumed: %v; %d programs, want 2", c.Resumed, n)
	}
	transfer(t, dir, "udp", serve(t, "udp", "127.0.0.1"))
	expect(t, "udp", netip.MustParseAddr("127.0.0.1"), read(t, c))
	if err := errors.Join(Check(dir), Try(dir)); err != nil {
		t.Error(err)
	}
	if n := len(attached(t, dir, received)); n != 1 {
		t.Errorf("after Check and Try, %d programs are attached, want that of others", n)
	}
	// A program of an ancestor that permits no second program.
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, below) })
	alone := testGroup(t)
	top, err := os.Open(alone)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: int(top.Fd()), Program: theirs,
		Attach: received.where()}); err != nil {
		t.Fatal(err)
	}
	if _, err := Attach(alone); !errors.Is(err, errTaken) {
		t.Errorf("attach together with a program that permits no second one: %v", err)
	}
}

// TestKernelNothingStays: with the group, the programs and the counters are gone.
func TestKernelNothingStays(t *testing.T) {
	dir := testGroup(t)
	c := attachOrSkip(t, dir, loopback)
	id := attached(t, dir, sent)[0].ID
	info, err := c.counts.Info()
	if err != nil {
		t.Fatal(err)
	}
	counts, _ := info.ID()
	removeGroup(t, dir)
	if _, err := c.Read(); err != nil {
		t.Errorf("read after the group was removed: %v", err)
	}
	c.Close()
	gone := func(what string, open func() (io.Closer, error)) {
		for range 1000 {
			p, err := open()
			if errors.Is(err, os.ErrNotExist) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			p.Close()
			time.Sleep(10 * time.Millisecond) // the kernel frees them later
		}
		t.Errorf("the %s is still there", what)
	}
	gone("program", func() (io.Closer, error) { return ebpf.NewProgramFromID(id) })
	gone("map", func() (io.Closer, error) { return ebpf.NewMapFromID(counts) })
}

// TestKernelRefuses: without rights, the error says what is missing.
func TestKernelRefuses(t *testing.T) {
	dir := testGroup(t)
	attachOrSkip(t, dir, loopback).Close()
	if got := transfer(t, dir, "refuse"); !strings.Contains(got, "CAP_SYS_ADMIN") {
		t.Errorf("got %q", got)
	}
	if _, err := Attach(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestSound(t *testing.T) {
	for _, c := range []struct {
		cgroups, release string
		ok               bool
	}{
		{"#subsys_name\thierarchy\tnum_cgroups\tenabled\nnet_cls\t0\t1\t1\n", "4.19.0-27-amd64\n", true},
		{"net_cls\t3\t1\t1\n", "4.19.0-27-amd64\n", false},
		{"net_prio\t3\t1\t1\n", "5.14.0-70.el9\n", false},
		{"net_prio\t3\t1\t1\n", "5.15\n", true},
		{"net_prio\t3\t1\t1\n", "6.1.0\n", true},
		{"net_prio\t3\t1\t1\n", "?\n", false},
		{"memory\t3\t1\t1\n", "?\n", true},
	} {
		proc := t.TempDir()
		for name, text := range map[string]string{"cgroups": c.cgroups, "sys/kernel/osrelease": c.release} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := sound(proc); (err == nil) != c.ok {
			t.Errorf("%q on %q: %v", c.cgroups, c.release, err)
		}
	}
}

func BenchmarkAttach(b *testing.B) {
	for b.Loop() {
		dir := filepath.Join("/sys/fs/cgroup/unified", fmt.Sprintf("bellows-netcount-test-%d-%d", os.Getpid(), groups.Add(1)))
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Skip(err)
		}
		c, err := Attach(dir)
		if err == nil {
			_, err = c.Read()
		}
		if err != nil {
			b.Error(err)
		} else {
			c.Close()
		}
		if err := os.Remove(dir); err != nil {
			b.Fatal(err)
		}
	}
}
