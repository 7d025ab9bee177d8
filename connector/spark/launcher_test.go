package spark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/executor"
)

// pretended is a JVM that is a goroutine.
type pretended struct {
	number   int
	commands chan command
	ends     context.CancelFunc
	ended    context.Context
}

func (p *pretended) send(line []byte) {
	var c command
	if err := json.Unmarshal(line, &c); err != nil {
		panic(err)
	}
	select {
	case p.commands <- c:
	default:
		panic("a JVM does not read")
	}
}

func (p *pretended) dump()      {}
func (p *pretended) kill()      { p.ends() }
func (p *pretended) own(string) {}
func (p *pretended) yield(bool) {}

// behaviour is what pretended JVMs do.
type behaviour struct {
	starts, attaches, parks time.Duration
	// dies returns after how long a JVM dies by itself; 0 is never.
	dies func() time.Duration
	// answers returns the report for an attachment that is not active; nil for none of them.
	answers func(c command) *report
}

// pretend returns a launcher with pretended JVMs, and what they are told, once the launcher has ended.
func pretend(b behaviour) (l *launcher, told *[]string) {
	l, told = newLauncher(), new([]string)
	var mu sync.Mutex
	l.log, l.room, l.forget = io.Discard, func() bool { return false }, func(string) {}
	l.begin = func(number int, hear func(report), exited func(string)) (runner, error) {
		p := &pretended{number: number, commands: make(chan command, 100)}
		p.ended, p.ends = context.WithCancel(context.Background())
		if b.dies != nil {
			if d := b.dies(); d > 0 {
				time.AfterFunc(d, p.ends)
			}
		}
		go func() {
			defer exited("it was killed")
			defer p.ends()
			if !p.sleeps(b.starts) {
				return
			}
			hear(report{Is: "ready"})
			for {
				select {
				case c := <-p.commands:
					mu.Lock()
					*told = append(*told, strings.TrimSpace(fmt.Sprint(number, " ", c.Do, " ", c.Key)))
					mu.Unlock()
					if !p.does(&b, c, hear) {
						return
					}
				case <-p.ended.Done():
					return
				}
			}
		}()
		return p, nil
	}
	return l, told
}

// does does what a JVM is told. It reports whether the JVM lives on.
func (p *pretended) does(b *behaviour, c command, hear func(report)) bool {
	switch c.Do {
	case "attach":
		if !p.sleeps(b.attaches) {
			return false
		}
		if b.answers != nil {
			if r := b.answers(c); r != nil {
				hear(*r)
				return true
			}
		}
		hear(report{Is: "active", Attachment: c.Attachment, Full: true})
		hear(report{Is: "keeps", Keys: []string{c.Key}})
	case "park":
		if !p.sleeps(b.parks) {
			return false
		}
		hear(report{Is: "parked"})
	case "end":
		return false
	}
	return true
}

// sleeps reports whether the JVM lives for a while longer.
func (p *pretended) sleeps(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.ended.Done():
		return false
	}
}

// assigned is an attachment of an application, and the functions that end them.
func assigned(number int64, key string, application context.Context) (to executor.Attached,
	giveBack context.CancelFunc) {
	to = executor.Attached{Attachment: executor.Attachment{Attachment: number}, Key: key, Name: key,
		Application: application}
	to.GivenBack, giveBack = context.WithCancel(context.Background())
	return to, giveBack
}

