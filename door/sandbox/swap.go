package sandbox

import (
	"context"
	"fmt"
	"os"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/swap"
)

// OpenSwap finds swap with the given room, or makes some in dir, and returns a sentence about it. why says in one
// clause why there is none.
func OpenSwap(dir string, size resource.Amount) (about, why string, err error) {
	free, err := swapFree()
	if err != nil {
		return "", "", err
	}
	if free >= size {
		return "FLEX uses the swap that the machine has", "", nil
	}
	if os.Geteuid() != 0 {
		return "", fmt.Sprintf("%s of swap are needed, %s are free, and only root can create more",
			resource.FormatMemory(size), resource.FormatMemory(free)), nil
	}
	ledger := swap.NewLedger(swap.Machine{}, dir)
	if _, err := ledger.CreateFile("", size); err != nil {
		return "", fmt.Sprintf("swap cannot be created: %v", err), nil
	}
	return fmt.Sprintf("FLEX uses a swap file of %s, created for the demo", resource.FormatMemory(size)), "", nil
}

// swapFree returns how much room all swap of the machine has.
func swapFree() (free resource.Amount, err error) {
	devices, err := swap.Machine{}.Devices()
	for i := range devices {
		free += devices[i].Free()
	}
	return free, err
}

// removeSwap removes the swap that a demonstration has made in dir and did not remove.
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
