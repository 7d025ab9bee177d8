package sim

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/resource"
)

// Machine is what the hardware of a node, and a program's run time system, make of too much demand. The zero value is
// ideal: what is demanded too much is shared without loss, there is no swap, and collecting garbage is free. The curves,
// their sources and pictures are in docs/truth.md.
type Machine struct {
	Disk, Network Loss
	// Swap is how much of its containers' memory a node can hold on its swap device, bytes. Without, or when it is full, a
	// working set above the grant is an out-of-memory kill.
	Swap       resource.Amount
	Paging     Paging
	Collection Collection
}

// machines are the kinds of nodes that can be had by name.
var machines = map[string]Machine{
	"ideal":    {},
	"hdd":      {Disk: HDDLoss, Network: IncastLoss, Paging: HDDPaging, Collection: JVMCollection},
	"ssd":      {Disk: SSDLoss, Network: IncastLoss, Paging: SSDPaging, Collection: JVMCollection},
	"measured": {Disk: SSDLoss, Network: IncastLoss, Paging: must(MeasuredPaging("merge")), Collection: JVMCollection},
}

func must(p Paging, err error) Paging {
	if err != nil {
		panic("sim: " + err.Error()) // a test reads it
	}
	return p
}

// Machines returns the names that MachineOf knows.
func Machines() []string { return []string{"ideal", "hdd", "ssd", "measured"} }

// MachineOf returns a machine by the kind of its disk, "hdd" or "ssd"; "measured" is ssd with the paging that was measured
// on a real machine for a program that merges; "ideal" loses nothing. All are without swap.
func MachineOf(kind string) (Machine, error) {
	m, known := machines[kind]
	if !known {
		return Machine{}, fmt.Errorf("machine %q: must be one of %v", kind, Machines())
	}
	m.Paging = slices.Clone(m.Paging)
	return m, nil
}

func (m *Machine) check() error {
	if err := m.Disk.check("disk"); err != nil {
		return err
	}
	if err := m.Network.check("network"); err != nil {
		return err
	}
	if m.Swap < 0 {
		return fmt.Errorf("swap %d bytes: must not be negative", m.Swap)
	}
	if m.Swap > 0 && len(m.Paging) == 0 {
		return fmt.Errorf("paging: must have at least one point where there is swap")
	}
	if err := m.Paging.check(); err != nil {
		return err
	}
	return m.Collection.check()
}

// loss returns what is lost of a contended resource.
func (m *Machine) loss(k resource.Kind) Loss {
	switch k {
	case resource.Disk:
		return m.Disk
	case resource.Network:
		return m.Network
	}
	return Loss{}
}
