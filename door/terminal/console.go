package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Console is a terminal that one program has for itself until Close: a screen of lines, and the keys as they are
// pressed. The terminal keeps what it showed before, and shows it again afterwards.
type Console struct {
	in, out *os.File
	before  unix.Termios
	keys    chan Key
	resized chan os.Signal
	frames  chan frame    // one at most: the newest that has not been painted
	stops   chan struct{} // has an element if the terminal is to be given back for a while
	closing chan struct{} // closed by Close
	painted chan struct{} // closed when nothing more is written
	once    sync.Once
}

// frame is what the screen is to show.
type frame struct {
	lines  []string
	afresh bool // whatever the screen shows, as after a change of its size
}

// What a console writes at its begin and its end: another screen, on which long lines are cut, pasted text is marked,
// and no cursor shows; and all of that back. (XTerm Control Sequences.)
const (
	enter = "\033[?1049h\033[?7l\033[?2004h\033[?25l\033[2J"
	leave = "\033[0m\033[?25h\033[?2004l\033[?7h\033[?1049l"
)

// OpenConsole takes a terminal over. A program does so once: what reads the keys of a console is there until the next
// key.
func OpenConsole(in, out *os.File) (*Console, error) {
	c := &Console{in: in, out: out, keys: make(chan Key), resized: make(chan os.Signal, 1), frames: make(chan frame, 1),
		stops: make(chan struct{}, 1), closing: make(chan struct{}), painted: make(chan struct{})}
	before, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the terminal: %w", err)
	}
	c.before = *before
	if err := unix.IoctlSetTermios(int(in.Fd()), unix.TCSETS, uncooked(c.before)); err != nil {
		return nil, fmt.Errorf("change the settings of the terminal: %w", err)
	}
	signal.Notify(c.resized, unix.SIGWINCH)
	go c.read()
	go c.paint()
	return c, nil
}

// uncooked returns settings with which every key arrives at once, and nothing but the program writes to the screen:
// see termios(3).
func uncooked(t unix.Termios) *unix.Termios {
	t.Iflag &^= unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return &t
}

// Close gives the terminal back. It waits for it only for a while: a terminal may be slow, or gone.
func (c *Console) Close() error {
	c.once.Do(func() {
		signal.Stop(c.resized)
		close(c.closing)
	})
	const patience = time.Second
	var slow error
	select {
	case <-c.painted:
	case <-time.After(patience):
		slow = errors.New("the terminal takes no output: its screen may look odd, which `reset` repairs")
	}
	return errors.Join(slow, unix.IoctlSetTermios(int(c.in.Fd()), unix.TCSETS, &c.before))
}

// Keys returns the keys; the channel is closed when the terminal is gone.
func (c *Console) Keys() <-chan Key { return c.keys }

// Resized returns a channel with an element when the size has changed since the last.
func (c *Console) Resized() <-chan os.Signal { return c.resized }

// Size returns the size of the screen: 80 columns and 24 lines if that is unknown.
func (c *Console) Size() (columns, lines int) {
	size, err := unix.IoctlGetWinsize(int(c.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return Width, 24
	}
	return int(size.Col), int(size.Row)
}

// Show shows lines, at most as wide as the screen and as many as it has. It does not wait: lines that a slow terminal
// has not shown when newer ones come are never shown. afresh says that the screen may show something else than the
// lines before. One goroutine calls Show.
func (c *Console) Show(lines []string, afresh bool) {
	select {
	case old := <-c.frames:
		afresh = afresh || old.afresh
	default:
	}
	c.frames <- frame{lines, afresh} // There is room: no other goroutine adds a frame.
}

// Suspend gives the terminal back until the user lets the program go on, as programs do at Ctrl-Z. It does not wait
// for that.
func (c *Console) Suspend() {
	select {
	case c.stops <- struct{}{}:
	default: // It is about to.
	}
}

// suspend stops this program, with those that a shell has started together with it, as a terminal does that is not
// taken over. If there is no shell that could let them go on, the kernel does not stop them.
func (c *Console) suspend() {
	const stopped = 100 * time.Millisecond // by then
	_, _ = io.WriteString(c.out, leave)
	_ = unix.IoctlSetTermios(int(c.in.Fd()), unix.TCSETS, &c.before)
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, unix.SIGCONT)
	defer signal.Stop(goesOn)
	_ = unix.Kill(0, unix.SIGTSTP)
	select {
	case <-goesOn:
	case <-time.After(stopped):
	}
	_ = unix.IoctlSetTermios(int(c.in.Fd()), unix.TCSETS, uncooked(c.before))
}

// paint writes what is to be shown, until Close.
func (c *Console) paint() {
	defer close(c.painted)
	defer func() { _, _ = io.WriteString(c.out, leave) }()
	_, _ = io.WriteString(c.out, enter)
	var shown []string
	for {
		select {
		case f := <-c.frames:
			if f.afresh {
				shown = nil
			}
			if _, err := io.WriteString(c.out, painted(shown, f.lines)); err != nil {
				return // The terminal is gone: its keys end, too.
			}
			shown = f.lines
		case <-c.stops:
			c.suspend()
			_, _ = io.WriteString(c.out, enter+painted(nil, shown))
		case <-c.closing:
			return
		}
	}
}

// painted returns what changes a screen that shows some lines, nil if that is unknown, into one that shows others.
func painted(shown, lines []string) string {
	var b strings.Builder
	if shown == nil {
		b.WriteString("\033[0m\033[2J")
	}
	for i := range max(len(shown), len(lines)) {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		if i < len(shown) && shown[i] == line || shown == nil && line == "" {
			continue
		}
		fmt.Fprintf(&b, "\033[%d;1H\033[2K%s\033[0m", i+1, line)
	}
	return b.String()
}

// read reads keys until Close, or until the terminal is gone.
func (c *Console) read() {
	defer close(c.keys)
	var d decoder
	p := make([]byte, 256)
	for {
		n, err := c.in.Read(p)
		if err != nil {
			return
		}
		keys := d.keys(p[:n], false)
		if len(d.rest) > 0 && !c.sends() {
			keys = append(keys, d.keys(nil, true)...)
		}
		for _, k := range keys {
			select {
			case c.keys <- k:
			case <-c.closing:
				return
			}
		}
	}
}

// sends reports whether more arrives soon: the rest of a key that arrives in parts.
func (c *Console) sends() bool {
	const soon = 50 // ms
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.in.Fd()), Events: unix.POLLIN}}, soon)
		if err != unix.EINTR {
			return err == nil && n > 0
		}
	}
}
