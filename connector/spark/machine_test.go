package spark

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/executor"
)

// told is a machine with hands that write down what they do.
type told struct {
	*machine
	now  time.Time
	did  []string
	last command
}

func newTold() *told {
	h := &told{now: time.Unix(0, 0)}
	h.machine = newMachine(h)
	return h
}

func (h *told) say(format string, values ...any) {
	h.did = append(h.did, fmt.Sprintf(format, values...))
}
func (h *told) start(number int)                   { h.say("start %d", number) }
func (h *told) dump(number int)                    { h.say("dump %d", number) }
func (h *told) kill(number int)                    { h.say("kill %d", number) }
func (h *told) yields(number int, is bool)         { h.say("%d yields: %v", number, is) }
func (h *told) registers()                         { h.say("registers") }
func (h *told) left() int64                        { return 1 << 20 }
func (h *told) owns(number int, label string)      { h.say("%d prints for %q", number, label) }
func (h *told) drop(key string)                    { h.say("drop %s", key) }
func (h *told) finish(attachment int64, err error) { h.say("finish %d: %v", attachment, err) }
func (h *told) fail(err error)                     { h.say("fail: %v", err) }
func (h *told) note(string, ...any)                {}
func (h *told) send(number int, c command) {
	h.say("%s", strings.TrimSpace(fmt.Sprintf("tell %d %s %s", number, c.Do, c.Key)))
	h.last = c
}

// want checks what was done since the last call.
func (h *told) want(t *testing.T, did ...string) {
	t.Helper()
	if !slices.Equal(h.did, did) {
		t.Errorf("it did\n  %s\nwant\n  %s", strings.Join(h.did, "\n  "), strings.Join(did, "\n  "))
	}
	h.did = nil
}

func (h *told) reports(number int, r report) { h.hear(h.now, number, r) }

func (h *told) serves(number int64, key string, full bool) {
	h.attach(h.now, attachment{number: number, key: key, name: "app-" + key})
	h.reports(h.current.number, report{Is: "active", Attachment: number, Full: full})
	h.reports(h.current.number, report{Is: "keeps", Keys: append(slices.Clone(h.current.keeps), key)})
	h.did = nil
}

func (h *told) begun() *told {
	h.begin(h.now)
	h.reports(1, report{Is: "ready"})
	h.did = nil
	return h
}

// Two applications take turns on one JVM; lines that it prints belong to the executor of Spark that it is for each.
func TestSwitch(t *testing.T) {
	h := newTold()
	h.begin(h.now)
	h.attach(h.now, attachment{number: 4, key: "a", name: "etl"}) // It waits until the JVM is ready.
	h.want(t, "start 1")
	h.reports(1, report{Is: "ready"})
	h.want(t, "registers", `1 prints for "etl a 4"`, "tell 1 attach a")
	h.reports(1, report{Is: "active", Attachment: 4, Full: true})
	h.reports(1, report{Is: "keeps", Keys: []string{"a"}})
	h.giveBack(h.now, 4)
	h.want(t, "tell 1 park")
	h.reports(1, report{Is: "parked"})
	h.want(t, `1 prints for ""`, "finish 4: <nil>")
	h.serves(5, "b", true)
	if h.last.Left != h.left() {
		t.Errorf("it is to be attached anew with %d bytes left, want %d", h.last.Left, h.left())
	}
	h.giveBack(h.now, 5)
	h.reports(1, report{Is: "parked"})
	h.did = nil
	h.attach(h.now, attachment{number: 6, key: "a", name: "etl"})
	h.want(t, `1 prints for "etl a 4"`, "tell 1 attach a")
	if h.last.Left != 0 {
		t.Error("it looks how much memory is left, which takes time, to serve an application that is attached")
	}
	h.forget("b")
	h.want(t, "tell 1 forget b")
}

// What the JVM cannot serve is finished with its text, when no task runs there any more.
func TestFailedAttachment(t *testing.T) {
	h := newTold().begun()
	h.attach(h.now, attachment{number: 1, key: "a"})
	h.reports(1, report{Is: "failed", Attachment: 1, Error: "Spark 4.2.0 here, 3.5.9 there"})
	h.did = nil
	h.reports(1, report{Is: "parked"})
	h.want(t, `1 prints for ""`, "finish 1: Spark 4.2.0 here, 3.5.9 there")
	h.serves(2, "a", true)
	h.reports(1, report{Is: "left", Attachment: 2, Why: "its driver is gone"})
	h.want(t, "tell 1 park")
	h.giveBack(h.now, 2) // crosses it
	h.reports(1, report{Is: "parked"})
	h.want(t, `1 prints for ""`, "finish 2: its driver is gone")
}

