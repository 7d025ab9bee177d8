package swap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// zramPriority puts zram before disks: it is faster and does not wear out.
const zramPriority = 100

// mostZram is the largest size of zram, in multiples of memory: data seldom compress to less than a half.
const mostZram = 2

// zramID distinguishes a zram device from other devices that had or will have its name.
type zramID struct {
	Boot     string `json:"boot"`
	Sequence string `json:"diskseq"` // counts devices since the machine started; empty on kernels before 5.15
}

func (m Machine) identifyZram(number int) zramID {
	return zramID{m.boot(), m.text(fmt.Sprintf("sys/block/zram%d/diskseq", number))}
}

// addZram adds a device that is not set up yet. It never takes an existing device.
func addZram() (number int, err error) {
	text, err := os.ReadFile("/sys/class/zram-control/hot_add") // reading the file adds a device
	if errors.Is(err, fs.ErrNotExist) {
		return 0, refuse("zram: this kernel has none, or its module is not loaded: try `modprobe zram num_devices=0`")
	}
	if err != nil {
		return 0, fmt.Errorf("add a zram device: %w", err)
	}
	if number, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return 0, fmt.Errorf("add a zram device: the kernel answers %q: %w", text, err)
	}
	return number, nil
}

// setUpZram sets the compression of a new device, "" meaning the kernel's preference, and its size, in whole pages, and
// swaps to it.
func setUpZram(number int, size resource.Amount, algorithm string) error {
	path := fmt.Sprintf("/dev/zram%d", number)
	if algorithm != "" {
		_, known := parseAlgorithms(Machine{}.text(fmt.Sprintf("sys/block/zram%d/comp_algorithm", number)))
		if !slices.Contains(known, algorithm) {
			return refuse("algorithm %q: this kernel's zram knows %s", algorithm, strings.Join(known, ", "))
		}
		if err := setZram(number, "comp_algorithm", algorithm); err != nil {
			return err
		}
	}
	if err := setZram(number, "disksize", strconv.FormatInt(int64(size), 10)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open zram device: %w", err)
	}
	_, err = f.WriteAt(header(os.Getpagesize(), size), 0)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("prepare %s: %w", path, err)
	}
	if err := swapOn(path, zramPriority); err != nil {
		return fmt.Errorf("swap to %s: %w", path, err)
	}
	return nil
}

func setZram(number int, name, value string) error {
	path := fmt.Sprintf("/sys/block/zram%d/%s", number, name)
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("set %s of zram%d to %s: %w", name, number, value, err)
	}
	return nil
}

// removeZram removes a device that is not in use as swap.
func removeZram(number int) error {
	if err := setZram(number, "reset", "1"); err != nil {
		return err
	}
	if err := os.WriteFile("/sys/class/zram-control/hot_remove", []byte(strconv.Itoa(number)), 0); err != nil {
		return fmt.Errorf("remove zram%d: %w", number, err)
	}
	return nil
}
