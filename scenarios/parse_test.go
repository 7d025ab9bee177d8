package scenarios

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// parse reads a scenario. Errors name the file, the line, the word and the valid values.
func parse(file, text string) (*scenario, error) {
	p := parser{s: &scenario{}}
	lines := strings.SplitAfter(text, "\n")
	story := true
	for i, raw := range lines {
		line := strings.TrimSpace(raw)
		if line == "----" {
			p.s.description, p.s.expected = strings.Join(lines[:i], ""), strings.Join(lines[i+1:], "")
			if err := p.finish(); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
			}
			return p.s, nil
		}
		if rest, comment := strings.CutPrefix(line, "#"); comment {
			if story {
				p.s.story += strings.TrimSpace(rest) + "\n"
			}
			continue
		}
		story = false
		if line == "" {
			continue
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
	}
	return nil, fmt.Errorf("%s: must have a line of four dashes below the description", file)
}

type parser struct {
	s     *scenario
	keys  map[string]string // of the current line, without those already read
	err   error             // the first one of the current line
	after [][][]string      // per job and stage, the names of its parents
}

func (p *parser) fail(format string, operands ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, operands...)
	}
}

// line reads one line: a word for its kind, a name, and key=value pairs.
func (p *parser) line(line string) error {
	words := strings.Fields(line)
	kind, name := words[0], ""
	words = words[1:]
	if len(words) > 0 && !strings.Contains(words[0], "=") {
		name, words = words[0], words[1:]
	}
	p.keys, p.err = map[string]string{}, nil
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			return fmt.Errorf("%s %q: must be KEY=VALUE", kind, w)
		}
		if _, twice := p.keys[key]; twice {
			return fmt.Errorf("%s %s: is given twice", kind, key)
		}
		p.keys[key] = value
	}
	if name == "" {
		return fmt.Errorf("%s: must be followed by a name or value", kind)
	}
	switch kind {
	case "nodes":
		p.nodes(name)
	case "policy":
		p.policy(name)
	case "heartbeat":
		p.s.heartbeat = p.parseDuration(kind, name)
		p.s.starts = p.whole("starts", 1, 0, 1000)
	case "containers":
		n, err := strconv.Atoi(name)
		if err != nil || n < 1 {
			return fmt.Errorf("containers %q: must be how many a node may hold for each of its cores", name)
		}
		p.s.containers = n
	case "solver":
		n, err := strconv.Atoi(name)
		if err != nil || n < 1 {
			return fmt.Errorf("solver %q: must be how many states it looks at, at most", name)
		}
		p.s.asks, p.s.states, p.s.each = true, n, p.duration("each")
	case "lends":
		if p.s.lends = true; name != "cores" {
			p.fail("lends %q: must be cores", name)
		}
	case "out":
		if p.s.outSpeed, p.err = resource.ParseRate(name); p.err != nil {
			p.fail("out %q: %w", name, p.err)
		}
	case "coordinator":
		p.s.coordinates = p.parseDuration(kind, name)
		p.s.coordinator = resource.Of(p.amount("cores", "0", resource.ParseCPU),
			p.amount("memory", "0B", resource.ParseMemory))
	case "job":
		p.job(name)
	case "stage":
		p.stage(name)
	case "cancel":
		p.s.cancellations = append(p.s.cancellations, cancellation{p.findJob(name), p.time("at")})
	case "pause":
		p.pause(name)
	case "suspend":
		p.suspension(name)
	case "resize":
		p.resizing(name)
	case "grow":
		p.grow(name)
	case "demand":
		p.demand(name)
	case "close":
		p.grows(p.findJob(name), cluster.Growth{Closes: true})
	case "revise":
		p.s.revisions = append(p.s.revisions, revision{p.findJob(name), p.time("at"), p.duration("run")})
	case "fail":
		p.failure(name)
	case "leave":
		p.departure(name)
	case "holds":
		if strings.Contains(name, ".") {
			p.s.holdings = append(p.s.holdings,
				holding{p.findTask(name), p.time("at"), p.amount("memory", "", resource.ParseMemory)})
			break
		}
		p.s.reports = append(p.s.reports,
			report{p.findNode(name), p.time("at"), p.amount("memory", "", resource.ParseMemory)})
	case "pressed":
		p.pressure(name)
	case "still":
		p.standstill(name)
	case "enters":
		p.entry(name)
	case "show":
		if p.s.showTasks = true; name != "tasks" {
			p.fail("show %q: must be tasks", name)
		}
	default:
		return fmt.Errorf("%q: must be one of nodes, policy, heartbeat, containers, lends, solver, coordinator, job, "+
			"stage, cancel, pause, revise, grow, demand, close, fail, leave, holds, pressed, still, enters, show", kind)
	}
	for key := range p.keys {
		p.fail("%s %s: is not a key that it knows", kind, key)
	}
	return p.err
}