// A JVM that does not park prints its threads and is ended, before the pool ends its executor; another one takes its
// place.
func TestHungJVM(t *testing.T) {
	h := newTold().begun()
	h.serves(1, "a", true)
	h.giveBack(h.now, 1)
	h.want(t, "tell 1 park")
	for _, want := range []string{"dump 1", "kill 1"} {
		h.now = h.next()
		h.tick(h.now)
		h.want(t, want)
	}
	if took := h.now.Sub(time.Unix(0, 0)); took > 9*time.Second {
		t.Errorf("it was ended after %v, too close to the patience of the pool, 10 s", took)
	}
	h.exited(h.now, 1, "signal 9")
	h.want(t, "drop a", "finish 1: its JVM did not answer in time, and was ended; the log of the executor has the stacks "+
		"of its threads", "start 2")
}

// A JVM that dies while it serves fails the attachment with the cause, and what it kept is not kept any more.
func TestDeadJVM(t *testing.T) {
	h := newTold().begun()
	h.serves(1, "a", true)
	h.exited(h.now, 1, "exit code 52")
	h.want(t, "drop a", "finish 1: its JVM has ended: exit code 52", "start 2")
	h.attach(h.now, attachment{number: 2, key: "a", name: "a"})
	h.reports(2, report{Is: "ready"})
	h.want(t, `2 prints for "a a 2"`, "tell 2 attach a")
}

// A JVM that says that it is of no more use fails what it serves, prints its threads, and is replaced.
func TestBrokenJVM(t *testing.T) {
	h := newTold().begun()
	h.serves(1, "a", true)
	h.reports(1, report{Is: "broken", Error: "java.lang.OutOfMemoryError: Java heap space"})
	h.giveBack(h.now, 1)
	h.reports(1, report{Is: "parked"}) // It has not.
	h.want(t, "dump 1")
	h.now = h.next()
	h.tick(h.now)
	h.want(t, "kill 1")
	h.exited(h.now, 1, "signal 9")
	h.want(t, "drop a", "finish 1: java.lang.OutOfMemoryError: Java heap space", "start 2")
}

// A JVM that never becomes ready is no executor: the launcher says why.
func TestJVMThatCannotStart(t *testing.T) {
	h := newTold()
	h.begin(h.now)
	h.exited(h.now, 1, "exit code 1")
	h.want(t, "start 1", "fail: its JVM has ended before it was ready: exit code 1")
	h = newTold().begun()
	h.exited(h.now, 1, "exit code 52")
	for n := 2; n <= 3; n++ {
		h.exited(h.now, n, "exit code 1")
	}
	h.want(t, "start 2", "start 3", "start 4")
	h.exited(h.now, 4, "exit code 1")
	h.want(t, "fail: 3 JVMs in a row have ended before they were ready, the last: exit code 1")
}

// A JVM that has grown is replaced once it keeps nothing: by a spare that is ready before, if there is room.
func TestReplaced(t *testing.T) {
	for _, room := range []bool{true, false} {
		h := newTold().begun()
		h.current.attached = mostAttachments
		h.serves(1, "a", true)
		h.giveBack(h.now, 1)
		h.reports(1, report{Is: "parked"})
		if h.wantsSpare() {
			t.Error("it is replaced although it keeps something of an application")
		}
		h.forget("a")
		h.reports(1, report{Is: "keeps"})
		h.did = nil
		if !h.wantsSpare() {
			t.Fatal("it wants no spare")
		}
		h.room(h.now, room)
		if room {
			h.want(t, "start 2", "2 yields: true")
			h.reports(2, report{Is: "ready"})
			h.want(t, "tell 1 end", "2 yields: false")
			h.exited(h.now, 1, "exit code 0")
			h.want(t)
		} else {
			h.want(t, "tell 1 end")
			h.exited(h.now, 1, "exit code 0")
			h.want(t, "start 2")
		}
	}
}

// A JVM is not worn by drivers that it cannot reach, but by attachments that fail half-way.
func TestWorn(t *testing.T) {
	for cause, want := range map[string]string{"unreachable": "", "refused": "", "failed": "8 attachments have failed"} {
		h := newTold().begun()
		for n := range int64(mostFailures) {
			h.attach(h.now, attachment{number: n + 1, key: "a"})
			h.reports(1, report{Is: "failed", Attachment: n + 1, Error: "no", Cause: cause})
			h.reports(1, report{Is: "parked"})
		}
		if why, must := h.current.worn(); why != want || must {
			t.Errorf("%s: it is worn: %q, at once: %v; want %q", cause, why, must, want)
		}
	}
}

