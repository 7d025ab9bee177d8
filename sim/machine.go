package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Machine says how the hardware of a node, and a program's run time system, behave under too much demand. The zero
// value is ideal: contended resources are shared without loss, there is no swap, and garbage collection is free. The
// curves, their sources and pictures are in docs/truth.md.
type Machine struct {
	Disk, Network Loss
	// CPU is what over-allocated cores lose: nothing in the machines by name. SharedCoreLoss was measured.
	CPU Loss
	// Swap is how much of its containers' memory a node can keep on its swap device, bytes. Without swap, or when swap
	// is full, a working set above the grant ends in an out-of-memory kill.
	Swap resource.Amount
	// SwapSpeed is the speed at which pages of FLEX containers go to the swap device and come back, bytes per second,
	// one transfer after the other; 0: at once.
	SwapSpeed resource.Amount
	// FaultShare is the speed at which pages come back by page faults, one by one, as a share of SwapSpeed, 0 to 1; 0
	// counts as 1.
	FaultShare float64
	Paging     Paging
	Collection Collection
	// PressedBelow is a share of the speed of a node's disk or network, 0 to 1: a node that gives less while more is
	// demanded is pressed, and this is reported to policies that look ahead. 0 counts as cluster.PressedBelow, as on real
	// nodes.
	PressedBelow float64
}

// Speeds of swap devices, out and in, for large transfers, bytes per second.
const (
	HDDSwapSpeed = 110 * resource.MB // assumed: as fast as the 7200 rpm disks of Prophet section IV
	SSDSwapSpeed = 2 * resource.GB   // Pufferfish section 5.4: 1 GB is reclaimed in 0.5 s
	// MeasuredSwapSpeed is that of a swap file on the machine of MeasuredPaging: 1.4 to 1.5 GB/s out, 1.5 to 2.2 GB/s
	// back.
	MeasuredSwapSpeed = 1500 * resource.MB
)

// MeasuredFaultShare compares page faults with prefetching, for 320 MiB in a swap file (studies/measured.md).
const MeasuredFaultShare = 1 / 2.3

// Machines returns the names that MachineOf knows.
func Machines() []string { return []string{"ideal", "hdd", "ssd", "measured"} }

// MachineOf returns a machine by the kind of its disk, "hdd" or "ssd"; "measured" is ssd with the measured paging of a
// real machine, for a program that merges; "ideal" loses nothing. None of them has swap.
func MachineOf(kind string) (Machine, error) {
	m := Machine{Network: IncastLoss, FaultShare: MeasuredFaultShare, Collection: JVMCollection}
	switch kind {
	case "ideal":
		return Machine{}, nil
	case "hdd":
		m.Disk, m.SwapSpeed, m.Paging = HDDLoss, HDDSwapSpeed, slices.Clone(HDDPaging)
	case "ssd":
		m.Disk, m.SwapSpeed, m.Paging = SSDLoss, SSDSwapSpeed, slices.Clone(SSDPaging)
	case "measured":
		m.Disk, m.SwapSpeed, m.Paging = SSDLoss, MeasuredSwapSpeed, slices.Clone(MeasuredPaging)
	default:
		return Machine{}, fmt.Errorf("machine %q: must be one of %s", kind, strings.Join(Machines(), ", "))
	}
	return m, nil
}

func (m *Machine) check() error {
	if err := m.Disk.check("disk"); err != nil {
		return err
	}
	if err := m.Network.check("network"); err != nil {
		return err
	}
	if err := m.CPU.check("cpu"); err != nil {
		return err
	}
	if m.Swap < 0 {
		return fmt.Errorf("swap %d bytes: must not be negative", m.Swap)
	}
	if m.SwapSpeed < 0 {
		return fmt.Errorf("swap speed %d bytes per second: must not be negative", m.SwapSpeed)
	}
	if !(m.FaultShare >= 0 && m.FaultShare <= 1) {
		return fmt.Errorf("fault share %v: must be 0 to 1", m.FaultShare)
	}
	if !(m.PressedBelow >= 0 && m.PressedBelow <= 1) {
		return fmt.Errorf("pressed below %v: must be 0 to 1", m.PressedBelow)
	}
	if m.Swap > 0 && len(m.Paging) == 0 {
		return fmt.Errorf("paging: must have at least one point where there is swap")
	}
	if err := m.Paging.check(); err != nil {
		return err
	}
	return m.Collection.check()
}

// transferSpeed is the speed of a transfer, given its reason, bytes per second; 0: at once.
func (m *Machine) transferSpeed(why transferReason) float64 {
	if why == fault && m.FaultShare > 0 {
		return float64(m.SwapSpeed) * m.FaultShare
	}
	return float64(m.SwapSpeed)
}

// presses reports whether a node is under pressure that gives less of a resource than is demanded; speed is its
// capacity.
func (m *Machine) presses(gives, speed float64) bool {
	return gives < cmp.Or(m.PressedBelow, cluster.PressedBelow)*speed
}

// loss returns the Loss of a contended resource.
func (m *Machine) loss(k resource.Kind) Loss {
	switch k {
	case resource.Disk:
		return m.Disk
	case resource.Network:
		return m.Network
	case resource.CPU:
		return m.CPU
	}
	return Loss{}
}
