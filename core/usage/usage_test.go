package usage

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/resource"
)

const mib = int64(resource.MiB)

// known are the kinds that a container has where the network is not measured.
var known = SetOf(CPU, Memory, Swap, Read, Written)

// program is a fake program that is sampled.
type program struct {
	at      time.Duration
	used    Amounts
	still   time.Duration
	pressed time.Duration
	idle    time.Duration
	curbed  time.Duration
	bound   int64
	kinds   Set // that are measured
	log     *Log
}

func newProgram(grant resource.Vector) *program {
	return &program{kinds: known, log: NewLog(0, ToleranceFor(grant))}
}

// run lets it use amounts per second, and takes a sample each second.
func (p *program) run(seconds int, cpu, memory, written int64) {
	for range seconds {
		p.skip(time.Second, cpu, memory, written)
		p.sample()
	}
}

// skip lets it run without a sample.
func (p *program) skip(d time.Duration, cpu, memory, written int64) {
	p.at += d
	p.used[CPU] += cpu * d.Milliseconds() / 1000
	p.used[Written] += written * d.Milliseconds() / 1000
	p.used[Memory] = memory
}

func (p *program) sample() {
	p.log.Add(Sample{At: p.at, Value: p.used, Known: p.kinds, Suspended: p.still, Pressed: p.pressed, Idle: p.idle,
		Curbed: p.curbed, Bound: p.bound})
}

// file returns what the file contains after everything was written.
func (p *program) file(t testing.TB) Usage {
	t.Helper()
	text, _ := p.log.Unwritten()
	if p.log.begun {
		t.Fatal("written before")
	}
	parsed, err := Parse(text)
	if err != nil || parsed.Torn != 0 {
		t.Fatalf("parse: %v, torn %d", err, parsed.Torn)
	}
	return parsed.Usage
}

// A program of three steps is three spans, however long they are; a step of 3 s is found within a sample.
func TestSteps(t *testing.T) {
	p := newProgram(resource.Of(2000, 4*resource.GiB))
	p.run(40, 1000, 100*mib, 0)
	p.run(3, 2000, 900*mib, 0)
	p.run(100, 500, 300*mib, 50*mib)
	u := p.file(t)
	want := []Span{
		{40 * time.Second, Amounts{CPU: 40_000, Memory: 100 * mib}, known, false, 0, false, 0, 0, 0},
		{3 * time.Second, Amounts{CPU: 6000, Memory: 900 * mib}, known, false, 0, false, 0, 0, 0},
		{100 * time.Second, Amounts{CPU: 50_000, Memory: 300 * mib, Written: 5000 * mib}, known, false, 0, false, 0, 0, 0},
	}
	if !reflect.DeepEqual(u.Spans, want) {
		t.Errorf("spans %+v", u.Spans)
	}
	check := func(what string, got int64, ok bool, want int64) {
		t.Helper()
		if !ok || got != want {
			t.Errorf("%s: %d, %v; want %d", what, got, ok, want)
		}
	}
	mean, ok := u.Mean(CPU)
	check("mean of CPU", mean, ok, 96_000/143)
	peak, ok := u.Peak(CPU)
	check("peak of CPU", peak, ok, 2000)
	peak, ok = u.Peak(Memory)
	check("peak of memory", peak, ok, 900*mib)
	total, ok := u.Total(Written)
	check("written", total, ok, 5000*mib)
	mean, ok = u.Mean(Swap)
	check("mean of swap", mean, ok, 0)
	if _, ok := u.Mean(Received); ok {
		t.Error("the network was not measured, and has a mean")
	}
	demand, kinds := u.Spans[2].Demand()
	if kinds != resource.KindsOf(resource.CPU, resource.Memory, resource.Disk) ||
		demand != (resource.Vector{resource.CPU: 500, resource.Memory: resource.Amount(300 * mib),
			resource.Disk: resource.Amount(50 * mib)}) {
		t.Errorf("demand %v of %v", demand, kinds)
	}
}