// text removes a value from the line.
func (p *parser) text(key, otherwise string) string {
	v, ok := p.keys[key]
	if !ok {
		return otherwise
	}
	delete(p.keys, key)
	return v
}

func (p *parser) whole(key string, otherwise, least, most int) int {
	text := p.text(key, strconv.Itoa(otherwise))
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		p.fail("%s %q: must be a whole number from %d to %d", key, text, least, most)
		return least
	}
	return n
}

func (p *parser) amount(key, otherwise string, parse func(string) (resource.Amount, error)) resource.Amount {
	a, err := parse(p.text(key, otherwise))
	if err != nil {
		p.fail("%s: %w", key, err)
	}
	return a
}

// longest keeps sums of times and of memory far from overflow.
const longest = 10000 * time.Hour

func (p *parser) parseDuration(key, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > longest {
		p.fail("%s %q: must be a positive duration such as 10s, at most %v", key, text, longest)
		return time.Second
	}
	return d
}

// duration is 0 if the key is missing.
func (p *parser) duration(key string) time.Duration {
	if text := p.text(key, ""); text != "" {
		return p.parseDuration(key, text)
	}
	return 0
}

func (p *parser) time(key string) timeline.Time {
	text := p.text(key, "0s")
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		p.fail("%s %q: must be a time since the origin such as 10s, at most %v", key, text, longest)
	}
	return timeline.Time(d)
}

// rates are the resources that a node need not have, or know.
var rates = resource.KindsWhere(resource.Kind.IsRate)

func (p *parser) nodes(count string) {
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > 1000 {
		p.fail("nodes %q: must be a whole number from 1 to 1000", count)
		return
	}
	capacity := resource.Of(p.amount("cores", "", resource.ParseCPU), p.amount("memory", "", resource.ParseMemory))
	var unknown resource.Kinds
	for _, k := range rates {
		if p.keys[k.Field()] == "unknown" {
			unknown |= resource.KindsOf(k)
			delete(p.keys, k.Field())
		} else {
			capacity[k] = p.amount(k.Field(), "0B/s", resource.ParseRate)
		}
	}
	if p.err == nil && (capacity[resource.CPU] <= 0 || capacity[resource.Memory] <= 0 ||
		capacity[resource.Memory] > resource.PB || capacity[resource.CPU] > 1e9) {
		p.fail("nodes %v: must have some CPU and memory, at most 1PB", capacity)
	}
	for range n {
		id := len(p.s.nodes)
		p.s.nodes = append(p.s.nodes, cluster.Node{ID: cluster.NodeID(id), Name: "n" + strconv.Itoa(id+1),
			Capacity: capacity, Unknown: unknown})
	}
}

func (p *parser) policy(name string) {
	c := choice{name: name, title: name, settings: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(p.keys)) {
		c.settings[name+"."+key] = p.keys[key]
		c.title += " " + key + "=" + p.keys[key]
		delete(p.keys, key)
	}
	if _, err := policy.New(name, c.settings); err != nil {
		p.fail("%w", err)
	}
	p.s.policies = append(p.s.policies, c)
}

