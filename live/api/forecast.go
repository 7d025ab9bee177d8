package api

import "github.com/bellows-rm/bellows/core/cluster"

// Forecast is what a stage is expected to demand when, and where that is known from; or why it is not known.
type Forecast struct {
	Stage int    `json:"stage"`
	Name  string `json:"name,omitempty"`
	// DurationSeconds is the expected run time of a task; 0 is unknown.
	DurationSeconds float64            `json:"duration_s,omitempty" doc:"expected run time of a task; omitted if unknown"`
	Phases          []ForecastPhase    `json:"phases,omitempty"`
	Told            cluster.Provenance `json:"told,omitzero" doc:"where the forecast comes from; omitted if the job states it"`
	// Runs is how many runs of the application have been observed by now.
	Runs int `json:"runs" doc:"runs of the application that were measured by now"`
	// Unknown are the kinds of resources that were measured in no run, as job files name them: the phases have what the
	// stage requests of them.
	Unknown []string `json:"unknown,omitempty" doc:"resources that no run measured: the phases have what the job requests"`
	// Notes are sentences on how good the forecast is, or on why there is none.
	Notes []string `json:"notes,omitempty" doc:"sentences on how good it is, or on why there is none"`
}

// ForecastPhase is a phase with its times since the task began.
type ForecastPhase struct {
	Name          string  `json:"name,omitempty"`
	FromSeconds   float64 `json:"from_s" doc:"since the task began"`
	LengthSeconds float64 `json:"length_s" doc:"its length"`
	CPU           int64   `json:"cpu_millicores"`
	Memory        int64   `json:"memory_bytes"`
	Disk          int64   `json:"disk_bytes_per_s"`
	Network       int64   `json:"network_bytes_per_s"`
}
