package spark

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/executor"
)

// A machine decides what the launcher does. It is a pure function of events and of their times: what the pool wants,
// what JVMs report, and that time has passed. Its hands carry out what it decides. One JVM serves; another may be made
// ready to take its place, and others end.

// hands carry out what a machine decides.
type hands interface {
	start(number int)              // start a JVM
	send(number int, c command)    // tell a JVM something
	dump(number int)               // make a JVM print the stacks of its threads
	kill(number int)               // end a JVM at once
	yields(number int, is bool)    // a JVM is killed before others if the memory of the container is full, or is not
	registers()                    // the executor can be registered
	owns(number int, label string) // what a JVM prints from now on belongs to an application; "" is the launcher
	drop(key string)               // nothing is kept of an application any more
	left() int64                   // memory of the container that is not used, bytes
	finish(attachment int64, err error)
	fail(err error) // the launcher cannot do its work
	note(format string, values ...any)
}

// Patience with a JVM.
const (
	// parksWithin, with dumpsWithin, is less than the pool's patience with an executor that serves an application which
	// was cancelled, 10 s, and less than the lease, which nothing keeps meanwhile: the executor stays, with another JVM.
	parksWithin    = 7 * time.Second
	startsWithin   = 110 * time.Second // the pool replaces an executor that has not registered after two minutes
	attachesWithin = 2 * time.Minute   // as long as Spark waits for an answer of the network
	dumpsWithin    = time.Second
	endsWithin     = 5 * time.Second
	// replacesWithin is how long a spare waits to replace the JVM beside it, whose memory it takes.
	replacesWithin = 10 * time.Second
	// stillFrom is how much longer than usual the launcher must have slept if its container was stopped meanwhile.
	stillFrom = time.Second
	// mostYoung is how many JVMs in a row may end before they were ready.
	mostYoung = 3
)

// When a JVM is replaced by another one. From the first number on it is replaced once it keeps nothing of any
// application, from the second on once it serves none: what it keeps, such as files of a shuffle, is made again.
const (
	mostAttachments, mostAttachmentsKeeping = 10_000, 20_000
	mostFailures, mostFailuresKeeping       = 8, 16
)

type state uint8

// The states of a JVM. It has an attachment in attaching, active, and perhaps in parking.
const (
	starting  state = iota // it is not ready yet
	free                   // it serves nothing
	attaching              // ordered, and not active yet
	active                 // it serves
	parking                // ordered, and tasks may run still
	broken                 // it says that it is of no more use, and is killed soon
	ending                 // ordered
)

// process is what a machine knows of a JVM.
type process struct {
	number   int // from 1
	state    state
	due      time.Time // when patience with it ends; zero if it is not waited for
	dumped   bool
	ready    bool     // it has been, once
	keeps    []string // keys of applications
	attached int64    // attachments so far
	failures int      // of them, which may have left something behind
	growth   growth
}

// attachment is what the pool wants served.
type attachment struct {
	number  int64
	key     string
	name    string
	payload []byte
	sent    bool  // to the JVM
	err     error // why it has failed, once it has
}

// machine is the state of a launcher. At most one attachment is not finished.
type machine struct {
	hands      hands
	started    int  // JVMs so far
	young      int  // JVMs in a row that ended before they were ready
	registered bool // a JVM was ready once
	stopping   bool
	current    *process          // nil only while stopping, or until one that is replaced has ended
	spare      *process          // nil if there is none
	ending     map[int]*process  // by number
	serving    *attachment       // nil if there is none
	labels     map[string]string // of the applications that the current JVM keeps, by key
	asked      bool              // whether there is room for a spare was asked since the last attachment
}

func newMachine(h hands) *machine {
	return &machine{hands: h, ending: map[int]*process{}, labels: map[string]string{}}
}

// begin starts the first JVM.
func (m *machine) begin(now time.Time) { m.current = m.start(now) }

func (m *machine) start(now time.Time) *process {
	m.started++
	p := &process{number: m.started, due: now.Add(startsWithin)}
	m.hands.start(p.number)
	return p
}