// A ramp becomes steps that are no higher than the tolerance, and its peak stays exact.
func TestRamp(t *testing.T) {
	p := newProgram(resource.Of(1000, resource.GiB))
	for i := range 1000 {
		p.run(1, 0, int64(i+1)*mib, 0)
	}
	u := p.file(t)
	if n := len(u.Spans); n < parts-2 || n > parts+2 {
		t.Errorf("%d spans", n)
	}
	if peak, _ := u.Peak(Memory); peak != 1000*mib {
		t.Errorf("peak %d", peak)
	}
}

// A time without samples is a gap: how much was used is known, what was held is not. A clock that stands or goes back
// adds nothing.
func TestGap(t *testing.T) {
	p := newProgram(resource.Of(1000, resource.GiB))
	p.run(10, 1000, mib, 0)
	p.skip(time.Minute, 500, 900*mib, 0)
	p.sample()
	p.run(10, 1000, 2*mib, 0)
	at := p.at
	p.at -= 5 * time.Second
	p.sample()
	p.at = at
	p.sample()
	u := p.file(t)
	if u.Length() != 80*time.Second || u.Gap() != time.Minute || len(u.Spans) != 3 {
		t.Fatalf("spans %+v", u.Spans)
	}
	if g := u.Spans[1]; !g.Gap || g.Used[CPU] != 30_000 || g.Known.Has(Memory) || g.Known.Has(Swap) {
		t.Errorf("gap %+v", g)
	}
	if total, _ := u.Total(CPU); total != 50_000 {
		t.Errorf("total %d", total)
	}
	if peak, _ := u.Peak(Memory); peak != 2*mib {
		t.Errorf("peak %d, of memory that no sample saw", peak)
	}
}

// Time in which a program stands still is no time of its own: it demands what it uses while it runs, also if it runs
// a part of each second only. A gap may have stillness, a clock that goes back has none, and a daemon that goes on
// where another one ended knows how long the program had stood still.
func TestStill(t *testing.T) {
	p := newProgram(resource.Of(2000, 4*resource.GiB))
	p.run(10, 1000, 100*mib, 40*mib)
	for range 30 {
		p.still += time.Second
		p.run(1, 0, 100*mib, 0)
	}
	for range 20 {
		p.still += 750*time.Millisecond + 400*time.Microsecond
		p.run(1, 250, 100*mib, 10*mib)
	}
	p.still += 30 * time.Second
	p.skip(40*time.Second, 250, 100*mib, 10*mib)
	p.sample()
	u := p.file(t)
	if u.Length() != 100*time.Second || u.Suspended() != 75*time.Second+8*time.Millisecond || u.Bounded() != 0 {
		t.Errorf("%v, of which still %v: %+v", u.Length(), u.Suspended(), u.Spans)
	}
	for i := range u.Spans {
		s := &u.Spans[i]
		demand, kinds := s.Demand()
		switch {
		case s.Active() == 0:
			if kinds != resource.KindsOf(resource.Memory) || demand[resource.Memory] != resource.Amount(100*mib) {
				t.Errorf("span %d, %+v: demand %v of %v", i, s, demand, kinds)
			}
		case demand[resource.CPU] < 990 || demand[resource.CPU] > 1010 || demand[resource.Disk] < resource.Amount(39*mib) ||
			demand[resource.Disk] > resource.Amount(41*mib):
			t.Errorf("span %d, %+v: demand %v", i, s, demand)
		}
	}
	if cpu, _ := u.Spans[1].Rate(CPU); cpu != 0 {
		t.Errorf("it used %d while it stood still", cpu)
	}
	text, _ := p.log.Unwritten()
	parsed, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	l := parsed.Continue(p.log.tolerance)
	if l.Suspended() != u.Suspended() {
		t.Errorf("continued with %v", l.Suspended())
	}
	l.Add(Sample{At: p.at + time.Second, Value: p.used, Known: known})
	if s := l.open[0]; s.Suspended != 0 {
		t.Errorf("a count of stillness that began anew: %+v", s)
	}
}

