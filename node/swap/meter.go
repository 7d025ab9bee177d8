package swap

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
)

// Day is the period of a write budget.
const Day = 24 * time.Hour

// Meter knows the bytes that swapping wrote to disks in the last day, as far as counters were read. Its zero value has
// read none.
type Meter struct {
	Last Counters `json:"last"`
	// Hours are sums of written bytes, oldest first; hours older than a day are dropped.
	Hours []Hour `json:"hours"`
}

// Hour is the bytes written within one hour from a given time.
type Hour struct {
	From  time.Time       `json:"from"`
	Bytes resource.Amount `json:"bytes"`
}

// Count takes a reading of the counters. Bytes written since the last reading count as written now. If the time since
// the last reading, or since the start of the machine if that is later, exceeds a day, only the share of one day
// counts, as if the bytes were written evenly.
func (m *Meter) Count(c Counters) {
	since := m.Last.At
	if m.Last.Boot != c.Boot {
		since = c.Booted
	}
	written := c.ToDisks(m.Last)
	if span := c.At.Sub(since); span > Day {
		written = resource.Amount(float64(written) * float64(Day) / float64(span))
	}
	m.Last = c
	m.forget(c.At)
	if written == 0 {
		return
	}
	if n := len(m.Hours); n > 0 && c.At.Before(m.Hours[n-1].From.Add(time.Hour)) {
		m.Hours[n-1].Bytes += written
		return
	}
	m.Hours = append(m.Hours, Hour{c.At, written})
}

// forget drops hours that ended more than a day ago. An hour that begins later than now, because the clock was set
// back, begins now.
func (m *Meter) forget(now time.Time) {
	m.Hours = slices.DeleteFunc(m.Hours, func(h Hour) bool { return !h.From.Add(time.Hour + Day).After(now) })
	for i := range m.Hours {
		if m.Hours[i].From.After(now) {
			m.Hours[i].From = now
		}
	}
}

// Spent is the bytes written in the day before now. It includes all of the hour that is only partly within the day.
func (m *Meter) Spent(now time.Time) resource.Amount {
	var sum resource.Amount
	for _, h := range m.Hours {
		if h.From.Add(time.Hour + Day).After(now) {
			sum += h.Bytes
		}
	}
	return sum
}

// Budget bounds what swapping may write to disks in a day, whichever program causes it. Its count survives the process
// in a file if Save is called from time to time; between saves only a restart of the machine loses writes, since until
// then its counters still have them. Its methods may be called from several goroutines at once.
type Budget struct {
	machine Machine
	path    string
	saving  sync.Mutex // held while the file is written, so that counting does not wait for it

	mu sync.Mutex
	budgetFile
}

// budgetFile is the stored form. PerDay is 0 if there is no bound.
type budgetFile struct {
	PerDay resource.Amount `json:"budget_bytes_per_day,omitempty"`
	Meter  Meter           `json:"meter"`
}

// BudgetPath returns the path of the count in a state directory.
func BudgetPath(state string) string { return filepath.Join(state, "swap-written.json") }

// OpenBudget continues the count in the file at path, which need not exist. perDay 0 sets no bound. If the file is
// damaged, it returns an error together with a budget that counts from the start of the machine.
func OpenBudget(m Machine, path string, perDay resource.Amount) (*Budget, error) {
	b := &Budget{machine: m, path: path}
	kept, err := readBudget(path)
	if err == nil {
		b.budgetFile = kept
	}
	b.PerDay = perDay
	return b, err
}

func readBudget(path string) (f budgetFile, err error) {
	if _, err := readRecord(path, "count of what was swapped out", &f); err != nil {
		return budgetFile{}, err
	}
	return f, nil
}

// Left reads the counters and returns the bytes that may still be written. bounded is false if there is no bound.
func (b *Budget) Left() (left resource.Amount, bounded bool, err error) {
	c, err := b.machine.Counters()
	if err != nil {
		return 0, b.PerDay > 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Meter.Count(c)
	return max(0, b.PerDay-b.Meter.Spent(c.At)), b.PerDay > 0, nil
}

// Save writes the count to its file, which can take a while.
func (b *Budget) Save() error {
	b.saving.Lock()
	defer b.saving.Unlock()
	b.mu.Lock()
	text, err := json.Marshal(b.budgetFile)
	b.mu.Unlock()
	if err == nil {
		err = durable.Write(b.path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the count of what was swapped out: %w", err)
	}
	return nil
}

// LastDay returns the bytes that swapping wrote to disks in the last day, and the bound that the daemon was given, 0 if
// none. It changes nothing.
func LastDay(m Machine, path string) (spent, perDay resource.Amount, err error) {
	f, err := readBudget(path)
	if err != nil {
		return 0, 0, err
	}
	c, err := m.Counters()
	if err != nil {
		return 0, 0, err
	}
	f.Meter.Count(c)
	return f.Meter.Spent(c.At), f.PerDay, nil
}