func (p *parser) job(name string) {
	j := plannedJob{Job: cluster.Job{ID: cluster.JobID(len(p.s.jobs) + 1), Name: name, Submitted: p.time("at"),
		MaxAttempts: p.whole("attempts", 1, 1, 1000)}}
	if strings.Contains(name, ".") {
		p.fail("job %q: must have no dot in its name", name)
	}
	if p.jobIndex(name) >= 0 {
		p.fail("job %q: another job has that name", name)
	}
	if last := len(p.s.jobs) - 1; last >= 0 && j.Submitted < p.s.jobs[last].Submitted {
		p.fail("job %q at %s: must not be before the job above, %s", name, seconds(j.Submitted),
			seconds(p.s.jobs[last].Submitted))
	}
	weight := p.text("weight", "0")
	w, err := strconv.ParseFloat(weight, 64)
	if err != nil || !(w >= 0 && w <= 1e6) {
		p.fail("weight %q: must be a number from 0 to 1000000", weight)
	}
	j.Weight = w
	j.Queue, j.Owner = p.text("queue", ""), p.text("owner", "")
	j.Deadline, j.RetryDelay = p.duration("deadline"), p.duration("retry")
	if j.KeepGoing, err = strconv.ParseBool(p.text("keep-going", "false")); err != nil {
		p.fail("keep-going: must be true or false")
	}
	if j.Open, err = strconv.ParseBool(p.text("open", "false")); err != nil {
		p.fail("open: must be true or false")
	}
	if j.Drives, err = strconv.ParseBool(p.text("drives", "false")); err != nil || j.Drives && !j.Open {
		p.fail("drives: must be true or false, and false unless the job is open")
	}
	if err := j.Class.UnmarshalText([]byte(p.text("class", ""))); err != nil {
		p.fail("%w", err)
	}
	if err := j.Reserve.UnmarshalText([]byte(p.text("reserve", ""))); err != nil {
		p.fail("%w", err)
	}
	if j.Reserve == cluster.ReserveLearned {
		j.Class = cluster.Flex
	}
	p.s.jobs, p.after = append(p.s.jobs, j), append(p.after, nil)
	if len(p.keys) > 0 {
		p.stage("")
	}
}

func (p *parser) stage(name string) {
	if len(p.s.jobs) == 0 {
		p.fail("stage %q: must stand below a job", name)
		return
	}
	at := len(p.s.jobs) - 1
	j := &p.s.jobs[at]
	if strings.Contains(name, ".") || p.stageIndex(j, name) >= 0 ||
		(len(j.Stages) > 0 && (name == "" || j.Stages[0].Name == "")) {
		p.fail("stage %q: must have a name of its own without a dot", name)
	}
	var err error
	least := 1
	if j.Open {
		least = 0
	}
	s := cluster.Stage{Name: name, Tasks: p.whole("tasks", 1, least, 10000),
		Ideal:     resource.Of(p.amount("cores", "1", resource.ParseCPU), p.amount("memory", "", resource.ParseMemory)),
		MinMemory: p.amount("min", "0B", resource.ParseMemory), Duration: p.duration("run"),
		Elasticity: p.penalty(p.text("penalty", "none"))}
	for _, k := range rates {
		s.Ideal[k] = p.amount(k.Field(), "0B/s", resource.ParseRate)
	}
	s.Elasticity.DiskRate = p.amount("spill", "0B/s", resource.ParseRate)
	s.Phases = p.phases(p.text("phases", ""))
	if j.Reserve == cluster.ReserveLearned {
		learned(&s, p.whole("runs", 6, 0, 40))
	}
	s.AtOnce = p.whole("at-once", 0, 0, 10000)
	if s.Together, err = strconv.ParseBool(p.text("together", "false")); err != nil {
		p.fail("together: must be true or false")
	}
	if share := p.text("share", ""); share != "" {
		if s.StartShare, err = strconv.ParseFloat(share, 64); err != nil {
			p.fail("share %q: must be a number", share)
		}
	}
	really := p.duration("really")
	if really == 0 {
		really = s.RunTime()
	}
	if really == 0 {
		p.fail("stage %q: run, phases or really must be given", name)
	}
	if data := p.text("data", ""); data != "" {
		s.DataOn = strings.Split(data, ",")
	}
	var parents []string
	if after := p.text("after", ""); after != "" {
		parents = strings.Split(after, ",")
	}
	if _, later := p.keys["at"]; later {
		p.grows(at, cluster.Growth{Stages: []cluster.Stage{{Name: name, Tasks: s.Tasks}}})
	} else if j.first = append(j.first, s.Tasks); len(j.first) <= len(j.Stages) {
		p.fail("stage %q: must have a time at, as the stage above", name)
	}
	j.Stages, j.really, p.after[at] = append(j.Stages, s), append(j.really, really), append(p.after[at], parents)
}