// A bound of the kernel that a program reaches hides what it demands of the disk; one that it does not reach hides
// nothing, and what a program transfers that stands still part of the time is no matter of the bound.
func TestBounded(t *testing.T) {
	p := newProgram(resource.Of(2000, 4*resource.GiB))
	p.run(10, 1000, 100*mib, 40*mib)
	p.bound = 20 * mib
	p.run(10, 500, 100*mib, 20*mib)
	p.run(10, 500, 100*mib, 5*mib)
	for range 10 {
		p.still += 500 * time.Millisecond
		p.run(1, 500, 100*mib, 20*mib)
	}
	p.bound = 0
	p.run(10, 1000, 100*mib, 20*mib)
	u := p.file(t)
	if u.Bounded() != 10*time.Second || len(u.Spans) != 5 || !u.Spans[1].Bounded {
		t.Fatalf("bounded for %v: %+v", u.Bounded(), u.Spans)
	}
	for i, want := range []resource.Amount{40, 0, 5, 40, 20} {
		demand, known := u.Spans[i].Demand()
		if demand[resource.Disk] != want*resource.MiB || known.Has(resource.Disk) != (want > 0) {
			t.Errorf("span %d: demand %v of %v", i, demand, known)
		}
	}
}

// Time in which the disk was pressed is counted to the millisecond, also by a daemon that goes on where another one
// ended; in a span that was pressed for the most part, what is demanded of the disk is unknown. A program that stood
// still was not hindered.
func TestPressed(t *testing.T) {
	p := newProgram(resource.Of(2000, 4*resource.GiB))
	p.run(10, 1000, 100*mib, 40*mib)
	for range 10 {
		p.pressed += 900 * time.Millisecond
		p.run(1, 500, 100*mib, 10*mib)
	}
	p.pressed += 300*time.Millisecond + 500*time.Microsecond
	p.run(10, 500, 100*mib, 20*mib)
	p.still += time.Second
	p.pressed += time.Second
	p.run(1, 0, 100*mib, 0)
	u := p.file(t)
	if u.Pressed() != 9300*time.Millisecond || len(u.Spans) != 4 {
		t.Fatalf("pressed for %v: %+v", u.Pressed(), u.Spans)
	}
	for i, want := range []resource.Amount{40, 0, 20} {
		demand, known := u.Spans[i].Demand()
		if demand[resource.Disk] != want*resource.MiB || known.Has(resource.Disk) != (want > 0) || !known.Has(resource.CPU) {
			t.Errorf("span %d: demand %v of %v", i, demand, known)
		}
	}
	text, _ := p.log.Unwritten()
	parsed, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if l := parsed.Continue(p.log.tolerance); l.Pressed() != u.Pressed() {
		t.Errorf("continued with %v", l.Pressed())
	}
}

// Time in which the programs were idle is counted to the millisecond, also by a daemon that goes on where another one
// ended, and when spans are joined. Programs that stood still did not wait of their own.
func TestIdle(t *testing.T) {
	p := newProgram(resource.Of(2000, 4*resource.GiB))
	p.run(10, 1000, 100*mib, 0)
	for range 10 {
		p.idle += 900*time.Millisecond + 400*time.Microsecond
		p.run(1, 0, 100*mib, 0)
	}
	p.run(10, 1000, 100*mib, 0)
	p.still, p.idle = p.still+time.Second, p.idle+time.Second
	p.run(1, 0, 100*mib, 0)
	u := p.file(t)
	want := 9004 * time.Millisecond
	if u.Idle() != want || len(u.Spans) != 4 || u.Spans[1].Idle != want || u.Spans[1].Active() != 10*time.Second {
		t.Fatalf("idle for %v, want %v: %+v", u.Idle(), want, u.Spans)
	}
	text, _ := p.log.Unwritten()
	parsed, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if l := parsed.Continue(p.log.tolerance); l.Idle() != want {
		t.Errorf("continued with %v", l.Idle())
	}
	if got := u.Thin(1); got.Idle() != want {
		t.Errorf("thinned, it is idle for %v", got.Idle())
	}
}

