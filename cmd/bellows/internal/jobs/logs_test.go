package jobs

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// However the output arrives, some lines are shown, and others are not; too long ones are broken, as without a choice.
func TestSomeLines(t *testing.T) {
	long := strings.Repeat("x", longestLine+5)
	text := "+a\nb\n\n+c\n+" + long + "\n-" + long + "\n+end"
	want := "+a\n+c\n+" + long[:longestLine-1] + "\nxxxxxx\n+end\n"
	for _, piece := range []int{1, 2, 3, 1000, len(text)} {
		var out bytes.Buffer
		shows := func(line []byte) bool { return bytes.HasPrefix(line, []byte("+")) }
		l := &lineWriter{mu: new(sync.Mutex), w: &out, shows: shows}
		for rest := text; rest != ""; {
			n := min(len(rest), piece)
			if _, err := io.WriteString(l, rest[:n]); err != nil {
				t.Error(err)
			}
			rest = rest[n:]
		}
		if err := l.rest(); err != nil || out.String() != want {
			t.Errorf("in pieces of %d: %d bytes, %v; want %d", piece, out.Len(), err, len(want))
		}
	}
}

// Lines of several tasks that print at once are written whole, in the order of their task, each with its name; only too
// long lines are broken.
func TestLinesOfSeveralTasks(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var out bytes.Buffer
	var mu sync.Mutex
	var all sync.WaitGroup
	names := []string{"7.0.0  ", "7.0.1  ", "7.0.2  "}
	printed := make([]string, len(names))
	for i, name := range names {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		var text strings.Builder
		for range 50 {
			text.WriteString(strings.Repeat(string(rune('a'+i)), random.IntN(200)) + "\n")
		}
		text.WriteString(strings.Repeat("x", 2*longestLine+5) + "\n" + strings.Repeat("y", longestLine) + "\n\nno end")
		printed[i] = text.String()
		all.Go(func() {
			l := &lineWriter{mu: &mu, w: &out, before: name}
			for rest := printed[i]; rest != ""; {
				n := min(len(rest), 1+random.IntN(100_000))
				if _, err := io.WriteString(l, rest[:n]); err != nil {
					t.Error(err)
				}
				rest = rest[n:]
			}
			if err := l.rest(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, name := range names {
		var got strings.Builder
		for line := range strings.Lines(out.String()) {
			if text, ok := strings.CutPrefix(line, name); ok {
				got.WriteString(text)
			}
		}
		x := strings.Repeat("x", longestLine)
		want := strings.Replace(printed[i], x+x+"xxxxx", x+"\n"+x+"\nxxxxx", 1) + "\n"
		if got.String() != want {
			t.Errorf("task %d: %d bytes came out of %d, and not the same", i, got.Len(), len(want))
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 3*(50+3+2+1) {
		t.Errorf("%d lines", n)
	}
}

// The cost per byte does not depend on the length of its line.
func BenchmarkLongLine(b *testing.B) {
	for name, length := range map[string]int{"1KiB": 1 << 10, "1MiB": 1 << 20, "128MiB": 128 << 20} {
		b.Run(name, func(b *testing.B) {
			chunk := bytes.Repeat([]byte("x"), 32<<10)
			b.SetBytes(128 << 20)
			for b.Loop() {
				l := &lineWriter{mu: new(sync.Mutex), w: io.Discard, before: "7.0.0  "}
				for at := 0; at < 128<<20; at += len(chunk) {
					for i := range chunk {
						chunk[i] = 'x'
						if (at+i+1)%length == 0 {
							chunk[i] = '\n'
						}
					}
					if _, err := l.Write(chunk); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
