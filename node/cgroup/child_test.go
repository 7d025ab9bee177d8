package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	ossignal "os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The test binary is also the program inside the groups: the environment says what it does then.
const (
	childWork = "BELLOWS_TEST_CHILD"
	childJoin = "BELLOWS_TEST_JOIN"
)

func TestMain(m *testing.M) {
	if work := os.Getenv(childWork); work != "" {
		if err := beChild(strings.Fields(work)); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sink keeps the compiler from dropping work.
var sink int

// beChild joins the group, does its work, reports that, and stays until its standard input ends.
func beChild(work []string) error {
	for _, file := range strings.Fields(os.Getenv(childJoin)) {
		if err := writeFile(file, "0"); err != nil {
			return err
		}
	}
	n := 0
	if len(work) > 1 {
		n, _ = strconv.Atoi(work[1])
	}
	switch work[0] {
	case "idle":
	case "execute": // itself, while its other threads run
		for range 4 {
			go func() {
				for {
					sink++
				}
			}()
		}
		return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	case "hold": // n bytes of anonymous memory
		if err := hold(n); err != nil {
			return err
		}
	case "share": // n bytes that processes could share
		block, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		for i := 0; i < n; i += 4096 {
			block[i] = 1
		}
	case "spin":
		fmt.Println("ready")
		for spins := 0; ; spins++ {
			sink = spins
		}
	case "threads":
		for range n {
			go func() {
				runtime.LockOSThread()
				select {}
			}()
		}
	case "relay": // n threads, of which one runs at a time and wakes the next before it sleeps
		if err := relay(n); err != nil {
			return err
		}
	case "family": // n more processes
		for range n {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = []string{childWork + "=idle"}
			in, err := cmd.StdinPipe()
			if err != nil {
				return err
			}
			defer in.Close()
			if err := cmd.Start(); err != nil {
				return err
			}
		}
	case "write": // n bytes past the page cache to a file or device
		if err := writeDirect(work[2], n); err != nil {
			return err
		}
	case "dirty": // n bytes to the page cache of a file or device
		if err := os.WriteFile(work[2], make([]byte, n), 0o600); err != nil {
			return err
		}
	case "dirty-at": // n bytes to the page cache of a file or device, at an offset
		if err := dirtyAt(work[3], work[2], n); err != nil {
			return err
		}
	case "children": // in each step something about children that make n bytes of a file or device dirty
		return children(work[2], n)
	case "adopt": // one more process in group "one" of the root at a place
		if err := adopt(work[1]); err != nil {
			return err
		}
	case "bounds": // print its own bounds
		return printBounds()
	case "below": // n bytes in a group that it makes below its own
		if err := moveBelow(); err != nil {
			return err
		}
		if err := hold(n); err != nil {
			return err
		}
	case "root": // try to get a subtree, in a place where that must fail
		host, err := Discover("")
		if err != nil {
			return err
		}
		_, err = host.Root("test", Memory)
		fmt.Println(err)
		return nil
	default:
		return fmt.Errorf("no such work: %q", work)
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// handed is the byte of relay.
var handed byte

// relay lets n threads hand a byte around for ever. It returns when each has had it.
func relay(n int) error {
	runtime.GOMAXPROCS(n + 1) // The runtime takes no part: while it finds a processor for a thread, all would sleep.
	ends, began := make([][2]int, n), make(chan bool)
	for i := range ends {
		if err := unix.Pipe(ends[i][:]); err != nil {
			return err
		}
	}
	for i := range ends {
		go func() {
			runtime.LockOSThread()
			move := func(number, end int) {
				_, _, _ = unix.RawSyscall(uintptr(number), uintptr(end), uintptr(unsafe.Pointer(&handed)), 1)
			}
			for at := 0; ; at++ {
				if i > 0 || at > 0 {
					move(unix.SYS_READ, ends[i][0])
				}
				if i == 0 && at == 1 {
					began <- true
				}
				move(unix.SYS_WRITE, ends[(i+1)%n][1])
			}
		}()
	}
	<-began
	return nil
}

func dirtyAt(path, offset string, n int) error {
	at, err := strconv.ParseInt(offset, 10, 64)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, n), at)
	return errors.Join(err, f.Close())
}

// children reports each step, and takes the next one after a line of its standard input.
func children(path string, n int) error {
	at := 0
	begin := func() (*exec.Cmd, io.Closer, error) {
		c := exec.Command("/proc/self/exe")
		c.Env = []string{fmt.Sprint(childWork, "=dirty-at ", n, " ", at*n, " ", path)}
		at++
		in, _ := c.StdinPipe()
		out, _ := c.StdoutPipe()
		err := c.Start()
		if err == nil {
			_, err = bufio.NewReader(out).ReadString('\n')
		}
		return c, in, err
	}
	step := func() {
		fmt.Println("ready")
		_, _ = fmt.Scanln()
	}
	for range 2 {
		c, in, err := begin()
		if err != nil {
			return err
		}
		in.Close()
		if err := c.Wait(); err != nil {
			return err
		}
	}
	step() // two have ended
	c, in, err := begin()
	if err != nil {
		return err
	}
	step() // one lives
	in.Close()
	if err := unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		return err
	}
	step() // no parent has waited for it
	if err := c.Wait(); err != nil {
		return err
	}
	step()
	ossignal.Ignore(syscall.SIGCHLD)
	if c, in, err = begin(); err != nil {
		return err
	}
	step() // no parent will wait for one
	in.Close()
	_ = c.Wait() // There is nothing to wait for.
	step()
	if err := dirtyAt(path, strconv.Itoa(at*n), n); err != nil {
		return err
	}
	_ = os.Truncate(path, 0) // A device cannot be cut.
	step()
	return nil
}

// adopt opens a root that another process made, starts a process there and counts the processes.
func adopt(place string) error {
	host, err := Discover("")
	if err != nil {
		return err
	}
	root, err := host.OpenRoot(place, Memory)
	if err != nil {
		return err
	}
	for range 2 { // the second time it changes nothing
		if err := root.Join(); err != nil {
			return err
		}
	}
	g, err := root.Open("one")
	if err != nil {
		return err
	}
	dir, err := openDir(g)
	if err != nil {
		return err
	}
	defer dir.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{childWork + "=idle"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	pids, err := g.Procs()
	own, _ := os.ReadFile("/proc/self/cgroup")
	fmt.Println(len(pids), strings.TrimSpace(string(own)))
	return err
}

// openDir opens the group's directory for syscall.SysProcAttr.CgroupFD. The error is ErrUnsupported if any controller
// is version 1.
func openDir(g *Group) (*os.File, error) {
	if len(g.each()) != 1 || g.unified == "" {
		return nil, ErrUnsupported
	}
	return os.OpenFile(g.home(g.unified), unix.O_DIRECTORY|unix.O_RDONLY, 0)
}

// hold touches n bytes outside the Go heap, so that the garbage collector neither moves nor doubles them. Their
// contents do not compress to nothing.
func hold(n int) error {
	memory, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	for i := 0; i < n; i += os.Getpagesize() {
		*(*uint64)(unsafe.Pointer(&memory[i])) = uint64(i) * 0x9e3779b97f4a7c15
	}
	return nil
}

func writeDirect(path string, n int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_DIRECT, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	const block = 256 << 10
	buffer, err := unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	for written := 0; written < n; written += block {
		if _, err := f.Write(buffer); err != nil {
			return err
		}
	}
	return nil
}

// child is a process in a group.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts the test binary inside g: by descriptor where the kernel can, by joining first where it cannot.
func start(t *testing.T, g *Group, work string) *child {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{childWork + "=" + work, "GOMAXPROCS=2"}
	cmd.Stderr = io.Discard
	if dir, err := openDir(g); err == nil {
		defer dir.Close()
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	} else {
		cmd.Env = append(cmd.Env, childJoin+"="+strings.Join(g.JoinFiles(), " "))
	}
	return launch(t, cmd)
}

func launch(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start a process in the group: %v", err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		// In a group with a tight CPU quota it dies only when the group is removed, which comes later.
		go func() { _ = cmd.Wait() }()
	})
	return &child{cmd, in, bufio.NewReader(out)}
}

// line returns the next line of output; ok is false if the process ended instead.
func (c *child) line(t *testing.T) (line string, ok bool) {
	t.Helper()
	line, err := c.out.ReadString('\n')
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "error:") {
		t.Fatalf("in the group: %s", line)
	}
	return line, err == nil
}

// ready waits until the work is done.
func (c *child) ready(t *testing.T) *child {
	t.Helper()
	if line, ok := c.line(t); !ok || line != "ready" {
		t.Fatalf("process in the group said %q and ended: %v", line, c.cmd.Wait())
	}
	return c
}

// next lets the process take its next step, and waits for it.
func (c *child) next(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		t.Fatal(err)
	}
	c.ready(t)
}

// killed waits for the end and fails the test unless a SIGKILL caused it.
func (c *child) killed(t *testing.T) {
	t.Helper()
	_ = c.cmd.Wait()
	if status := c.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("process ended with %v, want it killed", c.cmd.ProcessState)
	}
}
