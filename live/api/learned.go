package api

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Peak is the most memory that a run like the latest is expected to use, in bytes; 0 is unknown.
func (l *Learned) Peak() (most int64) {
	for i := range l.Variants {
		if v := &l.Variants[i]; !slices.Contains(v.Unknown, resource.Memory.Field()) {
			most = max(most, PeakOf(v.Phases))
		}
	}
	return most
}

// Learned is what the runs of one stage of an application taught.
type Learned struct {
	Stage string    `json:"stage,omitempty"` // empty for an application of one stage
	Runs  int       `json:"runs"`            // that were observed
	Last  time.Time `json:"last"`            // when the latest of them ended
	// InputBytes, CPUMillicores and MemoryBytes are those of the latest run, and the variants are estimates for a run
	// with the same values. 0 is unknown.
	InputBytes    int64 `json:"input_bytes,omitempty"`
	CPUMillicores int64 `json:"cpu_millicores,omitempty"`
	MemoryBytes   int64 `json:"memory_bytes,omitempty"`
	// Variants are the ways in which runs went, the likeliest first.
	Variants []LearnedVariant `json:"variants"`
	Notes    []string         `json:"notes,omitempty"`
	// Doubtful are the latest kept runs that were not measured completely or are not sound, the latest first;
	// DoubtfulRuns is the number of all of them.
	Doubtful     []DoubtfulRun `json:"doubtful,omitempty"`
	DoubtfulRuns int           `json:"doubtful_runs,omitempty"`
}

// DoubtfulRun is a run that taught, although it was not measured completely or is not sound.
type DoubtfulRun struct {
	Ended time.Time `json:"ended"`
	Notes []string  `json:"notes"` // a sentence each
}

// LearnedVariant is one way in which runs go.
type LearnedVariant struct {
	Share           float64            `json:"share"`
	Runs            int                `json:"runs"`
	Why             string             `json:"why,omitempty"` // how it differs from the likeliest
	DurationSeconds float64            `json:"duration_s"`
	Phases          []ForecastPhase    `json:"phases,omitempty"`
	Told            cluster.Provenance `json:"told"`
	// Unknown are the kinds of resources that were measured in no run.
	Unknown []string `json:"unknown,omitempty"`
}

// ProfileOf returns what a stage that names an application as its profile takes from what its runs taught: memory for
// their peak, 0 if that is unknown, and their run time. ok is false if no run of the stage taught.
func ProfileOf(all []Learned, stage string) (p cluster.Profile, ok bool) {
	at := slices.IndexFunc(all, func(l Learned) bool { return l.Stage == "" || l.Stage == stage })
	if at < 0 || len(all[at].Variants) == 0 {
		return p, false
	}
	l := &all[at]
	p.Ideal = resource.Amount(WithRoom(l.Peak()))
	p.Duration = time.Duration(l.Variants[0].DurationSeconds * float64(time.Second))
	return p, true
}

// PeakOf returns the most memory of phases, in bytes.
func PeakOf(phases []ForecastPhase) (most int64) {
	for i := range phases {
		most = max(most, phases[i].Memory)
	}
	return most
}

// WithRoom returns an eighth more than a peak, in whole MiB: no two runs use the same.
func WithRoom(peak int64) int64 {
	return (peak + peak/8 + int64(resource.MiB) - 1) / int64(resource.MiB) * int64(resource.MiB)
}

// Imported is what was learned of an application from runs that another system recorded.
type Imported struct {
	Name string `json:"name"`
	// Runs were added to the history of the application; each is of one of its stages. Known were in it already.
	Runs  int `json:"runs"`
	Known int `json:"known"`
}