// learned makes the reservation of a stage one that runs have taught, which erred by 5 %.
func learned(s *cluster.Stage, runs int) {
	s.Told = cluster.Provenance{Model: "median", Samples: runs, Error: 0.05}
	s.Reserved = &cluster.Reservation{Bytes: s.Ideal[resource.Memory], Runs: runs, Most: s.Peak()[resource.Memory],
		Told: s.Told}
}

// grow reads how many more tasks the stage JOB or JOB.STAGE gets.
func (p *parser) grow(name string) {
	name, stage, _ := strings.Cut(name, ".")
	at, more := p.findJob(name), p.whole("tasks", 1, 1, 10000)
	if at < 0 {
		return
	}
	j := &p.s.jobs[at]
	i := p.stageIndex(j, stage)
	if i < 0 {
		p.fail("stage %q: there is none above of that name", stage)
		return
	}
	p.grows(at, cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: i, Tasks: more}}})
	j.Stages[i].Tasks += more
}

// demand reads how many executors the stage JOB or JOB.STAGE could use from a time on.
func (p *parser) demand(name string) {
	name, stage, _ := strings.Cut(name, ".")
	at, tasks := p.findJob(name), p.whole("tasks", 0, 0, 10000)
	if at < 0 {
		return
	}
	j := &p.s.jobs[at]
	i := p.stageIndex(j, stage)
	if i < 0 || !j.Drives {
		p.fail("stage %q: there is none above of that name, in a job that drives", stage)
		return
	}
	p.grows(at, cluster.Growth{Demands: []cluster.Demand{{Stage: i, Tasks: tasks}}})
	j.Stages[i].Tasks = max(j.Stages[i].Tasks, tasks)
}

// grows notes how an open job grows at the time at of the line.
func (p *parser) grows(job int, by cluster.Growth) {
	at := p.time("at")
	if job < 0 {
		return
	}
	if j := &p.s.jobs[job]; !j.Open || at < j.Submitted {
		p.fail("job %q grows at %s: must be open, and submitted at %s", j.Name, seconds(at), seconds(j.Submitted))
	}
	for _, g := range p.s.growths {
		if g.job == job && (g.at > at || g.by.Closes) {
			p.fail("job %q grows at %s: must not be before the line above, %s, nor after it closes", p.s.jobs[job].Name,
				seconds(at), seconds(g.at))
		}
	}
	p.s.growths = append(p.s.growths, growing{job, at, by})
}

// phases reads a forecast: phases with a comma between them, each a duration and what the task demands for that long.
func (p *parser) phases(text string) (phases []cluster.Phase) {
	if text == "" {
		return nil
	}
	for _, word := range strings.Split(text, ",") {
		parts := strings.Split(word, ":")
		d, err := time.ParseDuration(parts[0])
		if err != nil || d < 0 || d > longest {
			p.fail("phases %q: each must begin with a duration such as 10s, at most %v", word, longest)
		}
		phase := cluster.Phase{Duration: d}
		for _, demand := range parts[1:] {
			field, amount, _ := strings.Cut(demand, "=")
			kind, parse := resource.CPU, resource.ParseCPU
			if at := slices.IndexFunc(rates, func(k resource.Kind) bool { return k.Field() == field }); at >= 0 {
				kind, parse = rates[at], resource.ParseRate
			} else if field == "memory" {
				kind, parse = resource.Memory, resource.ParseMemory
			} else if field != "cores" {
				p.fail("phases %q: must demand cores, memory or %v, such as disk=10MB/s", demand, resource.KindsOf(rates...))
				continue
			}
			a, err := parse(amount)
			if err != nil {
				p.fail("phases: %w", err)
			}
			phase.Demand[kind] = a
		}
		phases = append(phases, phase)
	}
	return phases
}

func (p *parser) penalty(text string) (e cluster.Elasticity) {
	kind, factor, _ := strings.Cut(text, ":")
	if err := e.Kind.UnmarshalText([]byte(kind)); err != nil || e.Kind == cluster.Points {
		p.fail("penalty %q: must be none, step:FACTOR, sawtooth:FACTOR or sawtooth-table:FACTOR", text)
		return cluster.Elasticity{}
	}
	if e.Kind == cluster.NotElastic && factor == "" {
		return e
	}
	f, err := strconv.ParseFloat(factor, 64)
	if err != nil || !(f >= 1 && f <= 1000) {
		p.fail("penalty %q: its factor must be a number from 1 to 1000", text)
	}
	e.Factor = f
	return e
}

