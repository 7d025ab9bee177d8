package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// TestMain lets this test program be one that runs in a container.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "hold" {
		hold(os.Args[2])
	}
	os.Exit(m.Run())
}

// hold waits until its input ends, and then holds as many MiB as text says until it is killed.
func hold(text string) {
	var mib int
	fmt.Sscan(text, &mib)
	_, _ = io.Copy(io.Discard, os.Stdin)
	block := testswap.Memory[byte](mib << 20)
	for ; ; time.Sleep(time.Second) {
		for i := 0; i < len(block); i += 4096 {
			block[i]++
		}
	}
}

// played is a keeper that does not work by itself, and whose owner the test plays.
type played struct {
	*Keeper
	t     *testing.T
	close context.CancelFunc
	work  sync.WaitGroup

	mu         sync.Mutex
	containers map[cluster.ContainerID]*Container
}

// play returns a keeper of containers below the group all, one of which, apart, has none. Without groups, what is
// wanted of a container can be seen, and nothing happens to processes.
func play(t *testing.T, all, apart *cgroup.Group) *played {
	t.Helper()
	p := &played{t: t, containers: map[cluster.ContainerID]*Container{}}
	var closed context.Context
	closed, p.close = context.WithCancel(context.Background())
	t.Cleanup(func() {
		p.close()
		p.work.Wait()
		<-p.swap.saved
	})
	var err error
	p.Keeper, err = New(closed, p, Config{Memory: memory.Default(), Capacity: resource.GiB, All: all, Apart: apart,
		Written: filepath.Join(t.TempDir(), "written"), Disk: func() string { return "" }, Clock: calendar,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// calendar is the clock of the engine.
func calendar() timeline.Time { return timeline.Time(time.Now().UnixNano()) }

// add returns a new container.
func (p *played) add(g *cgroup.Group, e cluster.Envelope) *Container {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(len(p.containers) + 1)}, Run: 1}
	c := NewContainer(Setup{ID: id, Group: g, Envelope: e, Records: &records{}, Ending: make(chan struct{}),
		Gone: make(chan struct{})})
	p.containers[id] = c
	return c
}

func (p *played) Containers() map[cluster.ContainerID]*Container { return p.containers }

func (p *played) Report(e cluster.Event) { p.t.Logf("reported: %+v", e) }

func (p *played) Answer(id cluster.ContainerID, decision cluster.DecisionID, detail string, err error) {
	p.t.Logf("decision %d of container %s: %s %v", decision, id, detail, err)
}

func (p *played) Preempt(id cluster.ContainerID, _ string) { p.t.Errorf("container %s is to end", id) }
func (p *played) Starve(id cluster.ContainerID, _ string)  { p.t.Errorf("container %s is to end", id) }

func (p *played) Remaining() resource.Amount { return 0 }

func (p *played) Lives() {}

func (p *played) Go(work func()) { p.work.Go(work) }

// records are in memory.
type records struct {
	mu   sync.Mutex
	text string // empty if there is no record
	full bool   // nothing can be recorded
}

func (r *records) Put(record *Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return errors.New("no space left")
	}
	text, err := json.Marshal(record)
	r.text = string(text)
	return err
}

func (r *records) Get(record *Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.text == "" {
		return fs.ErrNotExist
	}
	return json.Unmarshal([]byte(r.text), record)
}

func (r *records) Remove() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = ""
	return nil
}

// ground makes a subtree of control groups, with one group of the given names each.
func ground(t testing.TB, names ...string) (root *cgroup.Root, groups []*cgroup.Group) {
	t.Helper()
	host, err := cgroup.Discover("")
	if err != nil {
		t.Skipf("needs control groups: %v", err)
	}
	root, err = host.Root(fmt.Sprintf("keeper-%d-%d", os.Getpid(), time.Now().UnixNano()), cgroup.Memory)
	if err != nil {
		t.Skipf("needs control groups of its own: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		for _, name := range names {
			if err := root.Discard(ctx, name); err != nil {
				t.Error(err)
			}
		}
		if err := root.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	for _, name := range names {
		g, err := root.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, g)
	}
	return root, groups
}

// run starts a program in a group, where its end is waited for. It does not begin its work before it is there.
func run(t testing.TB, g *cgroup.Group, args ...string) {
	t.Helper()
	p := exec.Command(args[0], args[1:]...)
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = g.Thaw(context.Background()); _ = p.Wait() })
	for _, file := range g.JoinFiles() {
		if err := os.WriteFile(file, fmt.Append(nil, p.Process.Pid), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
}

// asleep is a keeper with a container in which a program sleeps. The test is skipped where nothing can freeze it.
func asleep(t *testing.T) (*played, *Container) {
	root, groups := ground(t, "apart", "asleep")
	if _, ok := groups[1].Has(cgroup.Freezer); !ok {
		t.Skip("needs a freezer")
	}
	run(t, groups[1], os.Args[0], "hold", "1")
	p := play(t, root.Group, groups[0])
	return p, p.add(groups[1], cluster.Envelope{})
}

// comes waits for a condition.
func comes(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}
