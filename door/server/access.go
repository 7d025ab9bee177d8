package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// Who may do what, and sees what, is decided in this file and nowhere else. Every operation is registered with one of
// the rules below, and register applies it before the operation is called and to what it answers. What concerns a job
// cannot be registered with a rule that ignores whose job it is.
//
// A caller owns what a user of the same uid and the same name submitted: see api.Owner. Operators own everything:
// root, the daemon's user, and the members of the operator group.
//
// A caller over the network presents a token (see token.go), and has at most the rights of the token's user. The rule
// of an operation and its method say which scope the token needs. Only with the scope admin is an operator one over
// the network.

// access is a rule: who may call an operation, and what of a job the answer shows.
type access uint8

const (
	_ access = iota
	// anyone: all who can connect. The operation concerns no job, or what belongs to the caller alone.
	anyone
	// sizes: all who can connect. Of jobs of other users the answer shows what sizeOf leaves: how large they are, of which
	// class, and how far they have come.
	sizes
	// owner: the owner of the job that the path names, and operators.
	owner
	// operator: operators alone.
	operator
	// local: as anyone, but over the socket alone: no token is enough for it.
	local
	// own: as anyone, but operators may do it to what belongs to other users, too.
	own
)

// words says in the document of the API who may call an operation.
func (who access) words() string {
	return [...]string{
		anyone: "For everybody who can connect: concerns the daemon, or what belongs to the caller.",
		sizes: "For everybody who can connect: of jobs of other users only the size, the class and the progress " +
			"are shown.",
		owner:    "For the owner of the job, and operators.",
		operator: "For operators: root, the daemon's user, and the members of the operator group.",
		local:    "For everybody who can connect to the socket: concerns what belongs to the caller; operators: to any user.",
		own:      "For everybody who can connect: concerns what belongs to the caller; operators: to any user.",
	}[who]
}

// needs returns the scope that a token needs for an operation; noScope if no token is enough. What is no request to see
// something changes something, but for a plan: its job is too long for an address.
func (who access) needs(method, operation string) api.Scope {
	switch {
	case who == local:
		return api.NoScope
	case who == operator:
		return api.AdminScope
	case method == http.MethodGet, operation == "plan":
		return api.ReadScope
	}
	return api.SubmitScope
}

// tokenWords says in the document of the API which token an operation needs.
func tokenWords(s api.Scope) string {
	if s == api.NoScope {
		return " Not over the network."
	}
	return fmt.Sprintf(" Over the network, the token needs the scope %s.", s)
}

// allow returns an error unless a token of scope s is enough for an operation that needs a scope.
func allow(s, needs api.Scope, operation string) error {
	switch {
	case needs == api.NoScope:
		return api.Errorf(api.Denied, "%s: needs the unix socket of the daemon, and is not possible over the network",
			operation)
	case s < needs:
		return api.Errorf(api.Denied, "%s: needs a token of scope %s, and this one has scope %s", operation, needs, s)
	}
	return nil
}

// ofJob is a request whose path names a job, or a task of it.
type ofJob interface{ job() (cluster.JobID, error) }

// check panics unless the rule suits an operation with such requests and answers.
func (who access) check(operation string, in any, answer reflect.Type) {
	_, names := in.(ofJob)
	body, answers := answer.FieldByName("Body")
	switch {
	case who == 0:
		panic(fmt.Sprintf("server: operation %s: has no access rule", operation))
	case names && who != sizes && who != owner:
		panic(fmt.Sprintf("server: operation %s: names a job in its path, and its rule does not ask whose", operation))
	case !names && who == owner:
		panic(fmt.Sprintf("server: operation %s: is for the owner of a job, and names no job in its path", operation))
	case !answers || who == owner || who == operator:
	case who == sizes && !cuts(body.Type), who != sizes && shows(body.Type, map[reflect.Type]bool{}):
		panic(fmt.Sprintf("server: operation %s: its answer shows jobs of other users", operation))
	}
}

// cuts reports whether cut knows a type of answers. An answer that its operation writes itself is cut there.
func cuts(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[api.Job](), reflect.TypeFor[[]api.Job](), reflect.TypeFor[[]api.Task]():
		return true
	}
	return t.Kind() == reflect.Func
}

