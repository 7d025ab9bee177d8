// Package swap finds out where this machine swaps to, how much room is left there and how much was written, and makes swap
// files and zram devices on request. It knows neither jobs nor control groups.
//
// What it made is recorded in a Ledger, a file, so that it is found again after a crash; a Ledger removes only what
// stands in it and is still the same file or device. A Budget counts what swapping writes to disks, from the counters of
// the machine. Bytes are of resource.Memory throughout.
package swap
