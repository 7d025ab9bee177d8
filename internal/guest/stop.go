package guest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/guest/internal/plan"
)

// Stop is a way in which a host stops a whole guest.
type Stop string

const (
	// Paused stops the processors of the guest, as a hypervisor does that takes a snapshot or moves the guest to another
	// host. The clocks of the guest stand meanwhile, the calendar too.
	Paused Stop = "paused"
	// Asleep stops the hypervisor itself, as a host that sleeps does. The clocks of the guest go on: for its programs
	// they jump.
	Asleep Stop = "asleep"
)

// Need skips a test that does not run in a guest.
func Need(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(plan.File); err != nil {
		t.Skip("needs a guest: run TestGuest of this package")
	}
}

// StopMachine has the host stop the guest in which the test runs, for a time by the clock of the host, and returns
// when the guest goes on.
func StopMachine(t *testing.T, how Stop, lasts time.Duration) {
	t.Helper()
	port, err := os.OpenFile(plan.Port, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	if _, err := fmt.Fprintf(port, "\n%s%s %v\n", plan.Stop, how, lasts); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(port).ReadString('\n')
	if answer = strings.TrimRight(answer, "\r\n"); err != nil || answer != plan.GoesOn {
		t.Fatalf("the host answers %q: %v", answer, err)
	}
}

// SetAhead sets the calendar of the guest ahead, or back if by is negative.
func SetAhead(t *testing.T, by time.Duration) {
	t.Helper()
	Need(t) // no other machine
	to := syscall.NsecToTimeval(time.Now().Add(by).UnixNano())
	if err := syscall.Settimeofday(&to); err != nil {
		t.Fatal(err)
	}
}

// stop stops the guest as its request says, and answers when it goes on.
func (m *machine) stop(request string) {
	answer := plan.GoesOn
	if err := m.stopFor(request); err != nil {
		answer = plan.Fail + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	_, _ = fmt.Fprintln(m.in, answer) // if the guest is gone, its run ends
}

func (m *machine) stopFor(request string) error {
	how, text, _ := strings.Cut(request, " ")
	lasts, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	var stop, goOn func() error
	switch Stop(how) {
	case Paused:
		stop, goOn = func() error { return m.command("stop") }, func() error { return m.command("cont") }
	case Asleep:
		stop, goOn = func() error {
			return m.qemu.Process.Signal(syscall.SIGSTOP)
		}, func() error { return m.qemu.Process.Signal(syscall.SIGCONT) }
	default:
		return fmt.Errorf("stop %q: must be %s or %s", how, Paused, Asleep)
	}
	if err := stop(); err != nil {
		return err
	}
	time.Sleep(lasts)
	return goOn()
}

// monitor is the socket on which QEMU takes commands, by its machine protocol: JSON values, one answer to each command.
func (m *machine) monitor() string { return filepath.Join(m.dir, "monitor") }

// command carries out a command of QEMU's monitor.
func (m *machine) command(name string) error {
	conn, err := net.Dial("unix", m.monitor())
	if err != nil {
		return err
	}
	defer conn.Close()
	answers := json.NewDecoder(conn)
	for _, command := range []string{"qmp_capabilities", name} { // the first one begins each conversation
		if err := json.NewEncoder(conn).Encode(map[string]string{"execute": command}); err != nil {
			return err
		}
		if err := await(answers); err != nil {
			return fmt.Errorf("QEMU's monitor, %s: %w", command, err)
		}
	}
	return nil
}

// await reads up to the answer to a command. Greetings and events come in between.
func await(answers *json.Decoder) error {
	for {
		var a struct {
			Return json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := answers.Decode(&a); err != nil {
			return err
		}
		switch {
		case a.Error != nil:
			return errors.New(a.Error.Desc)
		case a.Return != nil:
			return nil
		}
	}
}
