package doctor

import (
	"fmt"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/node/swap"
)

func (f *Facts) swap() Finding { return f.Swap.judge(f.Available) }

// judge is the finding where that much memory is available to programs.
func (f *Swap) judge(available resource.Amount) Finding {
	if f.SwapErr != nil {
		return problem(f.SwapErr.Error(), "mount /proc, or start the daemon outside of this container")
	}
	if len(f.Devices) == 0 {
		return warning("none: where FLEX containers lack memory, the youngest are requeued instead of swapped out",
			"run `bellows swap create --size 4GiB`")
	}
	said := f.words()
	room := swap.RoomOn(f.Devices, available, 0, false)
	switch {
	case room.Bytes == 0:
		return warning(said+
			": there is no room beyond the tenth that is reserved for other programs, so no container is swapped out",
			"run `bellows swap create --size 4GiB`, or end programs that are swapped out")
	case f.PerDay > 0 && f.Spent >= f.PerDay:
		return warning(fmt.Sprintf(
			"%s: swapping has written %s to disks in the last 24 hours, which spends the budget of %s, so no container "+
				"is swapped out", said, resource.FormatMemory(f.Spent), resource.FormatMemory(f.PerDay)),
			"wait, or start the daemon with a larger --swap-budget")
	case swap.DisksFirst(f.Devices):
		return warning(said+": a disk is filled before zram, which is faster and does not wear out",
			"run `swapoff` and then `swapon -p` for the devices, with a higher priority for zram")
	}
	return fine("%s", said)
}

// words lists the devices.
func (f *Swap) words() string {
	var all []string
	var free resource.Amount
	for i := range f.Devices {
		d := &f.Devices[i]
		free += d.Free()
		all = append(all, fmt.Sprintf("%s (%s, %s, priority %d)", d.Path, d.Kind, resource.FormatMemory(d.Size), d.Priority))
	}
	const most = 3
	if more := len(all) - most; more > 0 {
		all = append(all[:most], terminal.Count(more, "more device"))
	}
	said := fmt.Sprintf("%s free on %s", resource.FormatMemory(free), strings.Join(all, ", "))
	if f.Zswap != nil && f.Zswap.Enabled {
		said += fmt.Sprintf("; zswap is on (%s)", f.Zswap.Compressor)
	}
	return said
}
