package swap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bellows-rm/bellows/durable"
)

// zswapBefore is the state of zswap before we turned it on.
type zswapBefore struct {
	Boot       string `json:"boot"` // a restart of the machine undoes our change
	Compressor string `json:"compressor"`
}

func (l *Ledger) zswapPath() string { return filepath.Join(l.dir, "zswap.json") }

// zswapBefore returns the state of zswap before we turned it on; ok is false if we did not.
func (l *Ledger) zswapBefore() (b zswapBefore, ok bool, err error) {
	ok, err = readRecord(l.zswapPath(), "record of zswap that was turned on", &b)
	return b, ok && b.Boot == l.machine.boot(), err
}

// Zswap returns the cache in front of swap devices; nil if this kernel has none.
func (l *Ledger) Zswap() (*Zswap, error) {
	z := l.machine.Zswap()
	if z == nil {
		return nil, nil
	}
	_, ours, err := l.zswapBefore()
	z.Ours = ours && z.Enabled
	return z, err
}

// TurnOnZswap makes the kernel keep compressible pages in memory instead of writing them to a swap file or partition,
// of which there must be one; compressor "" means the kernel's preference. It is a setting of the whole machine: zswap
// that is on already is refused.
func (l *Ledger) TurnOnZswap(compressor string) error {
	return l.locked(func() error {
		z := l.machine.Zswap()
		switch disk, err := l.swapsToDisk(); {
		case z == nil:
			return refuse("zswap: this kernel has none")
		case z.Enabled:
			return refuse("zswap: is on already")
		case err != nil:
			return err
		case !disk:
			return refuse("zswap: keeps pages on their way to a swap file or partition, and there is none: `bellows swap " +
				"create --size 4GiB` first")
		}
		text, err := json.Marshal(zswapBefore{l.machine.boot(), z.Compressor})
		if err == nil {
			err = durable.Write(l.zswapPath(), append(text, '\n'))
		}
		if err != nil {
			return fmt.Errorf("record that zswap is turned on: %w", err)
		}
		if compressor != "" {
			err = l.machine.setZswap("compressor", compressor)
		}
		if err == nil {
			err = l.machine.setZswap("enabled", "Y")
		}
		if err != nil {
			return errors.Join(err, l.restoreZswap(z.Compressor))
		}
		return nil
	})
}

// TurnOffZswap undoes TurnOnZswap. Its pages stay in zswap until they are needed or are written to disk.
func (l *Ledger) TurnOffZswap() error {
	return l.locked(func() error {
		before, ours, err := l.zswapBefore()
		if err != nil {
			return err
		}
		if !ours {
			return refuse("zswap: was not turned on by `bellows swap create --zswap`")
		}
		return l.restoreZswap(before.Compressor)
	})
}

func (l *Ledger) restoreZswap(compressor string) error {
	err := l.machine.setZswap("enabled", "N")
	if now := l.machine.Zswap(); err == nil && now != nil && now.Compressor != compressor {
		err = l.machine.setZswap("compressor", compressor)
	}
	if err != nil {
		return err
	}
	return os.Remove(l.zswapPath())
}

func (l *Ledger) swapsToDisk() (bool, error) {
	devices, err := l.machine.Devices()
	for i := range devices {
		if devices[i].On && devices[i].Kind != Zram {
			return true, err
		}
	}
	return false, err
}

func (m Machine) setZswap(name, value string) error {
	if err := os.WriteFile(m.path("sys/module/zswap/parameters/"+name), []byte(value), 0); err != nil {
		return fmt.Errorf("set %s of zswap to %s: %w", name, value, err)
	}
	return nil
}