// A launcher registers its executor once its JVM is ready, serves one attachment after the other, and ends its JVM
// with itself.
func TestLauncher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, told := pretend(behaviour{starts: 3 * time.Second, attaches: 60 * time.Millisecond, parks: time.Millisecond})
		var log strings.Builder
		kills := int64(0)
		l.log, l.kills = &log, func() int64 { kills = min(kills+1, 2); return kills - 1 }
		began := time.Now()
		err := keep(t.Context(), l, func(context.Context) error {
			if took := time.Since(began); took != 3*time.Second {
				t.Errorf("it registered after %v", took)
			}
			application, end := context.WithCancel(context.Background())
			for n := range int64(3) {
				to, giveBack := assigned(n+1, "a", application)
				time.AfterFunc(time.Second, giveBack)
				before := time.Now()
				if err := l.serve(to, nil); err != nil {
					t.Error(err)
				}
				if took := time.Since(before); took != time.Second+time.Millisecond {
					t.Errorf("attachment %d was served for %v", n+1, took)
				}
			}
			end()
			synctest.Wait()
			return errors.New("the pool has removed it")
		})
		if err == nil || err.Error() != "the pool has removed it" {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "has killed 1 of the processes"); n != 1 || !strings.Contains(log.String(),
			"while attachment 2 was served") {
			t.Errorf("it is said %d times that a process was killed:\n%s", n, log.String())
		}
		if want := []string{"1 attach a", "1 park", "1 attach a", "1 park", "1 attach a", "1 park", "1 forget a",
			"1 end"}; !slices.Equal(*told, want) {
			t.Errorf("the JVM was told %q, want %q", *told, want)
		}
	})
}

// A JVM that stands still for a minute, such as in a collection of garbage, keeps its executor while it serves. After
// its death another JVM serves, which does not hear of the end of applications that only the former one knew.
func TestLauncherOutlivesJVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lives := time.Minute
		l, told := pretend(behaviour{dies: func() time.Duration { defer func() { lives = 0 }(); return lives }})
		application, end := context.WithCancel(context.Background())
		l.forget = func(string) { end() } // as the executor does it
		err := keep(t.Context(), l, func(context.Context) error {
			to, giveBack := assigned(1, "a", application)
			defer giveBack()
			before := time.Now()
			if err := l.serve(to, nil); err == nil || err.Error() != "its JVM has ended: it was killed" {
				t.Error(err)
			}
			if took := time.Since(before); took != time.Minute {
				t.Errorf("it was served for %v", took)
			}
			again, end := context.WithCancel(context.Background())
			defer end()
			to, giveBack = assigned(2, "a", again)
			time.AfterFunc(time.Second, giveBack)
			return l.serve(to, nil)
		})
		if err != nil {
			t.Error(err)
		}
		if want := []string{"1 attach a", "2 attach a", "2 park", "2 end"}; !slices.Equal(*told, want) {
			t.Errorf("JVMs were told %q, want %q", *told, want)
		}
	})
}

// A launcher whose JVM cannot start fails, without registering.
func TestLauncherWithoutJVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLauncher()
		l.log = io.Discard
		l.begin = func(int, func(report), func(string)) (runner, error) { return nil, errors.New("no such program") }
		err := keep(t.Context(), l, func(context.Context) error {
			t.Error("it has registered")
			return nil
		})
		if want := "its JVM has ended before it was ready: it cannot be started: no such program"; err == nil ||
			err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// Whatever JVMs do and whenever they die, attachments come to an end, within the lease of the executor once they were
// given back; and nothing is left when the launcher ends.
func TestLauncherAtRandom(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			upTo := func(d time.Duration) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(r.Int64N(int64(d)))
			}
			b := behaviour{starts: upTo(5 * time.Second), attaches: upTo(time.Second), parks: upTo(30 * time.Second),
				dies:    func() time.Duration { return 10*time.Second + upTo(5*time.Minute) },
				answers: func(c command) *report { return nil }}
			if seed%3 == 0 {
				b.answers = func(c command) *report { return &report{Is: "failed", Attachment: c.Attachment, Error: "no"} }
			}
			l, _ := pretend(b)
			err := keep(t.Context(), l, func(ctx context.Context) error {
				for n := int64(1); n <= 30 && ctx.Err() == nil; n++ {
					application, end := context.WithCancel(context.Background())
					to, giveBack := assigned(n, fmt.Sprint(n%4), application)
					var back time.Time
					timer := time.AfterFunc(upTo(2*time.Minute), func() { back = time.Now(); giveBack() })
					err := l.serve(to, nil)
					if timer.Stop(); !back.IsZero() && time.Since(back) > 9*time.Second {
						t.Errorf("seed %d: attachment %d took %v to end (%v)", seed, n, time.Since(back), err)
					}
					giveBack()
					end()
				}
				return nil
			})
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
}
