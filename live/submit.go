package live

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/learn"
	"github.com/bellows-rm/bellows/live/store"
)

// Submission is a job with its environment and its user.
type Submission struct {
	// Job has estimates and commands. The Driver sets ID, Owner and Submitted. A stage can name a stored profile that
	// supplies fields it leaves out.
	Job cluster.Job `json:"job"`
	// Undecided says that the submitter stated neither the class of the job nor what decides how much is reserved: see
	// Config.ReservesStated.
	Undecided bool `json:"undecided,omitempty"`
	// Caller is the user that submits; tasks run with these rights.
	Caller cluster.Credentials `json:"-"`
	// Env is the environment of the submitter, "NAME=value"; Dir the working directory, an absolute path.
	Env []string `json:"env,omitempty"`
	Dir string   `json:"dir"`
	// Inherited is what programs inherit from the submitter in addition to rights; nil takes the daemon's defaults.
	Inherited *cluster.Inherited `json:"inherited,omitempty"`
	// Input says that the program reads data that is sent to it (see Driver.Input). Such a job has one task, which
	// starts once.
	Input bool `json:"input,omitempty"`
	// Key is what the client calls the request by.
	Key Key `json:"key,omitzero"`
}

// Submit checks and accepts a job; when it returns, the job is stored and survives any crash. The error is Invalid if
// the job cannot be run, OverQuota if a quota of its user or queue refuses it, and KeyReused if its key belongs to
// another request.
func (d *Driver) Submit(ctx context.Context, s Submission) (id cluster.JobID, err error) {
	defer func() { d.counts.Submission(err) }()
	key := s.Key.stored(s.Caller, d.now())
	switch earlier, err := d.repeated(ctx, key); {
	case err != nil:
		return 0, err
	case earlier != nil:
		return earlier.First, nil
	}
	if err := d.awaitInventory(ctx); err != nil {
		return 0, err
	}
	if err := d.keepPace(ctx, s.party()); err != nil {
		return 0, err
	}
	j, err := d.prepare(ctx, &s)
	if err != nil {
		return 0, err
	}
	err = d.awaitQuotas(ctx, func() (err error) {
		leave, err := d.enter(ctx)
		if err != nil {
			return err
		}
		defer leave()
		if e := d.do(ctx, func() { id, err = d.submit(ctx, j, key) }); e != nil {
			return e
		}
		return err
	})
	return id, err
}

// learnedProfile returns what the runs of an application taught, for a stage that names it as its profile.
func (d *Driver) learnedProfile(ctx context.Context, caller cluster.Credentials, app,
	stage string) (p cluster.Profile, ok bool) {
	all, err := d.Learned(ctx, caller.UID, caller.User, app)
	if err != nil {
		return p, false
	}
	return api.ProfileOf(all, stage)
}

// party returns a job with what quotas of submissions depend on.
func (s *Submission) party() *cluster.Job {
	return &cluster.Job{Name: s.Job.Name, Owner: api.OwnerOf(s.Caller).Name, Queue: s.Job.Queue}
}