func (p *parser) jobIndex(name string) int {
	return slices.IndexFunc(p.s.jobs, func(j plannedJob) bool { return j.Name == name })
}

func (p *parser) stageIndex(j *plannedJob, name string) int {
	return slices.IndexFunc(j.Stages, func(s cluster.Stage) bool { return s.Name == name })
}

func (p *parser) findJob(name string) int {
	i := p.jobIndex(name)
	if i < 0 {
		p.fail("job %q: there is none above of that name", name)
	}
	return i
}

// failure reads JOB.INDEX or JOB.STAGE.INDEX.
func (p *parser) failure(name string) {
	f := failure{after: p.duration("after"), runs: p.whole("runs", 1, 1, 1000)}
	if f.after == 0 {
		p.fail("after: must be given")
	}
	outcome := p.text("outcome", "failed")
	if err := f.outcome.UnmarshalText([]byte(outcome)); err != nil || f.outcome != cluster.Failed &&
		f.outcome != cluster.OutOfMemory {
		p.fail("outcome %q: must be failed or out-of-memory", outcome)
	}
	f.task = p.findTask(name)
	p.s.failures = append(p.s.failures, f)
}

// findTask returns the task JOB.INDEX or JOB.STAGE.INDEX.
func (p *parser) findTask(name string) (id cluster.TaskID) {
	parts := strings.Split(name, ".")
	if len(parts) == 2 {
		parts = []string{parts[0], "", parts[1]}
	}
	if len(parts) != 3 {
		p.fail("task %q: must be JOB.INDEX or JOB.STAGE.INDEX", name)
		return id
	}
	at := p.findJob(parts[0])
	if at < 0 {
		return id
	}
	stage := p.stageIndex(&p.s.jobs[at], parts[1])
	index, err := strconv.Atoi(parts[2])
	if stage < 0 || err != nil || index < 0 || index >= p.s.jobs[at].Stages[stage].Tasks {
		p.fail("task %q: there is none above of that name", name)
		return id
	}
	return cluster.TaskID{Job: cluster.JobID(at + 1), Stage: int32(stage), Index: int32(index)}
}

// pressure reads what a node gives of the rates that are pressed.
func (p *parser) pressure(name string) {
	gives := resource.Vector{}
	for _, k := range rates {
		gives[k] = p.amount(k.Field(), "0B/s", resource.ParseRate)
	}
	p.s.pressures = append(p.s.pressures, pressure{p.findNode(name), p.time("at"), gives})
}

// pause reads when a job is paused, and when it is resumed.
func (p *parser) pause(name string) {
	w := pausing{job: p.findJob(name), at: p.time("at"), until: p.time("until")}
	if speed := p.amount("out", "0B/s", resource.ParseRate); speed > 0 {
		if w.out = true; p.s.outSpeed != 0 && p.s.outSpeed != speed {
			p.fail("out: must be the same speed in every line")
		}
		p.s.outSpeed = speed
	}
	if w.until <= w.at {
		p.fail("until: must be after the time at which the job is paused")
	}
	p.s.pauses = append(p.s.pauses, w)
}

// resizing reads when the grant of a task changes, to what, and whether that fails.
func (p *parser) resizing(name string) {
	r := resizing{task: p.findTask(name), at: p.time("at"), fails: p.text("fails", "") == "true"}
	r.to = resource.Of(p.amount("cores", "0", resource.ParseCPU), p.amount("memory", "0B", resource.ParseMemory))
	p.s.resizings = append(p.s.resizings, r)
}

// suspension reads when leveling holds a task, and for which other task.
func (p *parser) suspension(name string) {
	s := suspension{task: p.findTask(name), at: p.time("at"), until: p.time("until")}
	if s.until <= s.at {
		p.fail("until: must be after the time at which the task is suspended")
	}
	if other := p.text("for", ""); other != "" {
		if s.forTask = p.findTask(other); s.forTask == s.task {
			p.fail("for %q: must be another task", other)
		}
	}
	p.s.suspensions = append(p.s.suspensions, s)
}

func (p *parser) standstill(name string) {
	h := halt{p.findTask(name), p.time("at"), p.time("until")}
	if h.until <= h.at {
		p.fail("until: must be after the time at which the task begins to stand still")
	}
	p.s.halts = append(p.s.halts, h)
}

