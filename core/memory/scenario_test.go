package memory

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

var rewrite = flag.Bool("rewrite", false,
	"write the actions that were taken into the scenarios; commit a change only if you understand it")

// TestScenarios runs every file of testdata on the model of a node: a comment that tells the story, a description, a
// line of four dashes, and the manager's actions with their reasons. The description has one item per line:
//
//	node memory=120GiB swap=500GiB speed=2GiB/s look=1s   speed of the swap device, in and out together; how often
//	                                                      containers are read
//	manager paper stop=0.8                             paper, default, ejf, ejf+s, sjf or kill, with settings; may be
//	                                                   repeated: run under each
//	flex A min=4GiB max=64GiB work=100s sets=4GiB,60GiB,60GiB   working set at equal steps of its work, interpolated
//	                                                            between them
//	flex B at=10s duration=60s heartbeat=10s pass=500ms after=A ...   duration: the job's estimate; pass: the work in
//	                                                                  which it
//	                                                   touches all of its set once; after: no progress before A has ended
//	flex A2 job=A ...                                  another container of A's job
//	flex B lock=A from=2s until=5s ...                 after 2s of its work it makes no progress until A has done 5s of
//	                                                   work
//	flex B reads=A from=2s holds=100ms ...             after 2s of its work and of A's it reads what A writes into a pipe
//	flex S sleeps=20s from=3s ...                      sleeps for 20s after 3s of its work
//	flex L locked=all ...                              nothing of it can be swapped
//	flex Q requeue=yes need=8GiB ...                   it may be requeued; what it is known to need
//	flex O owner=ann quota=8GiB ...                    whose it is, and the quota of its owner
//	regular R at=20s memory=30GiB work=10s duration=10s
//	memory 100GiB at=50s                                memory for the node's containers from then on
//	swap 0GiB at=50s                                   the swap space from then on
//	budget 1GiB at=50s                                  the swap space that may still be used
//	collect A 20GiB at=40s                              A frees memory down to this amount, suspended or not
//	fail shrink A limit=50GiB times=2                   the kernel fails the given number of them, or stops at the limit
//	lose suspend A                                     the kernel carries it out, and the answer is lost
//	restart at=60s                                     a new manager takes over the containers
//	until 100s                                         the end, unless all programs have ended before
//
// Jobs are ranked in their order here. The reasons show which containers ran out of memory.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatalf("only %d scenarios were found: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			description, want, ok := strings.Cut(string(text), "----\n")
			if !ok || !strings.HasPrefix(description, "# ") {
				t.Fatalf("%s: must begin with a comment that tells its story and have a line of four dashes below the "+
					"description", file)
			}
			got, err := playScenario(t, description)
			if err != nil {
				t.Fatalf("%s:%v", file, err)
			}
			if got == want {
				return
			}
			if !*rewrite {
				t.Fatalf("the manager does\n%s\nwant\n%s", got, want)
			}
			if err := os.WriteFile(file, []byte(description+"----\n"+got), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// scene is a parsed scenario for one manager.
type scene struct {
	k      *kernel
	names  map[*program]string
	events []event
	faults []*fault
	later  []func() // actions for when all programs are known
	until  time.Duration
	said   map[*program]string // reason of the last refusal
	out    strings.Builder
}

// event happens at a given time.
type event struct {
	at timeline.Time
	do func(in *Input)
}

// fault is an action that the kernel does not carry out.
type fault struct {
	kind   string
	of     *program
	limit  resource.Amount
	times  int
	silent bool
}

// playScenario runs a description under each of its managers.
func playScenario(t *testing.T, description string) (string, error) {
	var managers []string
	lines := strings.Split(description, "\n")
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, "manager "); ok {
			managers = append(managers, rest)
		}
	}
	var out strings.Builder
	for _, title := range managers {
		p, err := parseManager(title)
		if err != nil {
			return "", err
		}
		s := &scene{k: newKernel(t, p, 0, 0, 0), names: map[*program]string{}, said: map[*program]string{}, until: time.Hour}
		s.k.again = true
		for i, l := range lines {
			if err := s.line(l); err != nil {
				return "", fmt.Errorf("%d: %w", i+1, err)
			}
		}
		for _, do := range s.later {
			do()
		}
		s.play()
		if len(managers) > 1 {
			fmt.Fprintf(&out, "== %s\n", title)
		}
		out.WriteString(s.out.String())
	}
	return out.String(), nil
}

