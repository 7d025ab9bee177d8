package swap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Kind is the kind of a swap device.
type Kind string

// The kinds of swap.
const (
	File      Kind = "file"
	Partition Kind = "partition" // any block device but zram
	Zram      Kind = "zram"      // compressed, in memory
)

// Device is a swap device of this machine, or one that was made for it.
type Device struct {
	Path string          `json:"device" doc:"its path"`
	Kind Kind            `json:"kind" doc:"file, partition (any block device) or zram"`
	Size resource.Amount `json:"size_bytes" doc:"while the device is on, without the page of its header"`
	Used resource.Amount `json:"used_bytes" doc:"use of it"`
	// Priority orders devices: the highest is filled first.
	Priority int `json:"priority" doc:"the device with the highest is filled first"`
	// On says that the kernel swaps to it.
	On bool `json:"on" doc:"the kernel swaps to it"`
	// Ours says that it is recorded in the ledger and still the same.
	Ours bool `json:"ours" doc:"swap create made it, with this state directory"`
	// Written is the bytes that swapping wrote to it: to a partition or zram device since the machine started or the
	// device was set up; to a file of ours since it was made, if no other file could have taken them. Nil if unknown.
	Written *resource.Amount `json:"written_bytes,omitempty" doc:"what swapping wrote to it since the machine started or the device was made; omitted for files and partitions that bellows did not make, and for its own file while another disk is swapped to"`
	// Compressed is nil for kinds other than zram.
	Compressed *Compressed `json:"zram,omitempty" doc:"content of a zram device; omitted for other kinds"`
}

// Free is the free space of d, bytes; for zram, filling it takes memory.
func (d *Device) Free() resource.Amount {
	if !d.On {
		return 0
	}
	return d.Size - d.Used
}

// Compressed is the content of a zram device.
type Compressed struct {
	Algorithm string          `json:"algorithm" doc:"how pages are compressed"`
	Stored    resource.Amount `json:"stored_bytes" doc:"its pages before compression"`
	Memory    resource.Amount `json:"memory_bytes" doc:"memory that the compressed pages take"`
}

// Zswap is the compressed cache in front of swap devices: its pages are not written to a device until it is full.
type Zswap struct {
	Enabled    bool   `json:"enabled" doc:"whether it is on"`
	Compressor string `json:"compressor" doc:"how pages are compressed"`
	// Ours says that we turned it on; only a Ledger knows this.
	Ours bool `json:"ours" doc:"bellows turned it on"`
	// Stored is the bytes that it keeps, before compression, and Memory the bytes used for them; nil if the kernel does
	// not report them.
	Stored *resource.Amount `json:"stored_bytes,omitempty" doc:"its pages before compression; omitted if the kernel does not report them"`
	Memory *resource.Amount `json:"memory_bytes,omitempty" doc:"memory that the compressed pages take; omitted if the kernel does not report it"`
}

// Machine is the machine whose swap is examined; the zero value is this machine.
type Machine struct {
	// Root is the directory in which its proc and sys are mounted.
	Root string
	// now is the clock; nil is time.Now.
	now func() time.Time
}

func (m Machine) path(name string) string { return filepath.Join("/", m.Root, name) }

// text returns the trimmed content of a file, empty if it cannot be read.
func (m Machine) text(name string) string {
	text, err := os.ReadFile(m.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Missing says in one clause that the machine has no swap device, and what helps; it is empty if the machine has one.
func (m Machine) Missing() string {
	switch devices, err := m.Devices(); {
	case err != nil:
		return fmt.Sprintf("whether this machine has any is unknown: %v", err)
	case len(devices) == 0:
		return "this machine has none: run `bellows swap create --size 4GiB`"
	}
	return ""
}

// Devices returns all swap devices of the machine, in the kernel's order. A kernel without swap has none.
func (m Machine) Devices() ([]Device, error) {
	text, err := os.ReadFile(m.path("proc/swaps"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the swap devices of this machine: %w", err)
	}
	all := parseSwaps(string(text))
	for i := range all {
		m.describe(&all[i])
	}
	return all, nil
}

// describe adds what the device itself reports.
func (m Machine) describe(d *Device) {
	if d.Kind == File {
		return
	}
	name := filepath.Base(d.Path)
	if n, ok := parseSectorsWritten(m.text("sys/class/block/" + name + "/stat")); ok {
		d.Written = &n
	}
	if d.Kind == Zram {
		d.Compressed = m.compressed(name)
	}
}

func (m Machine) compressed(name string) *Compressed {
	var c Compressed
	c.Algorithm, _ = parseAlgorithms(m.text("sys/block/" + name + "/comp_algorithm"))
	c.Stored, c.Memory, _ = parseZramMemory(m.text("sys/block/" + name + "/mm_stat"))
	return &c
}

// Zswap returns the cache in front of swap devices; nil if this kernel has none.
func (m Machine) Zswap() *Zswap {
	enabled := m.text("sys/module/zswap/parameters/enabled")
	if enabled == "" {
		return nil
	}
	z := Zswap{Enabled: enabled == "Y" || enabled == "1", Compressor: m.text("sys/module/zswap/parameters/compressor")}
	info := parseKeyed(m.text("proc/meminfo"))
	if stored, ok := info["Zswapped:"]; ok {
		z.Stored = amount(stored)
	}
	if memory, ok := info["Zswap:"]; ok {
		z.Memory = amount(memory)
	}
	return &z
}

func amount(n int64) *resource.Amount {
	a := resource.Amount(n)
	return &a
}

// Memory is the memory of a machine, bytes.
type Memory struct {
	// Total is without HugePages: what is reserved as huge pages, of all sizes, serves only programs that ask for them,
	// and is charged to no group.
	Total, HugePages resource.Amount
	// Available is what programs could still have of Total; page cache is a part of it.
	Available resource.Amount
}

// Memory returns the memory of the machine.
func (m Machine) Memory() (Memory, error) {
	text, err := os.ReadFile(m.path("proc/meminfo"))
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of this machine: %w", err)
	}
	info := parseKeyed(string(text))
	total, huge := resource.Amount(info["MemTotal:"]), resource.Amount(info["Hugetlb:"])
	if total <= huge {
		return Memory{}, errors.New("read the memory of this machine: /proc/meminfo has no MemTotal, or only huge pages")
	}
	return Memory{Total: total - huge, HugePages: huge, Available: resource.Amount(info["MemAvailable:"])}, nil
}

// Total is the size of the swap that the kernel swaps to, bytes; ok is false if that is unknown. Of a device that is
// being turned off, it has what is not back in memory.
func (m Machine) Total() (bytes resource.Amount, ok bool) {
	total, ok := parseKeyed(m.text("proc/meminfo"))["SwapTotal:"]
	return resource.Amount(total), ok
}

// boot identifies the run of the kernel: it changes with a restart.
func (m Machine) boot() string { return m.text("proc/sys/kernel/random/boot_id") }

func (m Machine) clock() time.Time {
	if m.now != nil {
		return m.now()
	}
	return time.Now()
}