// entry reads a phase that a task enters, the first is 1.
func (p *parser) entry(name string) {
	id, at := p.findTask(name), p.time("at")
	most := 1
	if p.err == nil {
		most = len(p.s.jobs[id.Job-1].Stages[id.Stage].Phases)
	}
	if most == 0 {
		p.fail("task %q: must have a forecast", name)
		return
	}
	p.s.entries = append(p.s.entries, entry{id, at, int32(p.whole("phase", 1, 1, most) - 1)})
}

func (p *parser) departure(name string) {
	p.s.departures = append(p.s.departures, departure{p.findNode(name), p.time("at")})
}

func (p *parser) findNode(name string) cluster.NodeID {
	i := slices.IndexFunc(p.s.nodes, func(n cluster.Node) bool { return n.Name == name })
	if i < 0 {
		p.fail("node %q: there is none above of that name", name)
	}
	return cluster.NodeID(i)
}

// finish checks what concerns several lines.
func (p *parser) finish() error {
	s := p.s
	switch {
	case len(s.nodes) == 0:
		return fmt.Errorf("nodes: there must be at least one")
	case len(s.policies) == 0:
		return fmt.Errorf("policy: there must be at least one")
	case s.coordinates > 0 && s.heartbeat == 0:
		return fmt.Errorf("coordinator: needs a heartbeat")
	case s.heartbeat > 0 && (!s.simulable() || len(s.pressures)+len(s.suspensions)+len(s.resizings) > 0):
		return fmt.Errorf("heartbeat: cannot be had together with cancel, pause, suspend, resize, fail, leave, holds, " +
			"pressed, still, enters, containers, open=true or class=flex")
	case slices.ContainsFunc(s.revisions, func(r revision) bool { return s.jobs[r.job].Open }):
		return fmt.Errorf("revise: must not be an open job")
	}
	for i := range s.jobs {
		j := &s.jobs[i]
		for k := range j.Stages {
			for _, name := range p.after[i][k] {
				parent := p.stageIndex(j, name)
				if parent < 0 {
					return fmt.Errorf("job %q stage %q after %q: there is no such stage", j.Name, j.Stages[k].Name, name)
				}
				if j.Open && parent >= k {
					return fmt.Errorf("job %q stage %q after %q: must be a stage above", j.Name, j.Stages[k].Name, name)
				}
				j.Stages[k].Parents = append(j.Stages[k].Parents, parent)
			}
		}
		if err := j.Check(); err != nil {
			return err
		}
	}
	return nil
}

