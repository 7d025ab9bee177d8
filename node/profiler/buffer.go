package profiler

import (
	"fmt"
	"regexp"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// placeholder finds {memory...} without its unit.
var placeholder = regexp.MustCompile(`\{memory([^}:]*)(:[^}]*)?\}`)

// BufferOf returns which part of its memory a command has its program fill, from the first placeholder {memory...}
// in its arguments: "-S {memory*0.8}" is a share of 0.8. overhead is the part of that buffer that the program needs for
// other purposes than data. most is the largest memory that will be granted. A command without placeholder fills all of
// its memory.
func BufferOf(c cluster.Command, overhead, most resource.Amount) (profile.Buffer, error) {
	for _, arg := range c.Args {
		found := placeholder.FindStringSubmatch(arg)
		if found == nil {
			continue
		}
		expression := "{memory" + found[1] + ":bytes}"
		high, err := fillBytes(expression, most)
		if err != nil {
			return profile.Buffer{}, err
		}
		low, err := fillBytes(expression, most/2)
		if err != nil {
			return profile.Buffer{}, err
		}
		b := profile.Buffer{Share: float64(high-low) / float64(most-most/2)}
		b.Share = float64(int64(b.Share*1e6+0.5)) / 1e6 // the placeholder rounds to whole bytes
		b.Overhead = max(0, resource.Amount(b.Share*float64(most))-high+overhead)
		if err := b.Check(); err != nil {
			return b, fmt.Errorf("placeholder %s: %w", found[0], err)
		}
		return b, nil
	}
	whole := profile.WholeMemory
	whole.Overhead = overhead
	return whole, nil
}

// fillBytes evaluates a placeholder.
func fillBytes(expression string, memory resource.Amount) (resource.Amount, error) {
	grant := resource.Of(resource.Core, memory)
	job := cluster.Job{ID: 1,
		Stages: []cluster.Stage{{Tasks: 1, Ideal: grant, Command: cluster.Command{Args: []string{expression}}}}}
	filled, err := job.FillCommand(cluster.TaskID{Job: 1}, grant)
	if err != nil {
		return 0, err
	}
	var n resource.Amount
	_, err = fmt.Sscan(filled.Args[0], &n)
	return n, err
}