// Time in which the programs got less CPU than they would have used is counted as idle time is.
func TestCurbed(t *testing.T) {
	p := newProgram(resource.Of(2000, 4*resource.GiB))
	p.run(10, 1000, 100*mib, 0)
	for range 10 {
		p.curbed += 700*time.Millisecond + 400*time.Microsecond
		p.run(1, 2000, 100*mib, 0)
	}
	p.still, p.curbed = p.still+time.Second, p.curbed+time.Second
	p.run(1, 0, 100*mib, 0)
	u := p.file(t)
	want := 7004 * time.Millisecond
	if u.Curbed() != want || len(u.Spans) != 3 || u.Spans[1].Curbed != want {
		t.Fatalf("curbed for %v, want %v: %+v", u.Curbed(), want, u.Spans)
	}
	text, _ := p.log.Unwritten()
	parsed, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if l := parsed.Continue(p.log.tolerance); l.Curbed() != want {
		t.Errorf("continued with %v", l.Curbed())
	}
	if got := u.Thin(1); got.Curbed() != want {
		t.Errorf("thinned, it is curbed for %v", got.Curbed())
	}
	u.Spans[1].Used[Swap], u.Spans[2].Used[Swap], u.Spans[0].Used[Swap] = 5*mib, mib, mib-1
	if got := u.Swapped(); got != 10*time.Second {
		t.Errorf("swapped for %v, want the time in which it did not stand still", got)
	}
}

// What is unknown is not zero, and a counter that falls is unknown.
func TestUnknown(t *testing.T) {
	l := NewLog(0, ToleranceFor(resource.Of(1000, resource.GiB)))
	l.Add(Sample{At: time.Second, Known: SetOf(CPU)})
	l.Add(Sample{At: 2 * time.Second, Value: Amounts{CPU: 1000, Read: 5 * mib}, Known: SetOf(CPU, Read)})
	l.Add(Sample{At: 3 * time.Second, Value: Amounts{CPU: 900, Read: 6 * mib}, Known: SetOf(CPU, Read)})
	l.Add(Sample{At: 4 * time.Second, Value: Amounts{CPU: 950}, Known: SetOf(CPU)})
	l.Add(Sample{At: 5 * time.Second, Value: Amounts{CPU: 950, Read: 9 * mib}, Known: SetOf(CPU, Read)})
	spans := append(l.closed, l.open...)
	want := []Span{
		{Length: time.Second, Known: SetOf(CPU)},
		{Length: time.Second, Used: Amounts{CPU: 1000, Read: 5 * mib}, Known: SetOf(CPU, Read)},
		{Length: time.Second, Used: Amounts{Read: mib}, Known: SetOf(Read)},
		{Length: time.Second, Used: Amounts{CPU: 50}, Known: SetOf(CPU)},
		{Length: time.Second, Used: Amounts{Read: 3 * mib}, Known: SetOf(CPU, Read)},
	}
	if !reflect.DeepEqual(spans, want) {
		t.Errorf("spans %+v", spans)
	}
	if _, ok := (Usage{}).Mean(CPU); ok {
		t.Error("nothing has a mean")
	}
	if _, ok := (Usage{}).Peak(CPU); ok {
		t.Error("nothing has a peak")
	}
}

// What was held is memory and swap of one span together, where both are known.
func TestMostHeld(t *testing.T) {
	both := SetOf(Memory, Swap)
	u := Usage{[]Span{{Length: time.Second, Known: both, Used: Amounts{Memory: 30, Swap: 5}},
		{Length: time.Second, Known: both, Used: Amounts{Memory: 10, Swap: 27}},
		{Length: time.Second, Known: SetOf(Memory), Used: Amounts{Memory: 90}}}}
	if held, unknown := u.MostHeld(), (Usage{u.Spans[2:]}).MostHeld(); held != 37 || unknown != 0 {
		t.Errorf("held %d, and %d of what is unknown", held, unknown)
	}
}

