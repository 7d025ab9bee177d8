package profiler

import (
	"fmt"
	"regexp"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/profile"
	"github.com/bellows-rm/bellows/resource"
)

// placeholder finds {memory...} without its unit.
var placeholder = regexp.MustCompile(`\{memory([^}:]*)(:[^}]*)?\}`)

// BufferOf returns how much of its memory a command tells its program to fill, from the first placeholder {memory...} in
// its arguments: "-S {memory*0.8}" is a share of 0.8. Overhead is what the program needs of that beside its data. most is
// the largest memory that will be granted. A program that is not told fills what it gets.
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
		b.Share = float64(int64(b.Share*1e6+0.5)) / 1e6 // whole bytes were rounded
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
	job := cluster.Job{ID: 1, Stages: []cluster.Stage{{Tasks: 1, Ideal: grant, Command: cluster.Command{Args: []string{expression}}}}}
	filled, err := job.FillCommand(cluster.TaskID{Job: 1}, grant)
	if err != nil {
		return 0, err
	}
	var n resource.Amount
	_, err = fmt.Sscan(filled.Args[0], &n)
	return n, err
}
