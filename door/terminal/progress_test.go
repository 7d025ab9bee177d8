package terminal

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		shown := func() string {
			lines := strings.Split(out.String(), "\r\033[K")
			out.Reset()
			return lines[len(lines)-1]
		}
		expect := func(want string) {
			t.Helper()
			if got := shown(); got != want {
				t.Errorf("the line is %q, want %q", got, want)
			}
		}
		p := &Progress{lines: &out, to: &out, title: "jobs ended", begun: time.Now()}
		p.Set("fair", 0, 4)
		expect("") // the work may be over soon
		time.Sleep(Patience)
		p.Set("fair", 1, 4)
		expect("jobs ended: fair 1/4, about 6s left")
		p.Set("fair", 2, 4)
		expect("") // the line was written just now
		time.Sleep(Patience)
		p.Set("drf", 300, 400) // 300 of them were done before
		expect("jobs ended: fair 2/4, drf 300/400, about 4s left")
		time.Sleep(Patience)
		p.Set("drf", 310, 400)
		expect("jobs ended: fair 2/4, drf 310/400, about 18s left")
		p.Set("fair", 4, 4)
		time.Sleep(Pace)
		p.Set("drf", 400, 400)
		expect("jobs ended: drf 400/400")
		time.Sleep(Pace)
		p.Show(strings.Repeat("read ", Width))
		if got := shown(); len([]rune(got)) != Width-1 || !strings.HasPrefix(got, "jobs ended: read read") {
			t.Errorf("the line is %q", got)
		}
		p.Clear()
		p.Clear()
		if out.String() != "\r\033[K" {
			t.Errorf("%q takes the line away", out.String())
		}
		time.Sleep(Pace)
		p.Show("on")
		p.Say("a line")
		if !strings.HasSuffix(out.String(), "jobs ended: on\r\033[Ka line\n") {
			t.Errorf("a line that stays: %q", out.String())
		}
	})
}

func TestProgressWithoutTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		for _, p := range []*Progress{nil, NewProgress(&out, "runs")} {
			time.Sleep(Patience)
			p.Set("", 1, 2)
			p.Show("more")
			p.Say("a line")
			p.Clear()
		}
		if out.String() != "a line\n" {
			t.Errorf("%q is written to what is no terminal", out.String())
		}
	})
}