// Applications that come while the next JVM is made ready are served, one after the other. The JVM before serves none
// longer than until then, although it keeps something of them.
func TestSpareForAStream(t *testing.T) {
	h := newTold().begun()
	h.current.attached = mostAttachments
	h.room(h.now, true)
	for n := range int64(3) {
		h.serves(n+1, fmt.Sprint(n), true)
		h.giveBack(h.now, n+1)
		h.reports(1, report{Is: "parked"})
	}
	h.attach(h.now, attachment{number: 4, key: "0"})
	h.did = nil
	h.reports(2, report{Is: "ready"})
	h.want(t)
	h.giveBack(h.now, 4)
	h.reports(1, report{Is: "parked"})
	h.want(t, "tell 1 park", `1 prints for ""`, "finish 4: <nil>", "drop 0", "drop 1", "drop 2", "tell 1 end",
		"2 yields: false")
	h.attach(h.now, attachment{number: 5, key: "0", name: "etl"})
	h.want(t, `2 prints for "etl 0 5"`, "tell 2 attach 0")
}

// A spare that has waited in vain ends: it takes memory from the JVM beside it.
func TestSpareInVain(t *testing.T) {
	h := newTold().begun()
	h.current.attached = mostAttachments
	h.room(h.now, true)
	h.serves(1, "a", true)
	h.reports(2, report{Is: "ready"})
	h.now = h.next()
	h.tick(h.now)
	h.want(t, "tell 2 end")
	h.exited(h.now, 2, "exit code 0")
	h.want(t)
}

// A container that was stopped for long, as a FLEX one is that waits for memory, does not cost the JVM.
func TestStoodStill(t *testing.T) {
	h := newTold().begun()
	h.serves(1, "a", true)
	h.giveBack(h.now, 1)
	h.did = nil
	wait := func(d time.Duration) {
		from := h.now
		h.now = h.now.Add(d)
		h.woke(from, h.now)
		h.tick(h.now)
	}
	for range 6 {
		wait(beat + stillFrom/10)
	}
	wait(time.Minute)
	h.want(t)
	if left := h.next().Sub(h.now); left <= 0 || left > parksWithin {
		t.Errorf("patience ends in %v", left)
	}
	wait(beat)
	h.want(t, "dump 1")
	h.reports(1, report{Is: "parked"})
	h.want(t, `1 prints for ""`, "finish 1: <nil>")
}

// The pool hears for which cause a JVM could not serve.
func TestCauses(t *testing.T) {
	for cause, err := range map[error]error{executor.ErrUnreachable: failed("gone", "unreachable"),
		executor.ErrRefused: failed("Spark 3.5", "refused"), executor.ErrMemory: failed("exit code 52: "+exits[52], "")} {
		if !errors.Is(err, cause) {
			t.Errorf("%v: want the cause: %v", err, cause)
		}
	}
	if err := failed("", "failed"); errors.Unwrap(err) != nil || err.Error() == "" {
		t.Error(err)
	}
}

// The audits of a JVM that swings are no growth, those of one that leaks are.
func TestGrowth(t *testing.T) {
	var steady, leaks growth
	for n := range int64(400) {
		steady.add(audit{Threads: 200 + n%7*50, Classes: 9000, Loaders: 500 + n%3*60, Metaspace: 50 * mib})
		leaks.add(audit{Threads: 200 + n*20, Classes: 9000})
	}
	if why := steady.beyond(1); why != "" {
		t.Errorf("%+v: %s", steady, why)
	}
	if want := "its threads have grown from 500 to 8040"; leaks.beyond(1) != want || leaks.beyond(2) != want {
		t.Errorf("%+v: %s, want %s", leaks, leaks.beyond(1), want)
	}
}

// simulated are JVMs that do what they are told, or not, in any order. They check what the machine tells them.
type simulated struct {
	t *rapid.T
	*told
	alive    map[int]*simulatedJVM
	pending  int64 // attachment that is not finished; 0 if there is none
	back     bool  // and was given back
	finished int64
	failed   bool
}

type simulatedJVM struct {
	ready, ending, killed bool
	said                  []report // in order, not heard yet
	serves                int64
}

func (s *simulated) start(number int) {
	s.alive[number] = &simulatedJVM{}
	if len(s.alive) > 3 {
		s.t.Fatalf("%d JVMs at once", len(s.alive))
	}
}

func (s *simulated) send(number int, c command) {
	v := s.alive[number]
	switch {
	case v == nil:
		s.t.Fatalf("JVM %d is told to %s, and has ended", number, c.Do)
	case c.Do == "attach":
		for n, other := range s.alive {
			if other.serves != 0 && !other.killed {
				s.t.Fatalf("JVM %d is to serve %d while JVM %d serves %d", number, c.Attachment, n, other.serves)
			}
		}
		if !v.ready || v.ending {
			s.t.Fatalf("JVM %d is to serve %d: ready %v, ending %v", number, c.Attachment, v.ready, v.ending)
		}
		v.serves = c.Attachment
		v.said = append(v.said, rapid.SampledFrom([]report{{Is: "active", Attachment: c.Attachment, Full: true},
			{Is: "failed", Attachment: c.Attachment, Error: "no"}, {Is: "broken", Error: "no more memory"}}).Draw(s.t,
			"answer"))
	case c.Do == "end":
		v.ending = true
	case c.Do == "park":
		v.serves = 0 // once its tasks have ended
		v.said = append(v.said, report{Is: "parked"})
	}
}

