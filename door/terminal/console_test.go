package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/testterminal"
)

func openConsole(t *testing.T, x *testterminal.Terminal) *Console {
	t.Helper()
	c, err := OpenConsole(x.File, x.File)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A console shows lines and hears keys, and leaves the terminal as it was.
func TestConsole(t *testing.T) {
	x := testterminal.Open(t, 20, 4)
	before := x.Settings()
	if _, err := x.File.WriteString("before\r\n"); err != nil {
		t.Fatal(err)
	}
	x.Await("before")
	c := openConsole(t, x)
	if columns, lines := c.Size(); columns != 20 || lines != 4 {
		t.Errorf("the size is %d × %d", columns, lines)
	}
	c.Show([]string{"one", "two", strings.Repeat("long", 10), "last"}, true)
	x.Await("^one\ntwo\nlonglonglonglonglong\nlast\n$")
	c.Show([]string{"one", "2", "", "\033[7mlast\033[0m"}, false)
	x.Await("^one\n2\n\nlast\n$")
	if cell := x.Cells()[3][0]; cell.Style != "7" || x.Untouched() || x.Settings() == before {
		t.Errorf("cell %+v, settings %+v", cell, x.Settings())
	}
	x.Type("k\x1b[A\x03\x1b")
	for _, want := range []Key{'k', KeyUp, KeyInterrupt, KeyEscape} {
		if k := <-c.Keys(); k != want {
			t.Errorf("key %d, want %d", k, want)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	x.Await("^before\n\n\n\n$")
	if !x.Untouched() || x.Settings() != before {
		t.Errorf("settings are %+v, and were %+v", x.Settings(), before)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A terminal that takes no output holds up neither Show nor, for more than a while, Close.
func TestSlowTerminal(t *testing.T) {
	x := testterminal.Open(t, 80, 24)
	before := x.Settings()
	c := openConsole(t, x)
	c.Show([]string{"shown"}, true)
	x.Await("shown")
	goOn := x.Stop()
	large := []string{strings.Repeat("much", 100_000)}
	c.Show(large, true)
	for len(c.frames) > 0 { // until it is being painted
		time.Sleep(time.Millisecond)
	}
	begun := time.Now()
	for range 1000 {
		c.Show(large, true)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("1000 frames took %v", took)
	}
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "the terminal takes no output") {
		t.Errorf("closed: %v", err)
	}
	if x.Settings() != before {
		t.Errorf("settings are %+v, and were %+v", x.Settings(), before)
	}
	goOn()
	x.Until("is as before", func(string) bool { return x.Untouched() })
}

// Only what has changed is written.
func TestPainted(t *testing.T) {
	for _, tt := range []struct {
		shown, lines []string
		want         string
	}{
		{nil, []string{"a", "", "c"}, "\033[0m\033[2J\033[1;1H\033[2Ka\033[0m\033[3;1H\033[2Kc\033[0m"},
		{[]string{"a", "b"}, []string{"a", "b"}, ""},
		{[]string{"a", "b", "c"}, []string{"a", "x"}, "\033[2;1H\033[2Kx\033[0m\033[3;1H\033[2K\033[0m"},
		{[]string{"a"}, []string{"a", "b"}, "\033[2;1H\033[2Kb\033[0m"},
	} {
		if got := painted(tt.shown, tt.lines); got != tt.want {
			t.Errorf("%q after %q is written as %q", tt.lines, tt.shown, got)
		}
	}
}
