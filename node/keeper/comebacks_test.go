package keeper

import (
	"io/fs"
	"testing"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
)

// place keeps comebacks in memory.
type place struct{ all []memory.Comeback }

func (p *place) Put(all []memory.Comeback) error { p.all = all; return nil }

func (p *place) Get() ([]memory.Comeback, error) {
	if p.all == nil {
		return nil, fs.ErrNotExist
	}
	return p.all, nil
}

// TestNewestComebacksAreKept: of two requeues, whichever is saved last, the next keeper knows both.
func TestNewestComebacksAreKept(t *testing.T) {
	b := &comebacks{place: &place{}}
	if got := b.read(); got != nil {
		t.Errorf("before the first: %v", got)
	}
	first, second := b.take(make([]memory.Comeback, 1)), b.take(make([]memory.Comeback, 2))
	second()
	first()
	if got := b.read(); len(got) != 2 {
		t.Errorf("read %v", got)
	}
}

// TestRequeuedTaskSaysWhatItWaitsFor: people see that a task was requeued, and with how much it is to come back.
func TestRequeuedTaskSaysWhatItWaitsFor(t *testing.T) {
	for want, limit := range map[string]resource.Amount{
		"memory is not available: job 3 is out of memory": 0,
		"memory is not available: it was requeued, and waits until it can have 210MiB: job 3 is out of memory": 210 *
			resource.MiB} {
		if got := refusal(&memory.Action{Kind: memory.Refuse, Limit: limit}, "job 3 is out of memory").Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
