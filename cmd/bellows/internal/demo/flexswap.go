package demo

import (
	"context"
	"fmt"
	"os"

	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/swap"
)

// demoSwap is the swap that FLEX containers use: the machine's, or made for the demonstration.
type demoSwap struct {
	about  string
	ledger *swap.Ledger // nil: the machine's own
	path   string
}

// openSwap finds swap with so much room, or makes some in dir. why says in one clause why there is none.
func openSwap(dir string, size resource.Amount) (s *demoSwap, why string, err error) {
	devices, err := swap.Machine{}.Devices()
	if err != nil {
		return nil, "", err
	}
	free := resource.Amount(0)
	for i := range devices {
		free += devices[i].Free()
	}
	if free >= size {
		return &demoSwap{about: "FLEX uses the swap that the machine has"}, "", nil
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Sprintf("%s of swap are needed, of which %s are free, and only root can make more", resource.FormatMemory(size), resource.FormatMemory(free)), nil
	}
	ledger := swap.NewLedger(swap.Machine{}, dir)
	device, err := ledger.CreateFile("", size)
	if err != nil {
		return nil, fmt.Sprintf("there can be no swap: %v", err), nil
	}
	return &demoSwap{fmt.Sprintf("FLEX uses a swap file of %s, made for this", resource.FormatMemory(size)), ledger, device.Path}, "", nil
}

// close removes what was made, whatever has become of ctx.
func (s *demoSwap) close(ctx context.Context) error {
	if s.ledger == nil {
		return nil
	}
	return s.ledger.Remove(context.WithoutCancel(ctx), s.path)
}

// removeSwap removes what a demonstration in dir has made and did not remove.
func removeSwap(ctx context.Context, dir string) error {
	ledger := swap.NewLedger(swap.Machine{}, dir)
	devices, err := ledger.Devices()
	if err != nil {
		return err
	}
	for i := range devices {
		if d := &devices[i]; d.Ours {
			if err := ledger.Remove(ctx, d.Path); err != nil {
				return err
			}
		}
	}
	return nil
}