// attach serves an attachment, once a JVM is ready. There must be no other.
func (m *machine) attach(now time.Time, a attachment) {
	if m.serving != nil || m.stopping {
		m.hands.finish(a.number, errors.New("the executor serves another application, or ends"))
		return
	}
	m.serving, m.asked = &a, false
	m.deliver(now)
}

// deliver tells the JVM what to serve, if it is ready and there is something.
func (m *machine) deliver(now time.Time) {
	a, p := m.serving, m.current
	if a == nil || a.sent || p == nil || p.state != free {
		return
	}
	a.sent = true
	p.state, p.due, p.dumped = attaching, now.Add(attachesWithin), false
	p.attached++
	m.hands.owns(p.number, cmp.Or(m.labels[a.key], label(a)))
	c := command{Do: "attach", Attachment: a.number, Key: a.key, Name: a.name, Payload: a.payload}
	if !slices.Contains(p.keeps, a.key) {
		c.Left = m.hands.left() // which takes as long as a switch
	}
	m.hands.send(p.number, c)
}

// giveBack ends an attachment, as its application wants it.
func (m *machine) giveBack(now time.Time, number int64) {
	a := m.serving
	switch {
	case a == nil || a.number != number:
	case !a.sent:
		m.finish(nil)
	default:
		m.park(now)
	}
}

// park makes the current JVM serve nothing.
func (m *machine) park(now time.Time) {
	p := m.current
	if p.state == attaching || p.state == active {
		p.state, p.due, p.dumped = parking, now.Add(parksWithin), false
		m.hands.send(p.number, command{Do: "park"})
	}
}

// finish ends what is served.
func (m *machine) finish(err error) {
	a := m.serving
	m.serving = nil
	m.hands.finish(a.number, cmp.Or(a.err, err))
}

// forget tells the JVM that an application has ended.
func (m *machine) forget(key string) {
	delete(m.labels, key)
	if p := m.current; p != nil && p.state != starting {
		m.hands.send(p.number, command{Do: "forget", Key: key})
	}
}

// hear takes a report of a JVM.
func (m *machine) hear(now time.Time, number int, r report) {
	p := m.find(number)
	switch {
	case p == nil || p.state == ending || p.state == broken:
	case r.Is == "broken":
		m.broke(now, p, r.Error)
	case r.Is == "ready":
		m.ready(now, p, r)
	case r.Is == "keeps":
		m.keeps(p, r.Keys)
	case r.Is == "audit":
		p.growth.add(r.audit)
	case p != m.current:
	case r.Is == "parked":
		m.parked(now)
	case m.serving == nil || r.Attachment != m.serving.number: // of one that has been finished
	case r.Is == "active":
		m.active(r)
	case r.Is == "failed":
		m.failed(now, failed(r.Error, r.Cause))
	case r.Is == "left":
		m.failed(now, failed(r.Why, "unreachable"))
	}
}

// find returns the JVM with a number that has not ended; nil if there is none.
func (m *machine) find(number int) *process {
	for _, p := range []*process{m.current, m.spare, m.ending[number]} {
		if p != nil && p.number == number {
			return p
		}
	}
	return nil
}

func (m *machine) ready(now time.Time, p *process, r report) {
	if p.state != starting {
		return
	}
	p.state, p.due, p.ready, m.young = free, time.Time{}, true, 0
	m.hands.note("JVM %d is ready: Spark %s, Scala %s, Java %s", p.number, r.Spark, r.Scala, r.Java)
	if !m.registered {
		m.registered = true
		m.hands.registers()
	}
	if p == m.spare {
		p.due = now.Add(replacesWithin)
	}
	m.deliver(now)
	m.replace(now)
}

func (m *machine) active(r report) {
	p, a := m.current, m.serving
	if r.Full {
		m.labels[a.key] = label(a)
	}
	if p.state == attaching {
		p.state, p.due = active, time.Time{}
	}
}

// failed records that the JVM cannot serve what it is to serve. Tasks may run there still, so that it parks.
func (m *machine) failed(now time.Time, err error) {
	m.serving.err = cmp.Or(m.serving.err, err)
	if !errors.Is(err, executor.ErrUnreachable) && !errors.Is(err, executor.ErrRefused) {
		m.current.failures++ // Others leave nothing behind.
	}
	m.park(now)
}