func TestParseErrors(t *testing.T) {
	const node = "nodes 1 cores=1 memory=1GB\n"
	for _, c := range []struct{ text, want string }{
		{"", "x.txt: must have a line of four dashes"},
		{"----\n", "x.txt:1: nodes: there must be at least one"},
		{node + "----\n", "x.txt:2: policy: there must be at least one"},
		{"nodes\n", "x.txt:1: nodes: must be followed by a name or value"},
		{"nodes none\n", `x.txt:1: nodes "none": must be a whole number from 1 to 1000`},
		{"nodes 1 cores=1\n", `x.txt:1: memory: memory "" is empty`},
		{"nodes 1 cores=1 memory=1GB memory=2GB\n", "x.txt:1: nodes memory: is given twice"},
		{"nodes 1 cores=0 memory=1GB\n", "must have some CPU and memory"},
		{"# story\n\nnodes 1 cores=1 memory=1GB gpus=3\n", "x.txt:3: nodes gpus: is not a key that it knows"},
		{"policy best\n", `x.txt:1: policy "best": must be one of`},
		{"policy fair reservations=perhaps\n", "must be true or false"},
		{"teleport A\n", `x.txt:1: "teleport": must be one of`},
		{"job A at=-1s\n", `at "-1s": must be a time`},
		{"job A at=1s weight=NaN\n", `weight "NaN": must be a number`},
		{"job A at=1s\njob B at=0s\n", "x.txt:2: job \"B\" at 0s: must not be before the job above, 1s"},
		{"job A memory=1GB\n", "run, phases or really must be given"},
		{"job A memory=1GB run=0s\n", `run "0s": must be a positive duration`},
		{"job A memory=1GB run=1s\nstage b memory=1GB run=1s\n", "must have a name of its own"},
		{"stage b memory=1GB run=1s\n", "must stand below a job"},
		{"job A.B\n", "must have no dot"},
		{"job A memory=1GB run=1s\njob A memory=1GB run=1s\n", "another job has that name"},
		{"job A memory=1GB run=1s penalty=points:2\n", `penalty "points:2": must be none, step`},
		{"job A memory=1GB run=1s penalty=step:0.5\n", "its factor must be"},
		{"cancel A at=1s\n", `job "A": there is none above`},
		{"job A memory=1GB run=1s\nfail A.1 after=1s\n", `task "A.1": there is none above`},
		{"job A memory=1GB run=1s\nfail A.0\n", "after: must be given"},
		{"job A memory=1GB run=1s\nfail A.0 after=1s outcome=lost\n", `outcome "lost": must be failed or out-of-memory`},
		{"leave n1 at=1s\n", `node "n1": there is none above`},
		{"holds n1 memory=1GB\n", `node "n1": there is none above`},
		{node + "holds n1 at=1s\n", `memory: memory "" is empty`},
		{"pressed n1 disk=1MB/s\n", `node "n1": there is none above`},
		{node + "pressed n1 disk=slow\n", `disk: rate "slow" does not begin`},
		{"still A.0\n", `job "A": there is none above`},
		{"job A memory=1GB run=1s\nstill A.0 at=3s until=3s\n", "until: must be after"},
		{"job A memory=1GB run=1s\nsuspend A.0 at=3s until=3s\n", "until: must be after"},
		{"job A memory=1GB run=1s\nsuspend A.0 at=3s until=4s for=A.0\n", `for "A.0": must be another task`},
		{"job A memory=1GB run=1s\nsuspend A.0 at=3s until=4s for=A.1\n", `task "A.1": there is none above`},
		{"job A memory=1GB run=1s\nenters A.0 phase=1\n", `task "A.0": must have a forecast`},
		{"job A memory=1GB phases=9s\nenters A.0 phase=2\n", `phase "2": must be a whole number from 1 to 1`},
		{"job A memory=1GB phases=disk=1MB/s\n", `phases "disk=1MB/s": each must begin with a duration`},
		{"job A memory=1GB phases=10s:heat=1\n", `phases "heat=1": must demand cores, memory or disk, network`},
		{"job A memory=1GB phases=10s:disk=fast\n", `phases: rate "fast" does not begin`},
		{"job A class=free\n", `class "free": must be regular or flex`},
		{"solver none\n", `solver "none": must be how many states`},
		{"solver 9 each=1h30\n", `each "1h30": must be a positive duration`},
		{"show nothing\n", `show "nothing": must be tasks`},
		{node + "policy fifo\njob A\n----\n", `job "A" stages: must be at least one`},
		{node + "policy fifo\njob A\nstage a after=b memory=1GB run=1s\n----\n",
			`job "A" stage "a" after "b": there is no such stage`},
		{node + "policy fifo\njob A\nstage a after=a memory=1GB run=1s\n----\n", "must not form a cycle"},
		{node + "policy fifo\ncoordinator 1s\n----\n", "coordinator: needs a heartbeat"},
		{node + "policy fifo\nheartbeat 1s\nleave n1 at=1s\n----\n", "heartbeat: cannot be had together"},
		{node + "policy fifo\njob A memory\n", `x.txt:3: job "memory": must be KEY=VALUE`},
	} {
		if _, err := parse("x.txt", c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error is %v, want one with %q", c.text, err, c.want)
		}
	}
}

// FuzzParse checks that every scenario that can be parsed can be run: no text makes a driver fail.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse("x.txt", text)
		if err != nil {
			return
		}
		again, err := parse("x.txt", s.description+"----\n"+s.expected)
		if err != nil || len(again.jobs) != len(s.jobs) || again.expected != s.expected {
			t.Fatalf("reading it again: %v", err)
		}
		tasks := 0
		for _, j := range s.jobs {
			for _, stage := range j.Stages {
				tasks += stage.Tasks
			}
		}
		if tasks > 50 || len(s.nodes) > 20 || !s.live() {
			return // too long to play
		}
		if s.tooLarge(s.policies[0].make(t)) != nil {
			return
		}
		loop(t, s, s.policies[0])
	})
}
