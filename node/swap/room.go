package swap

import "github.com/bellows-rm/bellows/core/resource"

// Room is how much may still be swapped out, in bytes.
type Room struct {
	Bytes resource.Amount
	// Budgeted says that the write budget reduces the room.
	Budgeted bool
}

// reserveShare is the share of swap that is left to programs outside of containers, 1 / this number.
const reserveShare = 10

// RoomOn returns the room on devices, less a reserve of a tenth of their size. Pages in zram take memory and may turn
// out not to compress, so zram counts only up to spare, the memory that no other program will want. Pages on disks are
// bounded by left if bounded is true.
func RoomOn(devices []Device, spare, left resource.Amount, bounded bool) Room {
	size, disk, zram := freeOn(devices, spare)
	reserve := size / reserveShare
	unbounded := max(0, disk+zram-reserve)
	if !bounded || disk <= left {
		return Room{Bytes: unbounded}
	}
	if DisksFirst(devices) {
		zram = 0 // it is not used before disks are full
	}
	r := Room{Bytes: min(unbounded, max(0, left)+zram)}
	r.Budgeted = r.Bytes < unbounded
	return r
}

// FreeOn returns the free space of devices, without regard to reserve and write budget; zram, which takes memory,
// counts only up to spare.
func FreeOn(devices []Device, spare resource.Amount) resource.Amount {
	_, disk, zram := freeOn(devices, spare)
	return disk + zram
}

// freeOn adds up the size of the devices that are on, and their free space.
func freeOn(devices []Device, spare resource.Amount) (size, disk, zram resource.Amount) {
	for i := range devices {
		switch d := &devices[i]; {
		case !d.On:
		case d.Kind == Zram:
			size, zram = size+d.Size, zram+d.Free()
		default:
			size, disk = size+d.Size, disk+d.Free()
		}
	}
	return size, disk, max(0, min(zram, spare))
}

// DisksFirst reports whether a disk with room is filled before some zram device, or together with it.
func DisksFirst(devices []Device) bool {
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