// anyUsage draws spans with every combination of what may be known.
func anyUsage() *rapid.Generator[Usage] {
	return rapid.Custom(func(t *rapid.T) Usage {
		return Usage{rapid.SliceOf(rapid.Custom(func(t *rapid.T) Span {
			s := Span{Length: time.Duration(rapid.Int64Range(1, 1<<40).Draw(t, "ms")) * time.Millisecond,
				Known: Set(rapid.IntRange(0, 1<<NumKinds-1).Draw(t, "known")), Gap: rapid.Bool().Draw(t, "gap"),
				Bounded: rapid.Bool().Draw(t, "bounded")}
			if rapid.Bool().Draw(t, "stood") {
				most := int64(s.Length / time.Millisecond)
				s.Suspended = time.Duration(rapid.Int64Range(0, most).Draw(t, "still")) * time.Millisecond
			}
			if rapid.Bool().Draw(t, "hindered") {
				s.Pressed = time.Duration(rapid.Int64Range(0, int64(s.Active()/time.Millisecond)).Draw(t,
					"pressed")) * time.Millisecond
			}
			if rapid.Bool().Draw(t, "waited") {
				s.Idle = time.Duration(rapid.Int64Range(0, int64(s.Active()/time.Millisecond)).Draw(t, "idle")) * time.Millisecond
			}
			if rapid.Bool().Draw(t, "curbed") {
				s.Curbed = time.Duration(rapid.Int64Range(0, int64(s.Active()/time.Millisecond)).Draw(t,
					"without")) * time.Millisecond
			}
			if s.Gap {
				s.Known &^= levels
			}
			for _, k := range Kinds() {
				if s.Known.Has(k) {
					s.Used[k] = rapid.Int64Range(0, 1<<50).Draw(t, "used") * unit(k)
				}
			}
			return s
		})).Draw(t, "spans")}
	})
}

func TestMarshal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := anyUsage().Draw(t, "usage")
		got, err := Unmarshal(u.Marshal())
		if err != nil || len(got.Spans) != len(u.Spans) || len(u.Spans) > 0 && !reflect.DeepEqual(got, u) {
			t.Fatalf("%v: %+v, want %+v", err, got, u)
		}
	})
	for _, text := range []string{"", "\x00", "\x05", "\x01\x00", "\x01\x00\x00",
		"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x01\x02\x01\xff\x01"} {
		if u, err := Unmarshal([]byte(text)); err == nil {
			t.Errorf("%q is %+v", text, u)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte{version, 2, 1, 1})
	f.Add(Usage{[]Span{{time.Second, Amounts{CPU: 5, Memory: mib}, known, false, 0, false, 0, 0, 0},
		{time.Minute, Amounts{CPU: 5}, SetOf(CPU), true, time.Second, true, time.Second, time.Second,
			time.Second}}}.Marshal())
	f.Fuzz(func(t *testing.T, text []byte) {
		u, err := Unmarshal(text)
		if err != nil {
			return
		}
		again, err := Unmarshal(u.Marshal())
		if err != nil || len(u.Spans) > 0 && !reflect.DeepEqual(again, u) {
			t.Fatalf("%v: %+v, then %+v", err, u, again)
		}
	})
}

// Thinning keeps lengths, totals and peaks of levels, and joins what is most alike first.
func TestThin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := anyUsage().Draw(t, "usage")
		for i := range u.Spans {
			u.Spans[i].Length %= time.Hour
			u.Spans[i].Length += time.Millisecond
			u.Spans[i].Suspended = min(u.Spans[i].Suspended, u.Spans[i].Length)
			u.Spans[i].Pressed = min(u.Spans[i].Pressed, u.Spans[i].Active())
			u.Spans[i].Idle = min(u.Spans[i].Idle, u.Spans[i].Active())
			u.Spans[i].Curbed = min(u.Spans[i].Curbed, u.Spans[i].Active())
			u.Spans[i].Known = known
			if u.Spans[i].Gap {
				u.Spans[i].Known &^= levels
			}
			for _, k := range Kinds() {
				u.Spans[i].Used[k] %= 1 << 40
				if !u.Spans[i].Known.Has(k) {
					u.Spans[i].Used[k] = 0
				}
			}
		}
		most := rapid.IntRange(1, 20).Draw(t, "most")
		thin := u.Thin(most)
		if len(thin.Spans) > max(most, 0) || thin.Length() != u.Length() || thin.Pressed() != u.Pressed() {
			t.Fatalf("%d spans of %v, from %d of %v", len(thin.Spans), thin.Length(), len(u.Spans), u.Length())
		}
		for _, k := range []Kind{CPU, Read, Written} {
			a, _ := u.Total(k)
			if b, _ := thin.Total(k); a != b {
				t.Fatalf("total %d of %d became %d", k, a, b)
			}
		}
		a, _ := u.Peak(Memory)
		if b, _ := thin.Peak(Memory); a != b {
			t.Fatalf("peak %d became %d", a, b)
		}
	})
	p := newProgram(resource.Of(2000, 4*resource.GiB))
	noise := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		p.run(1, 1000+noise.Int64N(300), 100*mib, 0)
	}
	p.run(10, 2000, 900*mib, 0)
	for range 100 {
		p.run(1, 100+noise.Int64N(300), 300*mib, 0)
	}
	thin := p.file(t).Thin(3)
	if len(thin.Spans) != 3 || thin.Spans[0].Length != 100*time.Second || thin.Spans[1].Length != 10*time.Second {
		t.Errorf("three phases became %+v", thin.Spans)
	}
}

