package memory

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Nothing is taken from others for a container that would be refused all the same, however much swap there is: it asks
// each second, and with each request what was taken would be swapped out, and lent again.
func TestNothingIsTakenForARefusal(t *testing.T) {
	const mib = resource.MiB
	started, refused := 0, 0
	for swap := resource.Amount(0); swap < 1500*mib; swap += 25 * mib {
		m, err := New(Default())
		if err != nil {
			t.Fatal(err)
		}
		// Of 500 MiB the first has some that it does not use, and the second, which waits, has a part in swap.
		limits := []resource.Amount{0, 290 * mib, 200 * mib}
		holds := []resource.Amount{0, 230 * mib, 320 * mib}
		node := NodeReading{Memory: 500 * mib, SwapFree: swap}
		in := Input{}
		for job := 1; job <= 2; job++ {
			in.Started = append(in.Started, Started{Envelope: flex(job, 64*mib, 500*mib), Limit: limits[job]})
		}
		moved, admitted, worked := 0, false, time.Duration(0)
		for now := timeline.Time(0); now < at(40) && !admitted; now = now.Add(100 * time.Millisecond) {
			worked += 50 * time.Millisecond
			free := swap
			for job := 1; job <= 2; job++ {
				r := Reading{Container: id(job), Anonymous: min(holds[job], limits[job]), Worked: time.Second}
				if r.Swap = holds[job] - r.Anonymous; job == 1 {
					r.Worked = worked
				}
				free -= r.Swap
				in.Readings = append(in.Readings, r)
			}
			if node.SwapFree = max(0, free); now > at(5) && now%at(1) == 0 {
				in.Requests = []Request{{flex(3, 64*mib, 500*mib)}}
			}
			for in.Node = &node; ; {
				actions := m.Step(now, in)
				if in = (Input{Outcomes: done(actions)}); len(actions) == 0 {
					break
				}
				for _, a := range actions {
					switch a.Kind {
					case Grow, Shrink:
						limits[a.Container.Task.Job] = a.Limit
						moved++
					case Admit:
						admitted = true
					case Refuse:
						refused++
					}
				}
			}
		}
		if admitted {
			started++
		}
		if moved > 4 {
			t.Errorf("with %d MiB of swap, limits were changed %d times, and the container started: %v", swap/mib, moved,
				admitted)
		}
	}
	if started == 0 || refused == 0 {
		t.Errorf("%d of the containers started, and %d requests were refused: want some of each", started, refused)
	}
}
