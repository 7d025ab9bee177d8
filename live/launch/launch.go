// Package launch makes what runs in the container of a task: the program with its arguments, its environment, and what
// both say of the size of the container.
package launch

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/store"
)

// Bare is a Launch without its environment yet.
type Bare struct {
	*cluster.Launch
	// Reserved has clauses on the memory that is reserved for the program, and that the program sizes itself by; empty
	// unless it is learned.
	Reserved string

	own  map[string]string // the variables that it has besides those of its job
	cpu  resource.Amount   // what it may use, millicores
	what string            // the memory is that it may count on
}

// Of returns what a decision starts of a requested job, without the files of its output.
func Of(r *store.Request, id cluster.ContainerID, start *cluster.Decision) (*Bare, error) {
	j, stage := &r.Job, int(id.Task.Stage)
	s := &j.Stages[stage]
	size := start.Grant // by which the program sizes itself
	if start.ByPhase {
		size = j.LargestGrant(stage)
	}
	size[resource.Memory] = j.Told(stage, size[resource.Memory], start.Envelope.Max)
	told := start.Envelope.MostCPU
	if s.MaxCPU > 0 {
		told = statedCPU(s, told)
	}
	if s.MaxCPU == 0 || s.Told == (cluster.Provenance{}) { // What was learned of the phases is no request.
		told = max(told, size[resource.CPU])
	}
	size[resource.CPU] = told
	if own := r.Inherited; own != nil && len(own.CPUs) > 0 {
		size[resource.CPU] = min(size[resource.CPU], resource.Amount(len(own.CPUs))*resource.Core)
	}
	command, err := j.FillCommand(id.Task, size)
	if err != nil {
		return nil, err
	}
	dir := r.Dir
	if command.Dir != "" {
		dir = command.Dir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(r.Dir, dir)
		}
	}
	b := &Bare{own: withOwn(command.Env, id, size[resource.Memory]), cpu: size[resource.CPU],
		Launch: &cluster.Launch{Args: command.Args, Dir: dir, As: r.As, Inherited: r.Inherited, Input: r.Input,
			Stdin: command.Stdin, PrivateTmp: command.PrivateTmp, NoNetwork: command.NoNetwork, Timeout: command.Timeout,
			Tasks: j.Tasks()}}
	if start.Envelope.Class != cluster.Flex {
		return b, nil
	}
	b.Most, b.what = start.Envelope.Max, j.ToldWords(stage, size[resource.Memory], start.Envelope.Max)
	if j.Reserve == cluster.ReserveLearned {
		b.Most = size[resource.Memory]
		if b.Reserved = "; " + s.ReservedWords(); s.SizesItself() {
			b.Reserved += fmt.Sprintf("; {memory} is of the %s %s", resource.FormatMemory(b.Most), b.what)
		}
	}
	return b, nil
}

// Dress completes b with the environment, NAME=value, of its job. It returns a clause on the heap that the program
// gets; empty if it gets none.
func (b *Bare) Dress(env []string) (words string) {
	env = cluster.WithoutHeaps(env)
	b.Env = merge(env, cluster.WithSize(b.own, env, b.cpu))
	if b.Most > 0 {
		b.Args, b.Env, words = cluster.WithHeaps(b.Args, b.Env, b.Most, b.what)
	}
	return words
}

// withOwn adds the variables that identify a program's job, task and run, and tell it its memory.
func withOwn(env map[string]string, id cluster.ContainerID, memory resource.Amount) map[string]string {
	out := map[string]string{
		"BELLOWS_JOB":          fmt.Sprint(id.Task.Job),
		"BELLOWS_STAGE":        fmt.Sprint(id.Task.Stage),
		"BELLOWS_TASK":         fmt.Sprint(id.Task.Index),
		"BELLOWS_RUN":          fmt.Sprint(id.Run),
		"BELLOWS_MEMORY_BYTES": fmt.Sprint(int64(memory)),
	}
	maps.Copy(out, env)
	return out
}

// merge returns base with the variables of more added, or replaced.
func merge(base []string, more map[string]string) []string {
	out := make([]string, 0, len(base)+len(more))
	for _, pair := range base {
		name, _, _ := strings.Cut(pair, "=")
		if _, replaced := more[name]; !replaced {
			out = append(out, pair)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		out = append(out, name+"="+more[name])
	}
	return out
}

// statedCPU returns the CPU by which a program of a stage that shares CPU by weight sizes itself, millicores: the most
// that it may use, unless only what it requests was stated. A program of a stage that requests two cores starts two
// threads, although it may use more cores while others leave them. most is that of its envelope.
func statedCPU(s *cluster.Stage, most resource.Amount) resource.Amount {
	if s.MaxCPU == resource.MostCPU && s.ReservedCPU == nil {
		return s.Ideal[resource.CPU]
	}
	return max(most, min(s.MaxCPU, s.Ideal[resource.CPU]))
}
