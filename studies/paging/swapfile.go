package paging

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/swap"
)

// SwapFile is a file that the kernel swaps to until it is closed. Close it.
type SwapFile struct{ path string }

// NewSwapFile makes a swap file of size bytes in dir and turns it on, with the highest priority. It needs root. It
// refuses if the machine already swaps elsewhere, because the measurement would then not be of this file alone.
func NewSwapFile(dir string, size resource.Amount) (*SwapFile, error) {
	others, err := swap.Machine{}.Devices()
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		return nil, fmt.Errorf("make a swap file: the machine already swaps to %s: it must be off while this is measured",
			others[0].Path)
	}
	path := filepath.Join(dir, fmt.Sprintf("bellows-swap-%d", os.Getpid()))
	if err := swap.MakeFile(path, size, swap.Highest, nil); err != nil {
		return nil, err
	}
	return &SwapFile{path}, nil
}

// Path returns the path of the file.
func (s *SwapFile) Path() string { return s.path }

// Close turns swapping to the file off and removes it.
func (s *SwapFile) Close() error {
	if err := swap.TurnOff(s.path); err != nil {
		return fmt.Errorf("stop swapping to %s (then remove it): %w", s.path, err)
	}
	if err := os.Remove(s.path); err != nil {
		return fmt.Errorf("remove the swap file: %w", err)
	}
	return nil
}
