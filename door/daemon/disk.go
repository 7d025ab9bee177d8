package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/profiler"
)

// diskSpeed is the measured bandwidth of the disk below a state directory, in the form in which it is stored there.
type diskSpeed struct {
	Device   string          `json:"device"`
	Rate     resource.Amount `json:"bytes_per_s"`
	Measured time.Time       `json:"measured"`
}

// speedOfDisk returns the bandwidth of the disk below a state directory: the stored result of an earlier run on the
// same device, or else the result of measure, which it stores.
func speedOfDisk(state string, measure func(dir string) (resource.Amount, error)) (resource.Amount, error) {
	device, err := profiler.DeviceNumber(state)
	if err != nil {
		return 0, err
	}
	path := filepath.Join(state, "disk-speed.json")
	var kept diskSpeed
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &kept) == nil && kept.Device == device &&
		kept.Rate > 0 {
		return kept.Rate, nil
	}
	rate, err := measure(state)
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(diskSpeed{device, rate, time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		err = durable.Replace(path, append(text, '\n'))
	}
	if err != nil {
		return rate, fmt.Errorf("store the measured bandwidth of the disk: %w", err)
	}
	return rate, nil
}
