package demo

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// Piece is a time in which a program used the disk and the CPU at nearly constant rates.
type Piece struct {
	Length    time.Duration   `json:"length_ns"`
	Disk      resource.Amount `json:"disk_bytes_per_s"`
	CPU       resource.Amount `json:"cpu_millicores"`
	Suspended time.Duration   `json:"still_ns,omitempty"` // the part of it in which the program was stopped
}

func (p *Piece) disk() resource.Amount { return p.Disk }
func (p *Piece) cpu() resource.Amount  { return p.CPU }

// curve is what a program used over time, from its start on.
type curve []Piece

// curveOf returns the use of a task that was measured.
func curveOf(u *api.TaskUsage) (c curve) {
	known := func(v *int64) resource.Amount {
		if v == nil {
			return 0
		}
		return resource.Amount(*v)
	}
	for i := range u.Spans {
		s := &u.Spans[i]
		seconds := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
		c = append(c, Piece{seconds(s.LengthSeconds), known(s.Read) + known(s.Written), known(s.CPU),
			seconds(s.StillSeconds)})
	}
	return c
}

func (c curve) length() (d time.Duration) {
	for i := range c {
		d += c[i].Length
	}
	return d
}

// totals returns the bytes that the disk transferred for the program, and the CPU time that it used, in seconds.
func (c curve) totals() (disk, cpu float64) {
	for i := range c {
		disk += float64(c[i].Disk) * c[i].Length.Seconds()
		cpu += float64(c[i].CPU) / float64(resource.Core) * c[i].Length.Seconds()
	}
	return disk, cpu
}

// progress returns, at the end of every piece, which share of its work the program has done: the mean of its share of
// bytes and its share of CPU time.
func (c curve) progress() []float64 {
	diskAll, cpuAll := c.totals()
	at := make([]float64, len(c))
	disk, cpu := 0.0, 0.0
	for i := range c {
		d, p := c[i : i+1].totals()
		disk, cpu = disk+d, cpu+p
		sum, of := 0.0, 0.0
		if diskAll > 0 {
			sum, of = sum+disk/diskAll, of+1
		}
		if cpuAll > 0 {
			sum, of = sum+cpu/cpuAll, of+1
		}
		if at[i] = 1; of > 0 {
			at[i] = min(1, sum/of)
		}
	}
	return at
}

// at returns the piece that holds at a time; the zero Piece before the start and after the end.
func (c curve) at(t time.Duration) (p Piece, i int) {
	if t < 0 {
		return Piece{}, -1
	}
	for i := range c {
		if t < c[i].Length {
			return c[i], i
		}
		t -= c[i].Length
	}
	return Piece{}, -1
}

// demand returns what a program would use per second if it were alone, at each second of a run that has the given
// curve: the program is where alone it had done the same share of its work. While it is stopped it demands nothing.
func (c curve) demand(alone curve, what func(*Piece) resource.Amount) (perSecond []resource.Amount) {
	done, place := c.progress(), alone.progress()
	for t := time.Duration(0); t < c.length(); t += time.Second {
		now, i := c.at(t + time.Second/2)
		if i < 0 {
			now, i = c.at(t)
		}
		before := 0.0
		if i > 0 {
			before = done[i-1]
		}
		// In the middle of the second, a part of the piece is over.
		over := t + time.Second/2 - c[:i].length()
		share := before + (done[i]-before)*min(1, over.Seconds()/now.Length.Seconds())
		k, _ := slices.BinarySearch(place, share)
		runs := 1 - now.Suspended.Seconds()/now.Length.Seconds()
		perSecond = append(perSecond, resource.Amount(runs*float64(what(&alone[min(k, len(alone)-1)]))))
	}
	return perSecond
}

// Areas are what a run left idle of the disk and what was demanded of the disk beyond its speed, over the makespan
// (Prophet, section III.A, Fig. 5), bytes.
type Areas struct {
	Idle   float64 `json:"fragmentation_bytes"`
	Beyond float64 `json:"over_allocation_bytes"`
}

// areas returns them for a disk of the given speed and a run of the given length: used is what the disk transferred,
// demanded what the running programs would have transferred if each were alone, both per second.
func areas(speed resource.Amount, length time.Duration, used, demanded []resource.Amount) (a Areas) {
	for i, u := range used {
		second := min(time.Second, length-time.Duration(i)*time.Second) // the last may be a part of one
		a.Idle += max(0, float64(speed)*second.Seconds()-float64(u))
	}
	for _, d := range demanded {
		a.Beyond += float64(max(0, d-speed))
	}
	return a
}
