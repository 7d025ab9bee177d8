package importer

import "github.com/bellows-rm/bellows/format/workload"

// gathering is a job whose tasks are on rows of their own, anywhere in the file.
type gathering interface {
	// task adds the task of a row. It may leave the task out.
	task(r *row)
	// job returns the job of the tasks; ok is false if there are none.
	job(n *notes) (j workload.Job, ok bool)
}

// gather reads rows of tasks, each with the name of its job in a column, and passes the jobs on in the order of their
// first rows. In a file without that column, all tasks are of one job, which has the name of the file. begin returns a
// job without tasks; empty is the note on jobs that stay without.
func gather(in *input, rows func(each func(*row) error) error, column string, begin func(name string) gathering,
	empty string, job func(workload.Job) error) error {
	type begun struct {
		gathering
		line int
	}
	known := map[string]*begun{}
	var order []*begun
	err := rows(func(r *row) error {
		name := r.namedOr(column, in.fileName())
		g := known[name]
		if g == nil {
			g = &begun{begin(name), in.line}
			known[name] = g
			order = append(order, g)
		}
		g.task(r)
		return nil
	})
	if err != nil {
		return err
	}
	for _, g := range order {
		j, ok := g.job(in.notes)
		if !ok {
			in.notes.add(empty, 1)
			continue
		}
		if err := j.Check(); err != nil {
			return in.faultAt(g.line, "%v", err)
		}
		if err := job(j); err != nil {
			return err
		}
	}
	return nil
}