func (s *simulated) kill(number int) {
	if v := s.alive[number]; v != nil {
		v.killed = true
	}
}

func (s *simulated) finish(attachment int64, err error) {
	if attachment != s.pending {
		s.t.Fatalf("attachment %d is finished, pending is %d", attachment, s.pending)
	}
	for n, v := range s.alive {
		if v.serves == attachment {
			s.t.Fatalf("attachment %d is finished (%v) while JVM %d serves it", attachment, err, n)
		}
	}
	s.pending, s.back, s.finished = 0, false, attachment
}

func (s *simulated) drop(string)      {}
func (s *simulated) dump(int)         {}
func (s *simulated) registers()       {}
func (s *simulated) owns(int, string) {}
func (s *simulated) yields(int, bool) {}
func (s *simulated) fail(error)       { s.failed = true }

// In whatever order the pool, JVMs and time act: each attachment is finished once, never while a JVM serves it; at most
// one JVM serves; none is told anything that has ended; and once all JVMs do as they are told, what was given back is
// finished, and what is attached is served.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &simulated{t: t, told: newTold(), alive: map[int]*simulatedJVM{}}
		s.machine = newMachine(s)
		s.begin(s.now)
		next := int64(1)
		pick := func() (int, *simulatedJVM) {
			n := rapid.SampledFrom(slices.Sorted(maps.Keys(s.alive))).Draw(t, "JVM")
			return n, s.alive[n]
		}
		die := func(n int) {
			delete(s.alive, n)
			s.exited(s.now, n, "it was killed")
		}
		speak := func(n int, v *simulatedJVM) {
			switch {
			case v == nil:
			case v.killed || v.ending:
				die(n)
			case !v.ready:
				v.ready = true
				s.reports(n, report{Is: "ready"})
			case len(v.said) > 0:
				r := v.said[0]
				v.said = v.said[1:]
				s.reports(n, r)
			}
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			if s.failed {
				return
			}
			switch rapid.SampledFrom([]string{"attach", "back", "speak", "speak", "speak", "die", "leave", "time", "wear",
				"forget", "room"}).Draw(t, "step") {
			case "attach":
				if s.pending == 0 {
					s.pending = next
					next++
					s.attach(s.now, attachment{number: s.pending, key: fmt.Sprint(s.pending % 3)})
				}
			case "back":
				if s.pending != 0 {
					s.back = true
					s.giveBack(s.now, s.pending)
				}
			case "speak":
				speak(pick())
			case "die":
				n, _ := pick()
				die(n)
			case "leave":
				if _, v := pick(); v.serves != 0 {
					v.said = append(v.said, report{Is: "left", Attachment: v.serves, Why: "gone"})
				}
			case "time":
				if at := s.next(); !at.IsZero() {
					s.now = at
					s.tick(s.now)
				}
			case "wear":
				if s.current != nil {
					s.current.attached = rapid.SampledFrom([]int64{0, mostAttachments, mostAttachmentsKeeping}).Draw(t, "attached")
				}
			case "forget":
				s.forget(fmt.Sprint(next % 3))
			case "room":
				s.room(s.now, rapid.Bool().Draw(t, "room"))
			}
		}
		if s.pending == 0 {
			s.pending = next
			s.attach(s.now, attachment{number: next, key: "k"})
		}
		settle := func() { // Time passes only when no JVM has anything to say or to do.
			for range 1000 {
				busy := slices.DeleteFunc(slices.Sorted(maps.Keys(s.alive)), func(n int) bool {
					v := s.alive[n]
					return v.ready && !v.killed && !v.ending && len(v.said) == 0
				})
				for _, n := range busy {
					speak(n, s.alive[n])
				}
				if at := s.next(); len(busy) == 0 && at.IsZero() {
					return
				} else if len(busy) == 0 {
					s.now = at
					s.tick(s.now)
				}
			}
		}
		settle()
		served := s.current != nil && s.current.state == active
		if !s.failed && s.pending != 0 && (s.back || !served) {
			t.Fatalf("attachment %d was given back: %v, served: %v", s.pending, s.back, served)
		}
		s.stop(s.now)
		settle()
		if !s.stopped() || s.pending != 0 {
			t.Fatalf("stopped: %v, pending: %d", s.stopped(), s.pending)
		}
	})
}
