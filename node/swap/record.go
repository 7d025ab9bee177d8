package swap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// readRecord reads a record of the state directory from JSON into value. found is false, and value as it was, if
// there is no such record. what names the record in errors.
func readRecord(path, what string, value any) (found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		return false, fmt.Errorf("read the %s, %s: %w", what, path, err)
	}
	return true, nil
}