// broke makes a JVM print its threads that is of no more use, and ends it.
func (m *machine) broke(now time.Time, p *process, why string) {
	m.hands.note("JVM %d is of no more use: %s", p.number, why)
	if a := m.serving; p == m.current && a != nil && a.sent {
		a.err = cmp.Or(a.err, failed(why, ""))
	}
	p.state, p.due, p.dumped = broken, now.Add(dumpsWithin), true
	m.hands.dump(p.number)
}

// parked ends what is served, if the JVM was ordered to park.
func (m *machine) parked(now time.Time) {
	p := m.current
	if p.state != parking {
		return
	}
	p.state, p.due = free, time.Time{}
	m.hands.owns(p.number, "")
	m.finish(nil)
	m.replace(now)
}

// keeps records of which applications a JVM keeps something.
func (m *machine) keeps(p *process, keys []string) {
	before := p.keeps
	p.keeps = keys
	if p != m.current {
		return
	}
	for _, key := range before {
		if !slices.Contains(keys, key) {
			m.drop(key)
		}
	}
}

func (m *machine) drop(key string) {
	delete(m.labels, key)
	m.hands.drop(key)
}

// exited takes the end of a JVM, and how it ended, for people.
func (m *machine) exited(now time.Time, number int, how string) {
	p := m.find(number)
	if p == nil {
		return
	}
	if !p.ready {
		m.young++
	}
	switch {
	case p == m.spare:
		m.spare = nil
	case p != m.current:
		delete(m.ending, number)
		m.finishLast()
		m.restart(now)
	default:
		m.lost(now, how)
	}
}

// lost takes the end of the current JVM.
func (m *machine) lost(now time.Time, how string) {
	p := m.current
	m.current = nil
	m.forgetAll(p)
	m.hands.note("JVM %d has ended: %s", p.number, how)
	if a := m.serving; a != nil && a.sent {
		m.finish(failed("its JVM has ended: "+how, ""))
	}
	switch {
	case !m.registered:
		m.hands.fail(fmt.Errorf("its JVM has ended before it was ready: %s", how))
	case m.young >= mostYoung:
		m.hands.fail(fmt.Errorf("%d JVMs in a row have ended before they were ready, the last: %s", m.young, how))
	default:
		m.restart(now)
	}
}

// forgetAll drops what a JVM keeps that has ended, or will.
func (m *machine) forgetAll(p *process) {
	for _, key := range p.keeps {
		m.drop(key)
	}
	p.keeps = nil
	clear(m.labels)
}

// restart makes the spare, or a new JVM, the current one, unless there is one.
func (m *machine) restart(now time.Time) {
	if m.current != nil || m.stopping {
		return
	}
	if m.current, m.spare = m.spare, nil; m.current == nil {
		m.current = m.start(now)
	} else {
		m.hands.yields(m.current.number, false)
		if m.current.state == free {
			m.current.due = time.Time{}
		}
	}
	m.deliver(now)
}

// worn returns why p should be replaced once it keeps nothing, empty if it need not be, and whether it must be whatever
// it keeps.
func (p *process) worn() (why string, must bool) {
	if why = p.growth.beyond(1); why != "" {
		must = p.growth.beyond(2) != ""
	}
	if p.failures >= mostFailures {
		why, must = fmt.Sprintf("%d attachments have failed", p.failures), must || p.failures >= mostFailuresKeeping
	}
	if p.attached >= mostAttachments {
		why, must = fmt.Sprintf("it has served %d attachments", p.attached), must || p.attached >= mostAttachmentsKeeping
	}
	return why, must
}

// replaceable reports whether the current JVM serves nothing and is to be replaced. What came to be kept there since
// the spare was started does not matter: the next moment without it may never come.
func (m *machine) replaceable() bool {
	p := m.current
	if p == nil || p.state != free || m.serving != nil || m.stopping {
		return false
	}
	why, must := p.worn()
	return must || why != "" && (len(p.keeps) == 0 || m.spare != nil)
}

// wantsSpare reports whether a spare JVM should be started, if there is room: the launcher then calls room.
func (m *machine) wantsSpare() bool { return m.spare == nil && !m.asked && m.replaceable() }

