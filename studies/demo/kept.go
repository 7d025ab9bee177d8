package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// kept is the content of a file in which results are kept.
type kept interface {
	of() string // what was run: results of anything else are not used
}

// readKept reads a file of results that were had with the given programs. found is false if there is no file.
func readKept(path, programs string, into kept) (found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read what was run: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("file %s: holds no run: %w", path, err)
	}
	if into.of() != programs {
		return false, fmt.Errorf("file %s: was run with %q: must be %q; name another directory, or remove it", path,
			into.of(), programs)
	}
	return true, nil
}

func writeKept(path string, content kept) error {
	text, err := json.Marshal(content)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o777)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o666)
	}
	if err != nil {
		return fmt.Errorf("keep what was run: %w", err)
	}
	return nil
}
