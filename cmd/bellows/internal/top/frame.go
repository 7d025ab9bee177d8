package top

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/door/terminal"
)

// frame is what every screen has.
type frame struct {
	columns, lines int // of the screen; 0 lines: as many as it takes
	now            time.Time
	mode           mode
	scroll         int // of the help
	message        message
	wanted         []request // what is to be asked of the daemon, until take
	lost           *lost     // nil while there is a connection
}

// base returns the frame of a screen.
func (f *frame) base() *frame { return f }

// mode is what keys mean.
type mode uint8

const (
	browsing mode = iota
	typing        // the text of the filter
	confirming
	helping
)

// message is what the last line says until a time.
type message struct {
	text  string
	style style
	until time.Time
}

// messageTime is how long a message stays.
const messageTime = 8 * time.Second

func (f *frame) say(look style, format string, operands ...any) {
	f.message = message{fmt.Sprintf(format, operands...), look, f.now.Add(messageTime)}
}

// talks reports whether a message is shown.
func (f *frame) talks() bool { return f.message.text != "" && f.now.Before(f.message.until) }

// lost is since when there is no connection, and why.
type lost struct {
	since time.Time
	why   string
}

// lose records a lost connection.
func (f *frame) lose(err error) {
	if f.lost == nil {
		f.lost = &lost{f.now, err.Error()}
	}
}

// reach records a connection, and says so if there was none before.
func (f *frame) reach(also string) {
	if f.lost != nil {
		f.say(good, "connected again after %s%s", f.now.Sub(f.lost.since).Round(time.Second), also)
		f.lost = nil
	}
}

// away says that there is no connection.
func (f *frame) away(name span) line {
	return line{name, {fmt.Sprintf("  no daemon for %s; connecting again: ", terminal.Age(f.now.Sub(f.lost.since))),
		bad}, {f.lost.why, plain}}
}

// ask asks the daemon to do something.
func (f *frame) ask(what action, of subject) { f.wanted = append(f.wanted, request{what, of}) }

// take returns what is to be asked of the daemon now.
func (f *frame) take() []request {
	wanted := f.wanted
	f.wanted = nil
	return wanted
}

// heard says how an order has ended.
func (f *frame) heard(a *answer) {
	if a.err != nil {
		f.say(bad, "%v", a.err)
		return
	}
	f.say(good, "%s: %s", a.subject, deeds[a.what])
}

// inHelp takes in a key while the help is shown.
func (f *frame) inHelp(k terminal.Key, help []string) {
	switch k {
	case 'j', terminal.KeyDown:
		f.scroll++
	case 'k', terminal.KeyUp:
		f.scroll--
	default:
		f.mode = browsing
	}
	f.scroll = max(0, min(f.scroll, len(help)-1))
}

// helpLines returns the help from the line to which it was scrolled.
func (f *frame) helpLines(help []string) (lines []line) {
	for _, text := range help[min(f.scroll, len(help)):] {
		lines = append(lines, words(text, plain))
	}
	return lines
}

// layout returns the lines of the screen, of which body is given as many as head and foot leave.
func (f *frame) layout(head, foot []line, body func(lines int) []line) []line {
	foot = foot[:min(len(foot), f.lines)]
	head = head[:max(0, min(len(head), f.lines-len(foot)-3))] // the heads of the columns, and two rows
	return f.within(slices.Concat(head, body(f.lines-len(foot)-len(head)), foot))
}

// within makes lines as narrow as the screen.
func (f *frame) within(lines []line) []line {
	for i := range lines {
		lines[i] = lines[i].within(f.columns)
	}
	return lines
}

// moved returns the row to which a key moves the selection from a row; ok is false if the key does not move it.
func moved(k terminal.Key, at, rows, page int) (to int, ok bool) {
	switch k {
	case 'j', terminal.KeyDown:
		at++
	case 'k', terminal.KeyUp:
		at--
	case ' ', terminal.KeyPageDown:
		at += max(1, page)
	case 'b', terminal.KeyPageUp:
		at -= max(1, page)
	case 'g', terminal.KeyHome:
		at = 0
	case 'G', terminal.KeyEnd:
		at = rows
	default:
		return at, false
	}
	return max(0, min(at, rows-1)), true
}
