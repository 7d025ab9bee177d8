package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// recordedFile has measurements of another machine: a part of the output of `bellows-lab demo --part elastic --json`
// there.
//
//go:embed recorded.json
var recordedFile []byte

// recording is the simulator's input about a machine.
type recording struct {
	Profiles []Profile `json:"profiles"`
	Machine  Machine   `json:"machine"`
}

func recorded() (*recording, error) {
	var r recording
	if err := json.Unmarshal(recordedFile, &r); err != nil {
		return nil, fmt.Errorf("read the recorded profiles: %w", err)
	}
	for _, p := range r.Profiles {
		if err := p.Model.Check(); err != nil {
			return nil, fmt.Errorf("recorded profile %s: %w", p.Name, err)
		}
	}
	return &r, nil
}
