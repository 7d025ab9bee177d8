// Command init is the first program of a guest: it mounts what Linux needs, loads modules, makes swap, and then either
// runs the plan itself or hands over to systemd, which starts it again as a service to run the plan. At the end it
// switches the machine off.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/internal/guest/internal/plan"
	"golang.org/x/sys/unix"
)

// runsOnly is how the first program, being process 1, starts itself again to have its runs done, while it reaps
// orphans.
const runsOnly = "runs"

func main() {
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == runsOnly:
		err = doRuns()
	case os.Getpid() == 1:
		err = boot()
	default: // A service of systemd.
		err = doRuns()
		tell(plan.Done)
		_ = os.WriteFile("/proc/sysrq-trigger", []byte("b"), 0)
		off()
	}
	if err != nil {
		tell(plan.Fail + err.Error())
		fmt.Fprintln(os.Stderr, err)
		off()
		os.Exit(1)
	}
}

func boot() error {
	p, err := readPlan()
	if err != nil {
		return err
	}
	for _, m := range p.Mounts {
		if err := mount(m.Kind, m.Kind, m.Dir, m.Options); err != nil {
			return err
		}
	}
	if err := loadModules(); err != nil {
		return err
	}
	if p.Swap != "" {
		if err := makeSwap(p.Swap); err != nil {
			return err
		}
	}
	if p.Zram > 0 {
		if err := makeZram(p.Zram); err != nil {
			return err
		}
	}
	if p.Systemd {
		return handOver(p)
	}
	if err := os.Chmod("/tmp", os.ModeSticky|0o777); err != nil {
		return err
	}
	runner := exec.Command(plan.Init, runsOnly)
	runner.Stdout, runner.Stderr = os.Stdout, os.Stderr
	if err := runner.Start(); err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid == runner.Process.Pid {
			break
		}
	}
	tell(plan.Done)
	off()
	return nil
}

func mount(kind, from, dir, options string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(from, dir, kind, 0, options); err != nil {
		return fmt.Errorf("mount %s on %s: %w", kind, dir, err)
	}
	return nil
}

func readPlan() (plan.Plan, error) {
	var p plan.Plan
	text, err := os.ReadFile(plan.File)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, err
}

// loadModules loads the modules that internal/guest/setup packed, in its order.
func loadModules() error {
	order, err := os.ReadFile(plan.Modules + "/order")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(order)) {
		f, err := os.Open(plan.Modules + "/" + name)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && err != unix.EEXIST {
			return fmt.Errorf("load module %s: %w", name, err)
		}
	}
	return nil
}

// handOver makes the root file system the root directory, puts the plan's files into it, and becomes systemd.
func handOver(p plan.Plan) error {
	const root = "/sysroot"
	if err := mount("ext4", p.Root, root, ""); err != nil {
		return err
	}
	if p.Programs != "" {
		if err := mount("ext4", p.Programs, root+plan.Programs, ""); err != nil {
			return err
		}
	}
	files := root + "/guest"
	if err := mount("tmpfs", "tmpfs", files, ""); err != nil {
		return err
	}
	if err := os.CopyFS(files, os.DirFS("/guest")); err != nil {
		return err
	}
	for _, file := range []string{plan.Init, plan.Program} {
		if err := os.Chmod(root+file, 0o755); err != nil {
			return err
		}
	}
	// The copied files need not stay in memory twice.
	if err := os.RemoveAll("/guest"); err != nil {
		return err
	}
	for _, m := range slices.Backward(p.Mounts) {
		if err := unix.Unmount(m.Dir, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", m.Dir, err)
		}
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move %s to /: %w", root, err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("enter %s: %w", root, err)
	}
	const systemd = "/lib/systemd/systemd"
	return fmt.Errorf("start %s: %w", systemd, unix.Exec(systemd, []string{systemd}, []string{"PATH=/usr/bin:/usr/sbin"}))
}

// off ends the guest: QEMU is configured to end at a restart.
func off() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}