// shows reports whether values of a type have jobs or tasks in them.
func shows(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch t {
	case reflect.TypeFor[api.Job](), reflect.TypeFor[api.Stage](), reflect.TypeFor[api.Task](),
		reflect.TypeFor[api.TaskExplanation](), reflect.TypeFor[api.LogFile]():
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return shows(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if shows(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// guard knows what the rules depend on.
type guard struct {
	uid       uint32     // the daemon's user
	operators *api.Group // nil means none
	ownerOf   func(context.Context, cluster.JobID) (api.Owner, error)
}

// caller is the sender of a request.
type caller struct {
	cluster.Credentials
	operator bool
}

type callerKey struct{}

// operates reports whether a user is an operator.
func (g *guard) operates(c *cluster.Credentials) bool {
	return c.UID == 0 || c.UID == g.uid || isMember(g.operators, c)
}

// admit applies a rule to a request, and returns the context in which the operation is called. needs is the scope
// that a token must have.
func (g *guard) admit(ctx context.Context, who access, needs api.Scope, operation string, in any) (context.Context,
	error) {
	scope, byToken := scopeOf(ctx)
	if byToken {
		if err := allow(scope, needs, operation); err != nil {
			return ctx, err
		}
	}
	if who == anyone {
		return ctx, nil
	}
	from, err := peer(ctx)
	if err != nil {
		return ctx, err
	}
	c := &caller{from, g.operates(&from) && (!byToken || scope == api.AdminScope)}
	ctx = context.WithValue(ctx, callerKey{}, c)
	switch {
	case c.operator || who == sizes || who == local || who == own:
		return ctx, nil
	case who == operator:
		return ctx, api.Errorf(api.Denied, "%s: only %s may do this", operation, g.whoOperates())
	}
	id, err := in.(ofJob).job()
	if err != nil {
		return ctx, err
	}
	of, err := g.ownerOf(ctx, id)
	if err == nil && !c.owns(of) {
		err = api.Errorf(api.Denied, "job %d: belongs to %s", id, of.Name)
	}
	return ctx, err
}

func (g *guard) whoOperates() string {
	if g.operators == nil {
		return "root and the daemon's user"
	}
	return fmt.Sprintf("root, the daemon's user and members of group %s", g.operators.Name)
}

// callerOf returns the caller of an operation of any rule but anyone.
func callerOf(ctx context.Context) *caller { return ctx.Value(callerKey{}).(*caller) }

// owns reports whether everything that belongs to a user belongs to c, too.
func (c *caller) owns(what api.Owner) bool {
	return c.operator || api.OwnerOf(c.Credentials) == what
}

// cut returns the part of an answer that c may see.
func (c *caller) cut(answer any) any {
	if c.operator {
		return answer
	}
	switch a := answer.(type) {
	case api.Job:
		return c.job(a)
	case []api.Job:
		return each(a, c.job)
	case []api.Task:
		return each(a, c.task)
	}
	return answer
}

// each returns what is left of all.
func each[T any](all []T, cut func(T) T) []T {
	all = slices.Clone(all)
	for i := range all {
		all[i] = cut(all[i])
	}
	return all
}

// job returns the part of a job that c may see.
func (c *caller) job(j api.Job) api.Job {
	if c.owns(api.Owner{UID: j.UID, Name: j.Owner}) {
		return j
	}
	return sizeOf(&j)
}

// task returns the part of a task that c may see.
func (c *caller) task(t api.Task) api.Task {
	if c.owns(t.Owner) {
		return t
	}
	return sizeOfTask(&t)
}

// mayAskFor returns the user whose things, such as quotas, c wants: itself, or for an operator the one that is named,
// and all if none is.
func (c *caller) mayAskFor(user, things string) (string, error) {
	me := api.OwnerOf(c.Credentials).Name
	switch {
	case c.operator:
		return user, nil
	case user != "" && user != me:
		return "", api.Errorf(api.Denied, "user %q: only this user and operators may see these %s", user, things)
	}
	return me, nil
}

// quotas returns the quotas that c may see: its own, and those of queues, unless only jobs of other users tell that
// there is the queue.
func (c *caller) quotas(all []api.QuotaUse, queuesOf func(api.Owner) map[string]bool) []api.QuotaUse {
	if c.operator {
		return all
	}
	me := api.OwnerOf(c.Credentials)
	mine := queuesOf(me)
	return slices.DeleteFunc(all, func(q api.QuotaUse) bool {
		return q.User != "" && q.User != me.Name || q.Queue != "" && !q.Named && !mine[q.Queue]
	})
}

// quotasSet returns the quotas that c may see, as quotas does: its own, those of users that have none themselves, and
// those of queues, all of which the settings name.
func (c *caller) quotasSet(all *cluster.Quotas) *cluster.Quotas {
	if all == nil {
		return nil
	}
	own := cluster.Quotas{Users: map[string]cluster.Limits{}, Queues: all.Queues}
	for _, name := range []string{"", api.OwnerOf(c.Credentials).Name} {
		if limits, ok := all.Users[name]; ok {
			own.Users[name] = limits
		}
	}
	return &own
}

// sizeOf returns what everybody may know of a job. What is not named here is not shown: neither texts of its owner or
// its programs, nor what its programs answered.
func sizeOf(j *api.Job) api.Job {
	out := api.Job{ID: j.ID, Owner: j.Owner, UID: j.UID, Status: j.Status, Ended: j.Ended, Submitted: j.Submitted,
		Started: j.Started, Finished: j.Finished, Paused: sizeOfPause(j.Paused), TaskCount: j.TaskCount,
		SucceededCount: j.SucceededCount}
	for i := range j.Stages {
		out.Stages = append(out.Stages, sizeOfStage(&j.Stages[i]))
	}
	for i := range j.Tasks {
		out.Tasks = append(out.Tasks, sizeOfTask(&j.Tasks[i]))
	}
	for i := range j.Earlier {
		out.Earlier = append(out.Earlier, sizeOfTask(&j.Earlier[i]))
	}
	return out
}

// sizeOfStage returns what everybody may know of a stage.
func sizeOfStage(s *api.Stage) api.Stage {
	return api.Stage{
		Stage: cluster.Stage{Tasks: s.Tasks, Parents: s.Parents, Ideal: s.Ideal, MinMemory: s.MinMemory,
			MaxMemory: s.MaxMemory, Duration: s.Duration, Elasticity: s.Stage.Elasticity,
			Command: cluster.Command{Timeout: s.Timeout}},
		Class: s.Class, Pending: s.Pending, Running: s.Running, Succeeded: s.Succeeded, Failed: s.Failed,
		Elasticity: s.Elasticity, CPUMillicores: s.CPUMillicores, IdealBytes: s.IdealBytes,
		DurationSeconds: s.DurationSeconds, TimeoutSeconds: s.TimeoutSeconds}
}

// sizeOfTask returns what everybody may know of a run of a task.
func sizeOfTask(t *api.Task) api.Task {
	out := api.Task{Task: t.Task, Owner: t.Owner, Run: t.Run, State: t.State, Node: t.Node, Grant: t.Grant,
		AskedBytes: t.AskedBytes, UnderSized: t.UnderSized, Booked: t.Booked, Started: t.Started, Ended: t.Ended,
		Outcome: t.Outcome, Suspended: t.Suspended, Paused: sizeOfPause(t.Paused)}
	if u := t.Usage; u != nil {
		used := *u
		used.Why = ""
		out.Usage = &used
	}
	return out
}

// events returns the parts of the events of a book.Snapshot.Inventory that c may see. settings are those of the policy.
func (c *caller) events(all []cluster.Event, owners map[cluster.JobID]api.Owner,
	settings map[string]string) []cluster.Event {
	if c.operator {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		e := &all[i]
		if id := cmp.Or(e.Job, e.Task.Job); id == 0 || !c.owns(owners[id]) {
			*e = c.sizeOfEvent(e, owners[id].Name, settings)
		}
	}
	return all
}

// sizeOfEvent returns what c may know of an event about a job that is not its own, or about no job.
func (c *caller) sizeOfEvent(e *cluster.Event, owner string, settings map[string]string) cluster.Event {
	out := cluster.Event{Kind: e.Kind, Node: e.Node, NewNode: e.NewNode, Job: e.Job, Task: e.Task, Outcome: e.Outcome,
		Grant: e.Grant, Held: e.Held, Launched: e.Launched}
	if e.NewJob != nil {
		out.NewJob = sizeOfSpec(e.NewJob, owner, settings)
	}
	if e.Found == nil {
		return out
	}
	f := e.Condition()
	found := cluster.Condition{Quotas: c.quotasSet(f.Quotas), Bound: f.Bound, Until: f.Until, HeldBy: f.HeldBy,
		HeldUntil: f.HeldUntil, HeldFor: f.HeldFor, HeldSince: f.HeldSince, HoldFailed: f.HoldFailed, PageOut: f.PageOut,
		Out: f.Out, MostCPU: f.MostCPU, Ended: f.Ended}
	if p := f.Progress; p != nil { // without the phase, since the phases are not shown
		found.Progress = &cluster.Progress{SuspendedBy: p.SuspendedBy, SuspendedSince: p.SuspendedSince,
			SuspendedFor: p.SuspendedFor, Since: p.Since, Ends: p.Ends}
	}
	out.SetCondition(found)
	return out
}

// sizeOfSpec returns what everybody may know of a job as the engine has it. A queue is shown if the settings of the
// policy, which everybody may see, declare it.
func sizeOfSpec(j *cluster.Job, owner string, settings map[string]string) *cluster.Job {
	out := &cluster.Job{ID: j.ID, Owner: owner, Weight: j.Weight, Submitted: j.Submitted, Class: j.Class,
		MaxAttempts: j.MaxAttempts, RetryOn: j.RetryOn, RetryDelay: j.RetryDelay, AtMostOnce: j.AtMostOnce,
		Deadline: j.Deadline, Held: j.Held}
	if declares(settings, j.Queue) {
		out.Queue = j.Queue
	}
	for i := range j.Stages {
		s := sizeOfStage(&api.Stage{Stage: j.Stages[i]}).Stage
		s.Together, s.Duration = j.Stages[i].Together, j.Stages[i].RunTime()
		out.Stages = append(out.Stages, s)
	}
	return out
}

// declares reports whether a setting, such as "production=70,tests=30", has a queue of that name.
func declares(settings map[string]string, queue string) bool {
	for _, value := range settings {
		for _, item := range strings.Split(value, ",") {
			if name, _, ok := strings.Cut(strings.TrimSpace(item), "="); ok && name == queue {
				return true
			}
		}
	}
	return false
}

// sizeOfPause returns what everybody may know of a pause.
func sizeOfPause(p *api.Paused) *api.Paused {
	if p == nil {
		return nil
	}
	return &api.Paused{By: p.By, Since: p.Since}
}
