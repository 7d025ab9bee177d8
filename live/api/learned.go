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
	Stage string    `json:"stage,omitempty" doc:"name of the stage; omitted if there is one"`
	Runs  int       `json:"runs" doc:"runs that taught"`
	Last  time.Time `json:"last" doc:"when the latest of them ended"`
	// InputBytes, CPUMillicores and MemoryBytes are those of the latest run, and the variants are estimates for a run
	// with the same values. 0 is unknown.
	InputBytes    int64 `json:"input_bytes,omitempty" doc:"input of the latest run; omitted if unknown"`
	CPUMillicores int64 `json:"cpu_millicores,omitempty" doc:"CPU of the latest run"`
	MemoryBytes   int64 `json:"memory_bytes,omitempty" doc:"memory of the latest run"`
	// Variants are the ways in which runs went, the likeliest first.
	Variants []LearnedVariant `json:"variants" doc:"ways in which runs went, the likeliest first, estimated for a run like the latest"`
	Notes    []string         `json:"notes,omitempty" doc:"sentences on how good the estimates are"`
	// Doubtful are the latest kept runs that were not measured completely or are not sound, the latest first;
	// DoubtfulRuns is the number of all of them.
	Doubtful     []DoubtfulRun `json:"doubtful,omitempty" doc:"the latest kept runs that were not measured completely or are not sound, the latest first"`
	DoubtfulRuns int           `json:"doubtful_runs,omitempty" doc:"number of all of them"`
}

// DoubtfulRun is a run that taught, although it was not measured completely or is not sound.
type DoubtfulRun struct {
	Ended time.Time `json:"ended" doc:"when it ended"`
	Notes []string  `json:"notes" doc:"what is doubtful, in a sentence each"`
}

// LearnedVariant is one way in which runs go.
type LearnedVariant struct {
	Share           float64            `json:"share" doc:"share of the runs that went this way, recent ones weigh more"`
	Runs            int                `json:"runs" doc:"their number"`
	Why             string             `json:"why,omitempty" doc:"how they differ from the likeliest"`
	DurationSeconds float64            `json:"duration_s" doc:"expected run time"`
	Phases          []ForecastPhase    `json:"phases,omitempty" doc:"what it demands when"`
	Told            cluster.Provenance `json:"told" doc:"where that is known from"`
	// Unknown are the kinds of resources that were measured in no run.
	Unknown []string `json:"unknown,omitempty" doc:"resources that no run measured"`
}

// ProfileOf returns what a stage that names an application as its profile takes from what its runs taught: memory for
// their peak, 0 if that is unknown, and their run time. ok is false if no run of the stage taught.
func ProfileOf(all []Learned, stage string) (p cluster.Profile, ok bool) {
	at := slices.IndexFunc(all, func(l Learned) bool { return l.Stage == "" || l.Stage == stage })
	if at < 0 || len(all[at].Variants) == 0 {
		return p, false
	}
	l := &all[at]
	p.Ideal = resource.Amount(withRoom(l.Peak()))
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

// withRoom returns an eighth more than a peak, in whole MiB: no two runs use the same.
func withRoom(peak int64) int64 {
	return (peak + peak/8 + int64(resource.MiB) - 1) / int64(resource.MiB) * int64(resource.MiB)
}

// Imported is what was learned of an application from runs that another system recorded.
type Imported struct {
	Name string `json:"name" doc:"name of the application"`
	// Runs were added to the history of the application; each is of one of its stages. Known were in it already.
	Runs  int `json:"runs" doc:"runs of its stages that were added"`
	Known int `json:"known" doc:"runs that had been known"`
}
