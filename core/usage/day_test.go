package usage_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/store"
)

var short = flag.Bool("short-containers", false,
	"measure the day of a busy node with containers of 10 and 30 s, for which no size is required")

// source makes the samples of a container, one a second.
type source struct {
	noise *rand.Rand
	step  func(s *source, second int)
	usage.Sample
	cpu, memory, written int64 // of a phase
}

const mib = int64(resource.MiB)

// sources are containers as the day of a busy node has them.
var sources = map[string]func(s *source, second int){
	"phases": func(s *source, second int) {
		if second%20 == 0 {
			s.cpu, s.memory, s.written = s.noise.Int64N(1000), s.noise.Int64N(1000)*mib, s.noise.Int64N(50)*mib
		}
		s.Value[usage.CPU] += max(0, s.cpu+s.noise.Int64N(80)-40)
		s.Value[usage.Memory] = s.memory + s.noise.Int64N(8)*mib
		s.Value[usage.Written] += s.written + s.noise.Int64N(4)*mib
	},
	"noise in CPU and memory": func(s *source, _ int) {
		s.Value[usage.CPU] += s.noise.Int64N(1000)
		s.Value[usage.Memory] = s.noise.Int64N(1000) * mib
	},
	"noise in all kinds": func(s *source, _ int) {
		s.Known |= usage.SetOf(usage.Received, usage.Sent)
		for _, k := range []usage.Kind{usage.Read, usage.Written, usage.Received, usage.Sent} {
			s.Value[k] += s.noise.Int64N(100 * mib)
		}
		s.Value[usage.CPU] += s.noise.Int64N(1000)
		s.Value[usage.Memory] = s.noise.Int64N(1000) * mib
	},
}

// recorded returns the file of a container that has run, written every five seconds as an agent does, and the largest
// size that the file had.
func (s *source) recorded(seconds int) (file []byte, largest int) {
	s.Sample = usage.Sample{Known: usage.SetOf(usage.CPU, usage.Memory, usage.Swap, usage.Read, usage.Written)}
	l := usage.NewLog(0, usage.ToleranceFor(resource.Of(resource.Core, resource.GiB)))
	for second := range seconds {
		s.step(s, second)
		s.At += time.Second
		l.Add(s.Sample)
		if second%5 != 4 {
			continue
		}
		text, at := l.Unwritten()
		largest = max(largest, int(at)+len(text))
		if l.Full() {
			smaller, _ := l.Thinned(file[:at], text)
			l.Replaced(smaller, text)
			file = smaller
			continue
		}
		file = append(file[:at], text...)
		l.Written()
	}
	return file, largest
}

// A day of a busy node takes less than 100 MB: 100 containers at any time, for which noise in all kinds is the worst
// case. Containers of 440 s are the worst length, because one usage fills a little more than half of a page. The
// store is a real one with some of the day's runs. The growth of its file is multiplied, as every run adds the same;
// its write-ahead log and the files of containers that run are not.
func TestDayOfABusyNode(t *testing.T) {
	const (
		containers, day = 100, 24 * 3600
		block           = 4096        // of a file system
		wal             = 1000 * 4096 // at this size SQLite moves the write-ahead log into the file
		most            = int(100e6)
	)
	lengths := []int{60, 300, 440, 600, 3600, day}
	if *short {
		lengths = []int{10, 30}
	}
	without := map[int]int{0: storeSize(t, nil, 0)} // size of a store with a number of runs that have no usage
	for name, step := range sources {
		for _, seconds := range lengths {
			s := source{noise: rand.New(rand.NewPCG(1, 2)), step: step}
			samples, running := 0, 0
			var ended []usage.Usage
			for range max(1, min(20, 12_000/seconds)) {
				file, largest := s.recorded(seconds)
				p, err := usage.Parse(file)
				if err != nil || p.Usage.Length() != time.Duration(seconds)*time.Second {
					t.Fatal(err, p.Usage.Length())
				}
				samples, running = samples+len(file), max(running, (largest+block-1)/block*block)
				ended = append(ended, p.Usage.Stored())
			}
			runs := containers * day / seconds
			some := min(runs, 400)
			if without[some] == 0 {
				without[some] = storeSize(t, nil, some)
			}
			with := storeSize(t, ended, some)
			stored, all := with-without[some], with-without[0]
			total, whole := stored*runs/some+wal+containers*running, all*runs/some+wal+containers*running
			t.Logf("%s, %d s: %.1f bytes per sample in a file of at most %d KiB; runs %d, %d bytes each in the store; "+
				"%.1f MB per day, with the runs themselves %.1f MB", name, seconds, float64(samples)/float64(len(ended)*seconds),
				running>>10, runs, stored/some, float64(total)/1e6, float64(whole)/1e6)
			if total > most && seconds >= 60 {
				t.Errorf("%s, %d s: %d bytes per day, want at most %d", name, seconds, total, most)
			}
		}
	}
}

// storeSize returns the size of the file of a store with some runs, which are tasks of one job. Their usage is taken
// from ended in turn; without ended they have none.
func storeSize(t *testing.T, ended []usage.Usage, runs int) int {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	job := store.Job{Request: store.Request{Job: cluster.Job{Name: "busy", App: "busy",
		Stages: []cluster.Stage{{Tasks: runs, Ideal: resource.Of(resource.Core, resource.GiB), Duration: time.Minute,
			Command: cluster.Command{Args: []string{"true"}}}}}, Dir: "/"}}
	id, err := s.AddJob(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	var b store.Batch
	for i := range runs {
		c := cluster.ContainerID{Task: cluster.TaskID{Job: id, Index: int32(i)}, Run: 1}
		b.Tasks = append(b.Tasks, store.Task{Container: c, Node: "node", Ended: 1})
		if len(ended) > 0 {
			b.Usage = append(b.Usage, store.Usage{Container: c, Ended: 1, Usage: ended[i%len(ended)]})
		}
	}
	// closing moves the write-ahead log into the file
	if err := errors.Join(s.Write(t.Context(), b), s.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "bellows.db"))
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}
