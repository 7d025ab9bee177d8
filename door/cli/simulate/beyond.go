package simulate

import (
	"fmt"
	"io"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/sim/trial"
)

// beyondJSON is a stage with a phase that demands more than any node has. Such a phase takes longer than stated.
type beyondJSON struct {
	Job   int64  `json:"job" doc:"number of the job"`
	Name  string `json:"name" doc:"name of the job"`
	Stage string `json:"stage" doc:"name of the stage"`
	Phase int    `json:"phase" doc:"the first such phase, counted from 1"`
	Why   string `json:"why" doc:"what it demands, and what nodes have"`
}

func (b *beyondJSON) String() string {
	return fmt.Sprintf("job %q stage %q phase %d %s", b.Name, b.Stage, b.Phase, b.Why)
}

// beyond returns the stages of the first seed whose phases demand more than any node has of a resource that slows tasks
// down: of CPU, disk and network. On one node as large as all nodes, nothing is compared.
func (s *Study) beyond() (all []beyondJSON) {
	if !slices.ContainsFunc(s.Contenders, func(c trial.Contender) bool { return !c.Pooled }) {
		return nil
	}
	var largest resource.Vector
	for i := range s.Config.Nodes {
		largest = largest.Max(s.Config.Nodes[i].Room())
	}
	for i := range s.Workload.Jobs {
		j := &s.Workload.Jobs[i]
		for k := range j.Stages {
			for task := range j.Distinct(k) {
				if phase, why := beyond(j.Task(k, task).Phases, &largest); why != "" {
					all = append(all, beyondJSON{int64(j.ID), j.Name, j.Stages[k].Name, phase, why})
					break
				}
			}
		}
	}
	return all
}

// beyond returns the first phase that demands more than largest, counted from 1, and what it demands. Phases of
// length 0 take no time, whatever they demand.
func beyond(phases []cluster.Phase, largest *resource.Vector) (phase int, why string) {
	for i := range phases {
		for _, k := range resource.KindsWhere(resource.Kind.Contended) {
			if largest[k] == 0 || phases[i].Duration == 0 {
				continue
			}
			if why = phases[i].Beyond(k, largest[k]); why != "" {
				return i + 1, why
			}
		}
	}
	return 0, ""
}

// warn says that phases will take longer than stated.
func warn(w io.Writer, beyond []beyondJSON) {
	if len(beyond) == 0 {
		return
	}
	text := "bellows: " + beyond[0].String() + ": it takes longer than stated"
	if more := len(beyond) - 1; more > 0 {
		text += "; so do phases of " + terminal.Count(more, "more stage")
	}
	fmt.Fprintln(w, text)
}