func parseManager(title string) (Parameters, error) {
	words := strings.Fields(title)
	all := Variants()
	all["paper"], all["default"] = Paper(), Default()
	p, ok := all[words[0]]
	if !ok {
		return p, fmt.Errorf("manager %s: there is none", words[0])
	}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		d, err := time.ParseDuration(value)
		if key == "stop" {
			p.Stop, err = strconv.ParseFloat(value, 64)
		}
		switch key {
		case "stop":
		case "action-timeout":
			p.ActionTimeout = d
		case "longest-suspension":
			p.LongestSuspension = d
		case "hold":
			p.Hold = d
		case "claim-for":
			p.ClaimFor = d
		default:
			return p, fmt.Errorf("manager setting %s: there is none", key)
		}
		if err != nil {
			return p, fmt.Errorf("manager %s: %w", w, err)
		}
	}
	return p, p.Check()
}

// arguments are the words on a line after the first.
type arguments struct {
	names []string
	keys  map[string]string
	err   error
}

func (w *arguments) duration(key string, otherwise time.Duration) time.Duration {
	text, ok := w.keys[key]
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	w.err = cmp.Or(w.err, err)
	return d
}

func (w *arguments) bytes(text string) resource.Amount {
	a, err := resource.ParseMemory(text)
	w.err = cmp.Or(w.err, err)
	return a
}

func (w *arguments) size(key string) resource.Amount {
	if text, ok := w.keys[key]; ok {
		return w.bytes(text)
	}
	return 0
}

func (w *arguments) name(i int) string {
	if i < len(w.names) {
		return w.names[i]
	}
	w.err = cmp.Or(w.err, fmt.Errorf("a word is missing"))
	return ""
}

// line reads one line of a description.
func (s *scene) line(l string) error {
	l, _, _ = strings.Cut(l, "#")
	all := strings.Fields(l)
	if len(all) == 0 || all[0] == "manager" {
		return nil
	}
	w := &arguments{keys: map[string]string{}}
	for _, word := range all[1:] {
		if key, value, ok := strings.Cut(word, "="); ok {
			w.keys[key] = value
		} else {
			w.names = append(w.names, word)
		}
	}
	at := timeline.Time(w.duration("at", 0))
	k := s.k
	switch all[0] {
	case "node":
		k.memory, k.swap, k.rate = w.size("memory"), w.size("swap"), w.bytes(strings.TrimSuffix(w.keys["speed"], "/s"))
		k.budget, k.tick = k.swap, w.duration("look", time.Second)
	case "flex", "regular":
		s.program(all[0], at, w)
	case "memory", "budget", "swap":
		to := w.bytes(w.name(0))
		s.on(at, func(*Input) {
			switch all[0] {
			case "memory":
				k.memory, k.changed = to, k.now
			case "swap":
				k.swap, k.budget = to, to
			default:
				k.budget = to
			}
			s.write("", "%s %s", all[0], resource.FormatMemory(to))
		})
	case "collect":
		p, to := s.named(w.name(0)), w.bytes(w.name(1))
		s.on(at, func(*Input) {
			p.held, p.sets = min(p.held, to), []resource.Amount{to}
			p.resident = min(p.resident, p.held)
			s.write(s.names[p], "holds %s", resource.FormatMemory(p.held))
		})
	case "fail", "lose":
		times, err := strconv.Atoi(cmp.Or(w.keys["times"], "1"))
		w.err = cmp.Or(w.err, err)
		s.faults = append(s.faults, &fault{kind: w.name(0), of: s.named(w.name(1)), limit: w.size("limit"), times: times,
			silent: all[0] == "lose"})
	case "restart":
		s.on(at, func(in *Input) {
			k.restart(in)
			s.write("", "restart")
		})
	case "until":
		d, err := time.ParseDuration(w.name(0))
		s.until, w.err = d, cmp.Or(w.err, err)
	default:
		return fmt.Errorf("%s: there is no such line", all[0])
	}
	return w.err
}

func (s *scene) on(at timeline.Time, do func(in *Input)) { s.events = append(s.events, event{at, do}) }