// Every file that a crash leaves behind is read up to its last whole piece, and goes on there.
func TestTornFile(t *testing.T) {
	p := newProgram(resource.Of(1000, resource.GiB))
	var file []byte
	write := func(part float64) {
		text, at := p.log.Unwritten()
		text = text[:int(float64(len(text))*part)]
		file = append(file[:at:at], append(text, file[min(len(file), int(at)+len(text)):]...)...)
	}
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		p.run(1, noise.Int64N(1000), noise.Int64N(1000)*mib, noise.Int64N(100)*mib)
		if i%5 == 4 {
			write(1)
			p.log.Written()
		}
	}
	whole, err := Parse(file)
	if err != nil || whole.Usage.Length() != 2000*time.Second {
		t.Fatalf("%v: %v", err, whole.Usage.Length())
	}
	if perSample := float64(len(file)) / 2000; perSample > 14 {
		t.Errorf("%.1f bytes per sample of noise", perSample)
	}
	for n := 0; n < len(file); n += 97 {
		torn, err := Parse(file[:n])
		if n < headSize {
			if err == nil {
				t.Fatalf("%d bytes are a log", n)
			}
			continue
		}
		if err != nil || torn.size+torn.Torn != int64(n) {
			t.Fatalf("%d bytes: %v, torn %d", n, err, torn.Torn)
		}
		if k := len(torn.Usage.Spans); k > 0 && !reflect.DeepEqual(torn.Usage.Spans, whole.Usage.Spans[:k]) {
			t.Fatalf("%d bytes have other spans", n)
		}
	}
	file[len(file)-1] ^= 1
	if torn, err := Parse(file); err != nil || torn.Torn == 0 {
		t.Errorf("a wrong byte: %v, torn %d", err, torn.Torn)
	}

	// The next log drops the torn end, and its first span is a gap.
	file = file[:len(file)-3]
	torn, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	p.log = torn.Continue(ToleranceFor(resource.Of(1000, resource.GiB)))
	p.skip(time.Minute, 1000, mib, 0)
	p.sample()
	write(1)
	again, err := Parse(file)
	if err != nil || again.Usage.Length() != p.at {
		t.Fatalf("%v: %v long, ran %v", err, again.Usage.Length(), p.at)
	}
	if total, _ := again.Usage.Total(CPU); total != p.used[CPU] || again.Usage.Gap() < time.Minute {
		t.Errorf("total %d of %d, gap %v", total, p.used[CPU], again.Usage.Gap())
	}
}

// While a disk is full, details are lost and totals are not; memory stays bounded.
func TestFullDisk(t *testing.T) {
	p := newProgram(resource.Of(1000, resource.GiB))
	lost := 0
	for i := range 5000 {
		p.run(1, int64(i%2)*1000, mib, 0)
		if i%5 == 4 {
			p.log.Unwritten()
			if p.log.Lost() {
				lost++
			}
		}
	}
	if len(p.log.closed) > pendingMost+5 || lost == 0 {
		t.Errorf("%d spans wait, lost %d times", len(p.log.closed), lost)
	}
	u := p.file(t)
	if total, _ := u.Total(CPU); total != p.used[CPU] || u.Length() != 5000*time.Second || u.Gap() == 0 {
		t.Errorf("%d of %d, %v, gap %v", total, p.used[CPU], u.Length(), u.Gap())
	}
}

