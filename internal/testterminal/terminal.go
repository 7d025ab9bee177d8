// Package testterminal is a terminal for tests: a pseudo terminal, and the screen that a program draws on it.
package testterminal

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal is a terminal with a screen, and a keyboard that a test types on.
type Terminal struct {
	// File is the side of the program.
	File *os.File

	t      testing.TB
	master *os.File
	mu     sync.Mutex
	screen screen
	news   chan struct{} // closed, and replaced, when something was written
	slow   sync.Mutex    // locked while nothing is read
}

// Open returns a terminal of a size. It is closed when the test ends, which fails if something was written to it that
// Terminal does not know.
func Open(t testing.TB, columns, rows int) *Terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs pseudo terminals: %v", err)
	}
	x := &Terminal{t: t, master: master, screen: newScreen(columns, rows), news: make(chan struct{})}
	var number uint32
	x.control(func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		}
		return err
	})
	if x.File, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	x.setSize(columns, rows)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.read()
	}()
	t.Cleanup(func() {
		_ = x.File.Close()
		_ = x.master.Close()
		<-ended
		if len(x.screen.strange) > 0 {
			t.Errorf("written to the terminal: %q", x.screen.strange)
		}
	})
	return x
}

// control does something with the descriptor of the other side.
func (x *Terminal) control(do func(fd int) error) {
	x.t.Helper()
	c, err := x.master.SyscallConn()
	if err != nil {
		x.t.Fatal(err)
	}
	var failed error
	if err := c.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil || failed != nil {
		x.t.Fatal(err, failed)
	}
}

func (x *Terminal) setSize(columns, rows int) {
	x.t.Helper()
	x.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)})
	})
}

// read shows what is written.
func (x *Terminal) read() {
	p := make([]byte, 4096)
	for {
		n, err := x.master.Read(p)
		x.slow.Lock()
		x.mu.Lock()
		x.screen.write(p[:n])
		close(x.news)
		x.news = make(chan struct{})
		x.mu.Unlock()
		x.slow.Unlock()
		if err != nil {
			return
		}
	}
}

// Stop makes the terminal take no more output, until the returned function is called.
func (x *Terminal) Stop() (goOn func()) {
	x.slow.Lock()
	return x.slow.Unlock
}

// Start starts a program in a session of its own, on this terminal.
func (x *Terminal) Start(cmd *exec.Cmd) {
	x.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.File, x.File, x.File
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
}

// Type types a text: "\r" is the key Enter.
func (x *Terminal) Type(text string) {
	x.t.Helper()
	if _, err := x.master.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// Resize changes the size of the screen.
func (x *Terminal) Resize(columns, rows int) {
	x.t.Helper()
	x.mu.Lock()
	x.screen.resize(columns, rows)
	x.mu.Unlock()
	x.setSize(columns, rows)
}

// Settings returns the settings of the terminal: see termios(3).
func (x *Terminal) Settings() unix.Termios {
	x.t.Helper()
	var settings unix.Termios
	x.control(func(fd int) error {
		s, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			settings = *s
		}
		return err
	})
	return settings
}

// Screen returns what the screen shows, without spaces at the ends of lines.
func (x *Terminal) Screen() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.screen.text()
}

// Untouched reports whether the terminal is as programs expect it: its first screen, a cursor, long lines go on in
// the next.
func (x *Terminal) Untouched() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.screen.alternate && x.screen.modes["?25"] && x.screen.modes["?7"] && !x.screen.modes["?2004"]
}

// Await waits until the screen matches a pattern, in which (?s) is set, and returns the screen.
func (x *Terminal) Await(pattern string) string {
	x.t.Helper()
	wanted := regexp.MustCompile("(?s)" + pattern)
	return x.Until(fmt.Sprintf("shows %q", pattern), func(screen string) bool { return wanted.MatchString(screen) })
}

// Until waits until a screen is as it should be, and returns it. what says so.
func (x *Terminal) Until(what string, done func(screen string) bool) string {
	x.t.Helper()
	const patience = time.Minute
	late := time.After(patience)
	for {
		x.mu.Lock()
		screen, news := x.screen.text(), x.news
		x.mu.Unlock()
		if done(screen) {
			return screen
		}
		select {
		case <-news:
		case <-late:
			x.t.Fatalf("the terminal never %s, but\n%s", what, screen)
		}
	}
}

// Cells returns the screen by lines, with the style of each cell as the parameters of SGR (ECMA-48, 8.3.117).
func (x *Terminal) Cells() [][]Cell {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all [][]Cell
	for _, line := range x.screen.lines {
		all = append(all, append([]Cell(nil), line...))
	}
	return all
}

// Line returns the first line of the screen that contains a text, and its number; number -1 if there is none.
func (x *Terminal) Line(text string) (line string, number int) {
	for i, line := range strings.Split(x.Screen(), "\n") {
		if strings.Contains(line, text) {
			return line, i
		}
	}
	return "", -1
}