func (s *scene) program(kind string, at timeline.Time, w *arguments) {
	rank := len(s.k.programs) + 1
	p := &program{Envelope: Envelope{Container: cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(rank)},
		Run: 1}, Envelope: cluster.Envelope{Rank: rank, Duration: w.duration("duration", 0),
		HeartbeatTimeout: w.duration("heartbeat", 0), Owner: w.keys["owner"], Quota: w.size("quota")}},
		arrives: at, work: w.duration("work", time.Hour), pass: w.duration("pass", time.Second)}
	if kind == "regular" {
		p.Min, p.Max = w.size("memory"), w.size("memory")
		p.sets = []resource.Amount{p.Min}
	} else {
		p.Class, p.Min, p.Max = cluster.Flex, w.size("min"), cmp.Or(w.size("max"), s.k.memory)
		p.Requeue, p.Need = w.keys["requeue"] == "yes", w.size("need")
		for _, set := range strings.Split(w.keys["sets"], ",") {
			p.sets = append(p.sets, w.bytes(set))
		}
	}
	if job, ok := w.keys["job"]; ok { // another task of it
		of := s.named(job)
		p.Rank, p.Container.Task = of.Rank, of.Container.Task
		p.Container.Task.Index = int32(rank)
	}
	if after, ok := w.keys["after"]; ok {
		p.after = s.named(after)
	}
	from := w.duration("from", 0)
	if of, ok := w.keys["lock"]; ok {
		p.lock = &wait{at: from, until: w.duration("until", time.Hour)}
		s.later = append(s.later, func() { p.lock.of = s.named(of) })
	}
	if writer, ok := w.keys["reads"]; ok {
		other, holds := s.named(writer), w.duration("holds", 0)
		p.pipe, other.pipe = &pipe{other: other, from: from, holds: holds},
			&pipe{other: p, from: from, holds: holds, written: true}
	}
	if long := w.duration("sleeps", 0); long > 0 {
		p.sleeps = &nap{at: from, long: long}
	}
	p.locked = w.keys["locked"] == "all"
	s.names[p] = w.name(0)
	s.k.add(p)
}

func (s *scene) named(name string) *program {
	for p, n := range s.names {
		if n == name {
			return p
		}
	}
	s.k.t.Fatalf("%s: is not described above", name)
	return nil
}

func (s *scene) play() {
	k := s.k
	slices.SortStableFunc(s.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	k.seen = s.action
	k.onKill = func(p *program) { s.write(s.names[p], "is killed by the kernel") }
	for k.now <= timeline.Time(s.until) && k.done < len(k.programs) {
		states := map[*program]string{}
		for _, p := range k.programs {
			states[p] = p.state
		}
		k.stepWith(func(in *Input) {
			for len(s.events) > 0 && s.events[0].at <= k.now {
				s.events[0].do(in)
				s.events = s.events[1:]
			}
		})
		for _, p := range k.programs {
			if states[p] == "running" && p.state == "done" {
				s.write(s.names[p], "ends")
			} else if states[p] == "running" && p.state == "ended" {
				s.write(s.names[p], "is ended")
			}
		}
		k.now = k.now.Add(k.tick)
	}
}

// action logs an action, and lets the kernel fail if the scenario says so.
func (s *scene) action(a *Action, p *program) (fail, silent bool) {
	limit := ""
	if a.Limit > 0 {
		limit = " to " + rounded(a.Limit)
	}
	for _, f := range s.faults {
		if f.of != p || f.kind != a.Kind.String() || f.times == 0 {
			continue
		}
		f.times--
		fail, silent = !f.silent, f.silent
		if f.limit > 0 {
			a.Limit, fail = f.limit, true
		}
	}
	if a.Kind == Refuse && s.said[p] == a.Reason.Words() {
		return fail, silent // it requests every second
	}
	if s.said[p] = ""; a.Kind == Refuse {
		s.said[p] = a.Reason.Words()
	}
	s.write(s.names[p], "%v%s: %s%s", a.Kind, limit, a.Reason.Words(),
		map[bool]string{true: " (the kernel does not)"}[fail])
	return fail, silent
}

func (s *scene) write(name, format string, operands ...any) {
	seconds := strconv.FormatFloat(math.Round(time.Duration(s.k.now).Seconds()*100)/100, 'f', -1, 64) + "s"
	fmt.Fprintf(&s.out, "%8s  %s\n", seconds, strings.TrimSpace(name+" "+fmt.Sprintf(format, operands...)))
}

// rounded prints bytes to three digits.
func rounded(a resource.Amount) string {
	text := strconv.FormatFloat(float64(a)/float64(resource.GiB), 'g', 3, 64)
	return text + "GiB"
}
