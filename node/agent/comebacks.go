package agent

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/durable"
)

// comebacks is the path of the file that keeps the tasks that were requeued for memory: see keeper.Comebacks.
type comebacks string

func (path comebacks) Put(all []memory.Comeback) error {
	text, err := json.Marshal(all)
	if err == nil {
		err = durable.Write(string(path), append(text, '\n'))
	}
	return err
}

func (path comebacks) Get() (all []memory.Comeback, err error) {
	text, err := os.ReadFile(string(path))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return all, nil
}
