package api

import (
	"encoding/json"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Measured is what measurements of a command at several sizes have shown.
type Measured struct {
	// IdealMemory is the least memory, in bytes, at which the command runs at full speed; MinMemory is the least memory
	// at which a run succeeded.
	IdealMemory resource.Amount `json:"ideal_memory_bytes" doc:"the least memory with which the command runs at full speed"`
	MinMemory   resource.Amount `json:"min_memory_bytes" doc:"the least memory with which a run succeeded"`
	// Duration is the run time at ideal memory.
	Duration time.Duration `json:"duration_ns" doc:"run time with the ideal memory"`
	// Elasticity is the cost of less memory.
	Elasticity cluster.Elasticity `json:"elasticity" doc:"cost of less memory"`
	// Args is the command that was measured, with its placeholders.
	Args []string `json:"args,omitempty" doc:"the measured command, with its placeholders"`
	// Evidence is optional material of the measurement, such as samples and errors.
	Evidence json.RawMessage `json:"evidence,omitempty" doc:"material of the measurement, such as samples and errors"`
}

// OfStage returns what p says of a stage that runs the command.
func (p *Measured) OfStage() cluster.Profile {
	return cluster.Profile{Ideal: p.IdealMemory, MinMemory: p.MinMemory, Duration: p.Duration, Elasticity: p.Elasticity}
}

// NamedProfile is a stored profile with its name.
type NamedProfile struct {
	Name string    `json:"name" doc:"name of the profile"`
	Made time.Time `json:"made" doc:"when it was measured"`
	Measured
}

// Application is everything that is stored about an application of the caller.
type Application struct {
	Name     string        `json:"name" doc:"name of the application"`
	Measured *NamedProfile `json:"measured,omitempty" doc:"what less memory costs, as bellows profile measured it"`
	Learned  []Learned     `json:"learned,omitempty" doc:"what its runs taught, by stage"`
	Trouble  string        `json:"trouble,omitempty" doc:"why what was measured, or what its runs taught, cannot be read"`
}

// RecordedRuns are runs of applications that another system recorded.
type RecordedRuns struct {
	History json.RawMessage `json:"history" doc:"a history, as package profile writes it, with its version; the owners in it do not count"`
}

// ImportedRuns is what was learned from RecordedRuns.
type ImportedRuns struct {
	Apps  []Imported `json:"apps" doc:"what was learned, by application"`
	Notes []string   `json:"notes,omitempty" doc:"what was not sound and was left out, in a sentence each"`
}
