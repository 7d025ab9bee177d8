package netcount

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// direction is one of the two ways of packets, and the index of its counter.
type direction uint32

const (
	received direction = iota
	sent
	numDirections
)

// directions is for loops over all directions.
const directions = numDirections

// name is what the kernel calls the program. Attach recognises programs by it: another program needs another name.
func (d direction) name() string { return [...]string{"bellows_recv1", "bellows_sent1"}[d] }

func (d direction) where() ebpf.AttachType {
	return [...]ebpf.AttachType{ebpf.AttachCGroupInetIngress, ebpf.AttachCGroupInetEgress}[d]
}

// newCounts makes the counters of one group.
func newCounts() (*ebpf.Map, error) {
	return ebpf.NewMap(&ebpf.MapSpec{Name: "bellows_net1", Type: ebpf.Array, KeySize: 4, ValueSize: 8,
		MaxEntries: uint32(numDirections)})
}

// Fields of struct __sk_buff of linux/bpf.h, which a program gets for each packet.
const (
	skbLength    = 0  // from the IP header on, bytes
	skbInterface = 40 // of the device that received or sends the packet
)

// loopback is the index of the loopback device in every network namespace.
const loopback = 1

// program adds the length of each packet to the counter of its direction, and lets the packet pass. It leaves out the
// device with the index except.
func (d direction) program(counts *ebpf.Map, except int32) *ebpf.ProgramSpec {
	return &ebpf.ProgramSpec{Name: d.name(), Type: ebpf.CGroupSKB, AttachType: d.where(), License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R6, asm.R1, skbLength, asm.Word),
			asm.LoadMem(asm.R7, asm.R1, skbInterface, asm.Word),
			asm.JEq.Imm(asm.R7, except, "pass"),
			// counts[d], which exists; the verifier requires the test.
			asm.StoreImm(asm.RFP, -4, int64(d), asm.Word),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.LoadMapPtr(asm.R1, counts.FD()),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.StoreXAdd(asm.R0, asm.R6, asm.DWord),
			asm.Mov.Imm(asm.R0, 1).WithSymbol("pass"),
			asm.Return(),
		}}
}
