package live

import (
	"slices"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// able is what the Backend can do, and the answers to orders that it cannot carry out.
type able struct {
	cluster.Capabilities
	answers []cluster.Event // to be received like those of the Backend; only the loop uses them
}

// Capabilities returns what the Backend can do.
func (d *Driver) Capabilities() cluster.Capabilities { return d.backend.Capabilities() }

// possible returns the orders that the Backend can carry out, and answers the others. It changes the list.
func (a *able) possible(orders []cluster.Order) []cluster.Order {
	return slices.DeleteFunc(orders, func(o cluster.Order) bool {
		if a.Lacks(&o.Decision) == "" {
			return false
		}
		a.answers = append(a.answers, a.Answer(&o))
		return true
	})
}

// answered returns the answers to be received, and forgets them.
func (a *able) answered() (all []cluster.Event) {
	all, a.answers = a.answers, nil
	return all
}

// apply sends orders to the Backend, but for those that it cannot carry out.
func (d *Driver) apply(orders []cluster.Order) {
	if orders = d.able.possible(orders); len(orders) > 0 {
		d.backend.Apply(orders)
	}
}

// receiveAnswers receives the answers to orders that the Backend cannot carry out.
func (d *Driver) receiveAnswers() {
	for _, e := range d.able.answered() {
		d.receive(e)
	}
}

// checkAble returns an error if a stage asks for what the Backend cannot do.
func (d *Driver) checkAble(j *cluster.Job, stage int) error {
	s := &j.Stages[stage]
	for _, asked := range []struct {
		so                bool
		field, value, why string
	}{
		{s.PrivateTmp, "private_tmp", "true", d.able.PrivateTmp},
		{s.NoNetwork, "no_network", "true", d.able.NoNetwork},
		{s.Stdin != "", "stdin", strconv.Quote(s.Stdin), d.able.Files},
	} {
		if asked.so && asked.why != "" {
			return api.Errorf(api.Invalid, "%w", &cluster.WrongField{Job: j.Name, Stage: stage, StageName: j.StageName(stage),
				Field: asked.field, Value: asked.value, Must: asked.why})
		}
	}
	return nil
}