// prepare makes the stored form of a submission, and checks everything that does not depend on the cluster.
func (d *Driver) prepare(ctx context.Context, s *Submission) (store.Job, error) {
	j := s.Job
	j.Stages = slices.Clone(j.Stages)
	j.Owner = api.OwnerOf(s.Caller).Name
	if !filepath.IsAbs(s.Dir) {
		return store.Job{}, api.Errorf(api.Invalid, "%w",
			&cluster.WrongField{Job: j.Name, Stage: -1, Field: "working directory",
				Value: strconv.Quote(s.Dir), Must: "must be an absolute path"})
	}
	if err := s.Inherited.Check(); err != nil {
		return store.Job{}, api.Errorf(api.Invalid, "job %q %w", j.Name, err)
	}
	if err := d.checkInput(s); err != nil {
		return store.Job{}, err
	}
	for _, text := range append([]string{s.Dir}, s.Env...) {
		if _, err := cluster.DecodeText(text); err != nil {
			return store.Job{}, api.Errorf(api.Invalid, "job %q environment and working directory: %w", j.Name, err)
		}
	}
	var filled []int // whose memory is from runs of their application
	for i := range j.Stages {
		j.Stages[i].Told, j.Stages[i].Reserved = cluster.Provenance{}, nil // what is submitted is stated
		j.Stages[i].ReservedCPU = nil
		name := j.Stages[i].Profile
		if name == "" {
			continue
		}
		j.App = cmp.Or(j.App, name)
		p, err := d.store.Profile(ctx, s.Caller.UID, s.Caller.User, name)
		if errors.Is(err, store.ErrNotFound) {
			if known, learned := d.learnedProfile(ctx, s.Caller, name, j.Stages[i].Name); learned {
				if j.Stages[i].Ideal[resource.Memory] == 0 {
					filled = append(filled, i)
				}
				known.Fill(&j.Stages[i])
				j.Stages[i].Profile = ""
				continue
			}
			return store.Job{}, api.Errorf(api.Invalid, "%w",
				&cluster.WrongField{Job: j.Name, Stage: i, StageName: j.StageName(i),
					Field: "profile", Value: strconv.Quote(name), Must: "does not exist; measure it with bellows profile"})
		}
		if err != nil {
			return store.Job{}, err
		}
		known := p.OfStage()
		known.Fill(&j.Stages[i])
		j.Stages[i].Profile = ""
	}
	j.App = cmp.Or(j.App, j.DeriveApp())
	d.decideReserve(s, &j, filled)
	learn.ShareCPU(&j)
	if err := j.CheckRuns(); err != nil {
		return store.Job{}, api.Errorf(api.Invalid, "%w", err)
	}
	times := profile.Untimed(&j)
	if j.App != "" {
		if err := d.learner.Forecast(ctx, s.Caller, &j, times); err != nil {
			return store.Job{}, err
		}
	}
	for i := range j.Stages {
		if err := cmp.Or(j.CheckCommand(i), j.CheckExec(i, s.Env, s.Inherited)); err != nil {
			return store.Job{}, api.Errorf(api.Invalid, "job %q stage %q %w", j.Name, j.StageName(i), err)
		}
		if err := d.checkAble(&j, i); err != nil {
			return store.Job{}, err
		}
	}
	return store.Job{
		Request: store.Request{Job: j, As: s.Caller, Env: s.Env, Dir: s.Dir, Inherited: s.Inherited, Input: s.Input,
			Untimed: times},
		State: store.JobState{Status: cluster.StatusPending},
	}, nil
}

// submit stores a job, with its key unless that is nil, and hands it to the engine.
func (d *Driver) submit(ctx context.Context, stored store.Job, key *store.Key) (cluster.JobID, error) {
	if err := d.acceptsJobs(); err != nil {
		return 0, err
	}
	d.boundAll(&stored.Request.Job)
	if err := policy.CheckRuns(d.config.Policy, d.engine.Snapshot(), &stored.Request.Job); err != nil {
		return 0, api.Errorf(api.Invalid, "%w", err)
	}
	if err := d.checkQuotas(&stored.Request.Job); err != nil {
		return 0, err
	}
	if err := d.gate.Check(&stored); err != nil {
		return 0, err
	}
	stored.Submitted = d.now()
	one := []store.Job{stored}
	atWork := d.watchdog.Rest()
	id, earlier, err := d.store.AddJobs(ctx, one, key)
	atWork()
	switch {
	case err != nil:
		if store.IsFull(err) {
			d.runShort()
		}
		return 0, err
	case earlier != nil: // It arrived at the same time.
		return earlier.First, repeats(key, earlier)
	case key != nil:
		d.keeping.KeyAdded()
	}
	j := &stored.Request.Job
	d.log.Info("job submitted", "job", id, "name", j.Name, "owner", j.Owner, "tasks", j.Tasks())
	d.receiveJob(id, one[0])
	return id, nil
}

