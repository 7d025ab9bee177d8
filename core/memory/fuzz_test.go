package memory

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// FuzzManager feeds a manager the input of a broken driver. The first byte chooses the manager; then each step takes
// one byte for the kind of input and some bytes for its operands; times are in steps of 50 ms and sizes in 1/16 MiB.
// The manager must not panic, must not give more memory than the node has, must not touch a REGULAR container, and must
// request its next step for a time after now.
func FuzzManager(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3, 10, 1, 2, 40, 3, 1, 255, 9, 4, 1, 4, 2, 5, 1, 6, 200, 7, 3})
	f.Add([]byte{5, 0, 1, 16, 200, 0, 2, 16, 200, 3, 1, 16, 100, 3, 2, 16, 100, 4, 1, 3, 1, 16, 120, 6, 10, 4, 9, 4, 9,
		1, 3, 90})
	f.Add([]byte{4, 0, 1, 16, 16, 3, 1, 30, 30, 4, 40, 1, 7, 200, 5, 1, 2, 7, 1, 250, 4, 200, 3, 7, 1, 1})
	all := kinds()
	managers := []Parameters{Paper(), all["default"], all["sjf"], all["kill"], all["ejf"], all["default, shortest first"]}
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b)
		}
		size := func() resource.Amount { return resource.Amount(next()) << 16 }
		m, err := New(managers[next()%len(managers)])
		if err != nil {
			t.Fatal(err)
		}
		now, asked := timeline.Time(0), ActionID(0)
		node := NodeReading{Memory: 16 << 20, SwapFree: 8 << 20}
		for step := 0; len(data) > 0 && step < 500; step++ {
			var in Input
			id := cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(1 + step%7)}, Run: 1}
			envelope := func() Envelope {
				id.Task.Job = cluster.JobID(1 + next()%7)
				e := Envelope{Container: id, Envelope: cluster.Envelope{Class: cluster.Flex, Min: size(), Rank: int(id.Task.Job)}}
				e.Max = e.Min + size()
				e.Requeue, e.Need = e.Rank%2 > 0, e.Min/2
				switch {
				case e.Rank <= 2:
					e.Class, e.Max = cluster.Regular, e.Min
				case next()%2 > 0:
					e.Duration, e.HeartbeatTimeout = time.Second, time.Second
				}
				return e
			}
			switch what := next() % 9; what {
			case 0, 1:
				in.Requests = append(in.Requests, Request{envelope()})
			case 2:
				in.Started = append(in.Started, Started{Envelope: envelope(), Limit: size(), Suspended: next()%2 > 0})
			case 3:
				id.Task.Job = cluster.JobID(1 + next()%7)
				r := Reading{Container: id, Anonymous: size(), Swap: size(), SwapTraffic: int64(step), Pressed: next()%2 > 0}
				in.Readings = append(in.Readings, r)
			case 4:
				o := Outcome{Action: max(0, asked-ActionID(next()%8)), Limit: size(), Failed: next()%3 == 0}
				in.Outcomes = append(in.Outcomes, o)
			case 5:
				id.Task.Job = cluster.JobID(1 + next()%7)
				in.Ended = append(in.Ended, id)
			case 6:
				node = NodeReading{Memory: size(), SwapFree: size()}
				node.SwapFull = node.SwapFree < 2<<20
				in.Node = &node
			case 7:
				in.Changed = append(in.Changed, envelope())
			case 8:
				now = now.Add(time.Duration(next()) * time.Duration(next()) * 50 * time.Millisecond)
			}
			if step == 0 {
				in.Node = &node
			}
			now = now.Add(50 * time.Millisecond)
			actions := m.Step(now, in)
			if err := audit(m, actions); err != nil {
				t.Fatal(err)
			}
			for _, a := range actions {
				asked = a.ID
				if gives := a.Kind == Grow || a.Kind == Admit; gives && m.Allocated() > node.Memory {
					t.Fatalf("%v of %d: containers may hold %d of %d", a.Kind, a.Limit, m.Allocated(), node.Memory)
				}
				if a.Kind != Admit && a.Kind != Refuse && a.Container.Task.Job <= 2 {
					t.Fatalf("%v of a REGULAR container", a.Kind)
				}
				if a.Reason.Words() == "" {
					t.Fatalf("%v without a reason", a.Kind)
				}
			}
			if next := m.Next(); next <= now {
				t.Fatalf("the next step is to be at %d, and it is %d", next, now)
			}
		}
	})
}
