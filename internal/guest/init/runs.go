package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/bellows-rm/bellows/internal/guest/internal/plan"
	"golang.org/x/sys/unix"
)

// port opens the serial port that the host reads so that bytes go through unchanged.
func port() (*os.File, error) {
	f, err := os.OpenFile(plan.Port, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	settings, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		settings.Oflag &^= unix.OPOST
		settings.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, settings)
	}
	return f, err
}

// tell sends one marked line.
func tell(line string) {
	f, err := port()
	if err != nil {
		fmt.Fprintln(os.Stderr, line, err)
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "\n%s\n", strings.ReplaceAll(line, "\n", " "))
	_ = unix.IoctlSetInt(int(f.Fd()), unix.TCSBRK, 1) // wait until all bytes are sent
}

func doRuns() error {
	p, err := readPlan()
	if err != nil {
		return err
	}
	if p.Scratch != "" {
		if err := os.Chmod(p.Scratch, 0o666); err != nil {
			return err
		}
	}
	for _, run := range p.Runs {
		tell(plan.Begin + run.Name)
		code, err := doRun(p, run)
		if err != nil {
			return fmt.Errorf("run %s: %w", run.Name, err)
		}
		tell(fmt.Sprint(plan.End, code))
	}
	return nil
}

// doRun starts the program once and returns its exit code.
func doRun(p plan.Plan, run plan.Run) (code int, err error) {
	command := slices.Concat([]string{p.Program}, p.Args, run.Args)
	if run.Scope {
		scope := []string{"/usr/bin/systemd-run", "--quiet", "--scope", "-p", "Delegate=yes"}
		if run.UID != 0 {
			scope = append(scope, "--user")
		}
		command = append(append(scope, "--"), command...)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append([]string{
		"PATH=/usr/bin:/usr/sbin", "HOME=/tmp", "TMPDIR=/tmp",
		fmt.Sprint("XDG_RUNTIME_DIR=/run/user/", run.UID),
		"BELLOWS_SCRATCH_DEVICE=" + p.Scratch,
	}, p.Env...)
	cmd.Dir = "/tmp"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: run.UID, Gid: run.GID}}
	out, err := port()
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}