// room says whether there is room for a spare JVM. Without room, the current one ends first.
func (m *machine) room(now time.Time, is bool) {
	if !m.wantsSpare() {
		return
	}
	m.asked = true
	if is {
		m.spare = m.start(now)
		m.hands.yields(m.spare.number, true)
		return
	}
	m.endCurrent(now)
}

// replace puts the spare in the place of the current JVM, if it is ready and the current one serves nothing.
func (m *machine) replace(now time.Time) {
	if m.spare == nil || m.spare.state != free || !m.replaceable() {
		return
	}
	m.endCurrent(now)
	m.restart(now)
}

func (m *machine) endCurrent(now time.Time) {
	p := m.current
	m.current = nil
	m.forgetAll(p)
	why, _ := p.worn()
	m.hands.note("JVM %d is replaced: %s", p.number, why)
	m.end(now, p)
}

// end tells a JVM to end.
func (m *machine) end(now time.Time, p *process) {
	p.state, p.due = ending, now.Add(endsWithin)
	m.ending[p.number] = p
	m.hands.send(p.number, command{Do: "end"})
}

// stop ends all JVMs. Nothing is served any more.
func (m *machine) stop(now time.Time) {
	m.stopping = true
	for _, p := range []*process{m.current, m.spare} {
		if p != nil {
			m.end(now, p)
		}
	}
	m.current, m.spare = nil, nil
	m.finishLast()
}

// finishLast ends what is served once no JVM can serve it any more, after stop.
func (m *machine) finishLast() {
	if m.serving != nil && m.stopped() {
		m.finish(errors.New("the executor ends"))
	}
}

// stopped reports whether all JVMs have ended after stop.
func (m *machine) stopped() bool { return m.stopping && len(m.ending) == 0 }

// woke says that the launcher has slept from a time until now. If that is longer than it sleeps while it waits for a
// JVM, its container was stopped, and with it the JVMs: patience with them goes on where it stopped.
func (m *machine) woke(from, now time.Time) {
	if still := now.Sub(from); still > beat+stillFrom {
		for _, p := range m.all() {
			if !p.due.IsZero() {
				p.due = p.due.Add(still)
			}
		}
	}
}

// tick acts on JVMs with which patience has ended.
func (m *machine) tick(now time.Time) {
	for _, p := range m.all() {
		if p.due.IsZero() || p.due.After(now) {
			continue
		}
		if (p.state == attaching || p.state == parking) && !p.dumped {
			p.dumped, p.due = true, now.Add(dumpsWithin)
			m.hands.note("JVM %d does not answer: it prints its threads, and is ended", p.number)
			m.hands.dump(p.number)
			continue
		}
		if p == m.spare && p.state == free {
			m.spare = nil
			m.end(now, p)
			continue
		}
		if p == m.current && m.serving != nil && m.serving.sent {
			m.serving.err = cmp.Or(m.serving.err, fmt.Errorf("its JVM did not answer in time, and was ended; the log of "+
				"the executor has the stacks of its threads"))
		}
		p.due = time.Time{}
		m.hands.kill(p.number)
	}
}

// all returns the JVMs that have not ended, in order.
func (m *machine) all() (all []*process) {
	for _, p := range m.ending {
		all = append(all, p)
	}
	for _, p := range []*process{m.current, m.spare} {
		if p != nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *process) int { return cmp.Compare(a.number, b.number) })
	return all
}

// next returns when tick is to be called; zero if not at all.
func (m *machine) next() (at time.Time) {
	for _, p := range m.all() {
		if !p.due.IsZero() && (at.IsZero() || p.due.Before(at)) {
			at = p.due
		}
	}
	return at
}

// failure is the error of an attachment that a JVM cannot serve.
type failure struct {
	text  string // for people
	cause error  // of package executor; nil is no particular one
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() error { return f.cause }

// failed returns the error for what a JVM says, with its cause: unreachable, refused, failed, or empty.
func failed(text, cause string) error {
	f := &failure{text: cmp.Or(text, "its JVM could not serve it")}
	switch {
	case cause == "unreachable":
		f.cause = executor.ErrUnreachable
	case cause == "refused":
		f.cause = executor.ErrRefused
	case strings.Contains(text, "OutOfMemoryError"), strings.Contains(text, killedForMemory):
		f.cause = executor.ErrMemory
	}
	return f
}