// acceptsJobs returns an error if no jobs are accepted now.
func (d *Driver) acceptsJobs() error {
	if err := d.health.accepts(); err != nil {
		return err
	}
	if err := d.events.There(); err != nil {
		d.health.trouble = err
		return api.Errorf(api.Internal, "no jobs are accepted: %w", err)
	}
	return nil
}

// receiveJob hands a job to the engine that has just been stored.
func (d *Driver) receiveJob(id cluster.JobID, stored store.Job) {
	stored.ID = id
	stored.Request.Job.ID, stored.Request.Job.Submitted = id, stored.Submitted
	stored.Request.Env = nil // The store has it.
	j := newJob(stored)
	d.jobs[id] = j
	d.gate.More(&j.Job)
	d.admit(j)
}

// admit hands a job to the engine.
func (d *Driver) admit(j *job) {
	spec := j.Request.Job.Estimates() // The engine keeps it; it is never changed.
	spec.Held = j.paused(cluster.TaskID{}) != nil
	// The policy may act on the job in the step that submits it, so the job is looked up after that step.
	d.step(cluster.Event{Kind: cluster.JobSubmitted, Job: j.ID, NewJob: &spec})
	j.state, _ = d.engine.Snapshot().Job(j.ID)
	d.retellPauses(j)
	d.touch(j.ID)
	d.harvest(d.now())
}

// Cancel ends a job: its running tasks are killed, its waiting tasks never start. It returns when the request is stored
// and the kills are ordered; see Wait for the end. The error is Invalid if the job has ended.
func (d *Driver) Cancel(ctx context.Context, by cluster.Credentials, id cluster.JobID) error {
	if gaveUp, err := d.giveUp(ctx, id); gaveUp || err != nil {
		d.log.Info("job cancelled before it is known what became of its containers", "job", id, "by_uid", by.UID)
		return cmp.Or(err, d.awaitInventory(ctx))
	}
	if killed, err := d.cancelApart(ctx, by, id); killed || err != nil {
		return err
	}
	return d.change(ctx, id, deed{"ended", "its tasks are being killed and none starts again"}, func(j *job) error {
		d.log.Info("job cancelled", "job", id, "by_uid", by.UID)
		d.cancel(j)
		return nil
	})
}

// cancel ends a job that has not ended; a second call does nothing.
func (d *Driver) cancel(j *job) {
	if j.State.Cancelled {
		return
	}
	j.State.Cancelled = true
	d.out.putJob(j)
	if j.isAside() {
		j.State.Status = cluster.StatusCancelled
		d.settle(j, true, d.now())
		d.out.putJob(j)
		d.tell(j)
		return
	}
	if d.health.broken != nil {
		for _, r := range j.alive() {
			r.killing = true
			d.tell(j)
			d.out.kill(r.Container)
		}
		d.settleAlone()
		return
	}
	d.step(cluster.Event{Kind: cluster.JobCancelled, Job: j.ID})
	troubles := d.troubles()
	for _, r := range j.alive() {
		if r.preempts && troubles[r.Container] != "" { // The order before does not decide how it has ended.
			d.out.kill(r.Container)
		}
	}
}

// giveUp cancels jobs that run while the inventory is incomplete, and has their runs killed: what became of one of them
// may be what the Backend cannot find out. any is false if there is no such job.
func (d *Driver) giveUp(ctx context.Context, jobs ...cluster.JobID) (any bool, err error) {
	err = d.do(ctx, func() {
		for _, id := range jobs {
			j := d.jobs[id]
			if d.inventory.over() || j == nil || len(j.alive()) == 0 {
				continue
			}
			any = true
			for _, r := range j.alive() {
				d.out.kill(r.Container)
			}
			j.State.Cancelled = true
			d.out.putJob(j)
		}
	})
	return any, err
}
