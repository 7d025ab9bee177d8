package swap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Counters are the machine's counters of swap traffic since it started.
type Counters struct {
	// Boot identifies the present run of the machine, and Booted is when it started.
	Boot   string    `json:"boot"`
	Booted time.Time `json:"booted"`
	// At is when the counters were read.
	At time.Time `json:"at"`
	// Out is the bytes swapped out to all devices, without the bytes that zswap kept.
	Out resource.Amount `json:"out_bytes"`
	// Zram is the bytes of Out that went to each zram device in use as swap, and Behind is the bytes that these devices
	// wrote back to their backing disks. A device that is set up again counts from 0, under another name.
	Zram   map[string]resource.Amount `json:"zram_bytes,omitempty"`
	Behind map[string]resource.Amount `json:"behind_zram_bytes,omitempty"`
}

// Counters reads the counters.
func (m Machine) Counters() (Counters, error) {
	c := Counters{Boot: m.boot(), At: m.clock()}
	text, err := os.ReadFile(m.path("proc/vmstat"))
	if err != nil {
		return c, fmt.Errorf("read how much was swapped out: %w", err)
	}
	out, ok := parseKeyed(string(text))["pswpout"]
	if !ok {
		return c, errors.New("read how much was swapped out: /proc/vmstat has no pswpout")
	}
	c.Out = resource.Amount(out) * resource.Amount(os.Getpagesize())
	up, err := strconv.ParseFloat(firstWord(m.text("proc/uptime")), 64)
	if err != nil || up < 0 {
		return c, errors.New("read when this machine started: /proc/uptime has no number")
	}
	c.Booted = c.At.Add(-time.Duration(up * float64(time.Second)))
	devices, err := m.Devices()
	if err != nil {
		return c, err
	}
	for i := range devices {
		if d := &devices[i]; d.Kind == Zram && d.Written != nil {
			m.countZram(&c, d)
		}
	}
	return c, nil
}

func (m Machine) countZram(c *Counters, d *Device) {
	name := filepath.Base(d.Path)
	key := name + "#" + m.text("sys/block/"+name+"/diskseq")
	if c.Zram == nil {
		c.Zram, c.Behind = map[string]resource.Amount{}, map[string]resource.Amount{}
	}
	c.Zram[key] = *d.Written
	if n, ok := parseZramWriteback(m.text("sys/block/" + name + "/bd_stat")); ok {
		c.Behind[key] = n
	}
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// ToDisks is the number of bytes that swapping wrote to disks between an earlier reading, before, and c; since the
// start of the machine if it started in between, or if before is the zero value. Bytes of a zram device that is gone by
// now count as written to a disk.
func (c Counters) ToDisks(before Counters) resource.Amount {
	if before.Boot != c.Boot {
		before = Counters{}
	}
	written := max(0, c.Out-before.Out)
	for name, n := range c.Zram {
		written -= grown(n, before.Zram[name])
	}
	written = max(0, written)
	for name, n := range c.Behind {
		written += grown(n, before.Behind[name])
	}
	return written
}

// grown returns the growth of a counter that may have restarted from 0.
func grown(now, before resource.Amount) resource.Amount {
	if now < before {
		return now
	}
	return now - before
}
