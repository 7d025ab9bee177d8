// Package swap finds out where this machine swaps to, how much space is left there and how much was written, and makes
// swap files and zram devices on request. It knows neither jobs nor control groups.
//
// A Ledger records, in a file, what the package made, so that it is found again after a crash; a Ledger removes only
// files and devices that it has recorded and that are still the same. A Budget counts what swapping writes to disks,
// from the counters of the machine. All bytes are amounts of resource.Memory.
package swap
