package terminal

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// Screen shows texts on a terminal, each in place of the text before. What is written to it is shown by Show.
type Screen struct {
	to   io.Writer
	text strings.Builder
}

// NewScreen returns a screen on a terminal.
func NewScreen(to io.Writer) *Screen { return &Screen{to: to} }

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) { return s.text.Write(p) }

// Fd returns the descriptor of the terminal, so that tables become as wide as it is.
func (s *Screen) Fd() uintptr {
	if f, ok := s.to.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Show shows what was written since the last Show, as many lines of it as fit.
func (s *Screen) Show() error {
	lines := strings.Split(strings.TrimSuffix(s.text.String(), "\n"), "\n")
	s.text.Reset()
	most := 24
	if size, err := unix.IoctlGetWinsize(int(s.Fd()), unix.TIOCGWINSZ); err == nil && size.Row > 0 {
		most = int(size.Row)
	}
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most-1], fmt.Sprintf("%d more lines", more+1))
	}
	// From the upper left corner, each line without the rest of the line that was there, then nothing below.
	_, err := io.WriteString(s.to, "\033[H"+strings.Join(lines, "\033[K\n")+"\033[K\033[J")
	return err
}
