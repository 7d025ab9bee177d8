package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/input"
)

// sum prints the checksum of what it reads.
func sum() {
	h := sha256.New()
	if _, err := io.Copy(h, os.Stdin); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%x\n", h.Sum(nil))
	os.Exit(0)
}

// noise writes the given number of random bytes, and counts and sums them up.
type noise struct {
	random *rand.ChaCha8
	left   int64
	given  atomic.Int64
}

func (n *noise) Read(p []byte) (int, error) {
	if n.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), n.left)]
	_, _ = n.random.Read(p)
	n.left -= int64(len(p))
	n.given.Add(int64(len(p)))
	return len(p), nil
}

func newNoise(bytes int64) *noise { return &noise{random: rand.NewChaCha8([32]byte{7}), left: bytes} }

// TestInput sends bytes to a program that is frozen and to one whose agent ends, and counts what comes.
func TestInput(t *testing.T) {
	b := newBench(t)
	const size = 8 << 20
	o := b.order(os.Args[0], "sum")
	o.Launch.Input = true
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	from := newNoise(size)
	source := input.NewSource(from)
	defer source.Stop()
	group := b.container(o.Container).group
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := group.Freeze(ctx); errors.Is(err, cgroup.ErrUnsupported) {
		t.Skipf("needs control groups that can be frozen: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	c := b.connect(o.Container)
	go func() { sent <- source.Send(c) }()
	// It takes what fits into pipes and sockets, and then no more.
	for last := int64(-1); last != from.given.Load(); time.Sleep(time.Second / 4) {
		last = from.given.Load()
	}
	if given := from.given.Load(); given == size {
		t.Errorf("a program that stands still was sent %d bytes, and nothing held them back", given)
	}
	// The connection breaks, as it does when an agent ends, and the next agent's goes on.
	c.Close()
	if err := <-sent; err == nil || input.Foreign(err) {
		t.Errorf("a connection that broke: %v", err)
	}
	b.reopen()
	if err := b.container(o.Container).group.Thaw(ctx); err != nil {
		t.Fatal(err)
	}
	if err := source.Send(b.connect(o.Container)); err != nil {
		t.Error(err)
	}
	b.next(cluster.TaskEnded)
	sum := sha256.New()
	_, _ = io.Copy(sum, newNoise(size))
	if got, want := read(t, o.Launch.Stdout), fmt.Sprintf("%x\n", sum.Sum(nil)); got != want {
		t.Errorf("of %d bytes there came others: %s, want %s", size, got, want)
	}
}

// TestInputOfFile gives a program a file to read, with the rights of its user.
func TestInputOfFile(t *testing.T) {
	b := newBench(t)
	o := b.order("cat")
	if err := os.WriteFile(b.dir+"/in", []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Launch.Stdin = "in"
	if e := b.run(o); e.Outcome != cluster.Succeeded || read(t, o.Launch.Stdout) != "hello\n" {
		t.Errorf("cat of a file: %+v %q", e, read(t, o.Launch.Stdout))
	}
	o = b.order("cat")
	o.Launch.Stdin = "missing"
	if e := b.run(o); e.Outcome != cluster.Failed || !strings.Contains(e.Detail, `input file "missing": no such file`) {
		t.Errorf("cat of a missing file: %+v", e)
	}
}

// A named pipe that no program writes to is an empty input: it stops neither the start of a program nor the end of
// its job.
func TestPipeWithoutWriterAsInput(t *testing.T) {
	b := newBench(t)
	if err := unix.Mkfifo(b.dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	o := b.order("cat")
	o.Launch.Stdin = "pipe"
	if e := b.run(o); e.Outcome != cluster.Succeeded {
		t.Errorf("cat of a pipe without a writer: %+v", e)
	}
}

func (b *bench) connect(id cluster.ContainerID) io.ReadWriteCloser {
	b.t.Helper()
	c, err := b.Input(id)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}
