package swap

import "github.com/bellows-rm/bellows/resource"

// Room is how much may still be swapped out.
type Room struct {
	Bytes resource.Amount
	// Budgeted is true if it would be more without the write budget.
	Budgeted bool
}

// reserveShare of all swap is left to programs that nobody asked, 1 over it.
const reserveShare = 10

// RoomOn returns the room on devices, less a reserve of a tenth of their size. What zram takes comes out of memory and
// may turn out not to compress, so that it counts no further than spare, the memory that nobody else will want. What goes
// to disks is bounded by left if bounded.
func RoomOn(devices []Device, spare, left resource.Amount, bounded bool) Room {
	var size, disk, zram resource.Amount
	for i := range devices {
		d := &devices[i]
		if !d.On {
			continue
		}
		size += d.Size
		if d.Kind == Zram {
			zram += d.Free()
		} else {
			disk += d.Free()
		}
	}
	reserve := size / reserveShare
	zram = max(0, min(zram, spare))
	unbounded := max(0, disk+zram-reserve)
	if !bounded || disk <= left {
		return Room{Bytes: unbounded}
	}
	if disksFirst(devices) {
		zram = 0 // it is not reached before disks are full
	}
	r := Room{Bytes: min(unbounded, max(0, left)+zram)}
	r.Budgeted = r.Bytes < unbounded
	return r
}

// FreeOn returns what devices still take, reserve and write budget or not; zram, which takes it out of memory, no more than spare.
func FreeOn(devices []Device, spare resource.Amount) resource.Amount {
	var disk, zram resource.Amount
	for i := range devices {
		switch d := &devices[i]; {
		case !d.On:
		case d.Kind == Zram:
			zram += d.Free()
		default:
			disk += d.Free()
		}
	}
	return disk + max(0, min(zram, spare))
}

// disksFirst reports whether a disk with room is filled before, or beside, some zram device.
func disksFirst(devices []Device) bool {
	for i := range devices {
		for j := range devices {
			if devices[i].Kind != Zram && devices[i].Free() > 0 && devices[j].Kind == Zram && devices[j].Free() > 0 &&
				devices[i].Priority >= devices[j].Priority {
				return true
			}
		}
	}
	return false
}