// The file of a container that runs for hours of noise stays small, and loses neither totals nor peaks of levels,
// whatever dies when: before and after each write it is a whole log. One that cannot be replaced grows, and is tried
// again later.
func TestFullFile(t *testing.T) {
	p := newProgram(resource.Of(1000, resource.GiB))
	var file []byte
	var peak int64
	noise := rand.New(rand.NewPCG(1, 2))
	replaced, refused := 0, 0
	for i := range 12 * 3600 / 5 {
		for range 5 {
			memory := noise.Int64N(1000) * mib
			peak = max(peak, memory)
			p.run(1, noise.Int64N(1000), memory, noise.Int64N(100*mib))
		}
		text, at := p.log.Unwritten()
		switch full := p.log.Full(); {
		case full && refused < 3:
			refused++
			p.log.NotReplaced()
			if p.log.Full() {
				t.Fatal("it is tried again at once")
			}
			fallthrough
		case !full:
			file = append(file[:at], text...)
			p.log.Written()
		default:
			smaller, lost := p.log.Thinned(file[:at], text)
			if len(smaller) > FileMost/2+len(text) || lost != 0 {
				t.Fatalf("%d bytes became %d, %d were lost", len(file), len(smaller), lost)
			}
			file = smaller
			p.log.Replaced(smaller, text)
			replaced++
		}
		if i%1000 != 0 && !p.log.Full() {
			continue
		}
		parsed, err := Parse(file)
		if err != nil || parsed.Torn != 0 || parsed.Usage.Length() != p.at || len(file) > FileMost*3/2+2000 {
			t.Fatalf("%d bytes: %v, %d torn, %v of %v", len(file), err, parsed.Torn, parsed.Usage.Length(), p.at)
		}
		total, _ := parsed.Usage.Total(Written)
		highest, _ := parsed.Usage.Peak(Memory)
		if kib := int64(resource.KiB); total != p.used[Written]-p.used[Written]%kib || highest != peak ||
			parsed.Usage.Gap() != 0 {
			t.Fatalf("after %v: written %d of %d, peak %d of %d, gap %v", p.at, total, p.used[Written], highest, peak,
				parsed.Usage.Gap())
		}
		if l := parsed.Continue(p.log.tolerance); l.at != int64(len(file)) || l.last.At != p.at {
			t.Fatalf("continued at %d of %d, %v of %v", l.at, len(file), l.last.At, p.at)
		}
	}
	if replaced < 3 || refused != 3 {
		t.Errorf("replaced %d times, refused %d times", replaced, refused)
	}
}

// Where a full file is damaged, what follows keeps its place in time, and totals stay right.
func TestFullFileIsDamaged(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	for _, at := range []int{3, 20, 70_000} {
		p := newProgram(resource.Of(1000, resource.GiB))
		var file []byte
		for !p.log.Full() {
			p.run(5, noise.Int64N(1000), noise.Int64N(1000)*mib, noise.Int64N(100)*mib)
			text, offset := p.log.Unwritten()
			file = append(file[:offset], text...)
			p.log.Written()
		}
		text, offset := p.log.Unwritten()
		file = file[:offset]
		file[at] ^= 1
		smaller, lost := p.log.Thinned(file, text)
		p.log.Replaced(smaller, text)
		parsed, err := Parse(smaller)
		if err != nil || parsed.Torn != 0 || lost < int64(len(file)-at) || p.log.at != int64(len(smaller)-len(text)) {
			t.Fatalf("damaged at %d: %v, %d bytes are torn, %d were lost", at, err, parsed.Torn, lost)
		}
		u := parsed.Usage
		total, known := u.Total(CPU)
		if u.Length() != p.at || total != p.used[CPU] || !known || u.Gap() == 0 {
			t.Errorf("damaged at %d: %v of %v, gap %v, %d of %d", at, u.Length(), p.at, u.Gap(), total, p.used[CPU])
		}
		if _, ok := u.Total(Received); ok {
			t.Errorf("damaged at %d: what was never measured is known", at)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	p := newProgram(resource.Of(1000, resource.GiB))
	b.ReportAllocs()
	for b.Loop() {
		p.run(1, 1000, mib, 0)
	}
}
