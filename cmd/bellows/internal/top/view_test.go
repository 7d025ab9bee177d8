package top

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live/api"
)

const mib, gib = 1 << 20, 1 << 30

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// jobOf returns a job with a stage of as many tasks.
func jobOf(id cluster.JobID, name, owner string, status cluster.JobStatus, tasks int, ideal int64) api.Job {
	j := api.Job{ID: id, Name: name, Owner: owner, Status: status, Submitted: noon.Add(-time.Hour), TaskCount: tasks,
		Stages: []api.Stage{{Stage: cluster.Stage{Tasks: tasks}, Class: cluster.Regular, IdealBytes: ideal}}}
	if status == cluster.StatusRunning {
		j.Started = noon.Add(-time.Duration(id) * time.Minute)
	}
	return j
}

// taskOf returns a running task of a job.
func taskOf(id cluster.JobID, index int32, cores, memory int64) api.Task {
	return api.Task{Task: cluster.TaskID{Job: id, Index: index}, Run: 1, State: api.TaskRunning, Node: "here",
		Started: noon.Add(-time.Duration(id) * time.Minute), Grant: api.Grant{CPUMillicores: cores, MemoryBytes: memory},
		AskedBytes: memory}
}

// used adds what a task uses, after it has used the processor for a time.
func used(t api.Task, anonymous, peak, swap int64, cpu time.Duration) api.Task {
	t.Usage = &cluster.Reading{Anonymous: &anonymous, Peak: &peak, Swap: &swap, CPUTime: new(int64(cpu))}
	return t
}

// canned is a machine with jobs in every state, some of which belong to others, and some of which have names that are
// meant to harm.
func canned() (u api.Update, before, after api.Machine) {
	jobs := []api.Job{
		jobOf(1, "sort", "ada", cluster.StatusRunning, 8, 512*mib),
		jobOf(2, "", "bob", cluster.StatusRunning, 3, gib), // of another user
		jobOf(3, "stops", "ada", cluster.StatusRunning, 1, 256*mib),
		jobOf(4, "breathes", "ada", cluster.StatusRunning, 1, 256*mib),
		jobOf(5, "levels", "ada", cluster.StatusRunning, 1, 256*mib),
		jobOf(6, "slow\x1b[2J\x1b]0;owned\a\r\ndown", "eve", cluster.StatusRunning, 1, 256*mib),
		jobOf(7, "日本語の名前はとても長い", "ada", cluster.StatusRunning, 1, 256*mib),
		jobOf(8, "waits for memory", "ada", cluster.StatusPending, 1, 256*mib),
		jobOf(9, "queued", "ada", cluster.StatusPending, 300, 4*gib),
		jobOf(10, "", "bob", cluster.StatusPending, 1, 2*gib), // of another user
		jobOf(11, "held back", "ada", cluster.StatusPending, 1, 64*mib),
		jobOf(12, "dies", "ada", cluster.StatusCancelled, 1, 64*mib),
		jobOf(13, "new", "ada", cluster.StatusRunning, 1, 64*mib),
		jobOf(12345, "hung", "ada", cluster.StatusSetAside, 1, 64*mib),
	}
	jobs[0].SucceededCount = 3
	jobs[1].Stages[0].Class, jobs[9].Stages[0].Class = cluster.Flex, cluster.Flex
	jobs[8].Waiting = "no node has 4GiB and 1 core free"
	jobs[10].Paused = &api.Paused{By: "ada", Since: noon}
	tasks := []api.Task{
		used(taskOf(1, 3, 1000, 512*mib), 300*mib, 400*mib, 0, 10*time.Second),
		used(taskOf(1, 4, 1000, 512*mib), 100*mib, 500*mib, 0, 20*time.Second),
		used(taskOf(2, 0, 2000, gib), 900*mib, 1023*mib, 0, time.Hour),
		used(taskOf(3, 0, 1000, 256*mib), 200*mib, 210*mib, 0, time.Minute),
		used(taskOf(4, 0, 1000, 256*mib), 20*mib, 256*mib, 180*mib, time.Minute),
		used(taskOf(5, 0, 500, 256*mib), 128*mib, 130*mib, 0, time.Minute),
		used(taskOf(6, 0, 500, 256*mib), 30*mib, 40*mib, 0, time.Minute),
		used(taskOf(7, 0, 250, 256*mib), 255*mib, 256*mib, 0, time.Minute),
		{Task: cluster.TaskID{Job: 8}, Run: 1, State: api.TaskStarting,
			Grant: api.Grant{CPUMillicores: 1000, MemoryBytes: 256 * mib},
			Usage: &cluster.Reading{State: cluster.ContainerWaiting, Why: "needs 256MiB, and job 4 is out of memory already",
				Since: noon.Add(-3 * time.Second)}},
		{Task: cluster.TaskID{Job: 12}, Run: 1, State: api.TaskEnding,
			Grant: api.Grant{CPUMillicores: 1000, MemoryBytes: 64 * mib}, Started: noon.Add(-time.Second)},
		{Task: cluster.TaskID{Job: 13}, Run: 1, State: api.TaskStarting,
			Grant: api.Grant{CPUMillicores: 1000, MemoryBytes: 64 * mib}},
		{Task: cluster.TaskID{Job: 1}, Run: 1, State: api.TaskEnded, Outcome: cluster.Succeeded},
	}
	tasks[3].Paused, tasks[3].Suspended = &api.Paused{By: "ada", Since: noon},
		&api.Still{By: cluster.HeldByOwner, Since: noon, Lends: true}
	tasks[4].Suspended = &api.Still{By: cluster.HeldByMemory, Since: noon}
	tasks[4].Usage.State, tasks[4].Usage.Why = cluster.ContainerSuspended,
		"out of memory: held 200MiB, and could hold 180MiB"
	tasks[5].Suspended = &api.Still{By: cluster.HeldByLeveling, Since: noon}
	tasks[5].Leveled = &api.Leveled{Since: noon, Until: noon.Add(time.Minute), For: cluster.TaskID{Job: 1, Index: 3}}
	tasks[6].Throttle = &api.Throttle{Bound: api.Bound{Disk: 1e6}, Until: noon.Add(time.Minute), InForce: true,
		Why: "its disk is busy"}
	tasks[7].InPhase = api.InPhase{Phase: 2, Phases: 5, Name: "join"}
	before = api.Machine{Status: cannedStatus(), At: noon.Add(-2 * time.Second), Tasks: tasks[:9]}
	after = api.Machine{Status: cannedStatus(), At: noon.Add(-time.Second)}
	for i, t := range tasks[:9] { // the second, and later ones, have used a part of a core since
		if u := t.Usage; u.CPUTime != nil {
			later := *u
			later.CPUTime = new(*u.CPUTime + int64(i)*int64(time.Second)/4)
			t.Usage = &later
		}
		after.Tasks = append(after.Tasks, t)
	}
	for i := range jobs {
		for _, t := range tasks {
			if t.Task.Job == jobs[i].ID {
				t.Usage, t.InPhase = nil, api.InPhase{} // they are in events about the machine
				jobs[i].Tasks = append(jobs[i].Tasks, t)
			}
		}
	}
	return api.Update{Revision: 5, Snapshot: true, Jobs: jobs}, before, after
}

func cannedStatus() api.Status {
	return api.Status{Daemon: api.Daemon{Version: "v1.2.3", PID: 4242},
		ClusterStatus: api.ClusterStatus{Policy: "bellows", Since: noon.Add(-3 * time.Hour), Jobs: 14, Running: 10,
			Pending: 305,
			Slack: api.Slack{Now: api.SlackOf{Tasks: 9, Open: 1, Asked: 72 * gib, Reserved: 3 * gib, Used: 2 * gib},
				Past: api.SlackOf{Tasks: 1204, Asked: 950 * gib, Reserved: 60 * gib, Used: 55 * gib}},
			Nodes: []api.Node{{Name: "here", CPU: 8000, Memory: 8 * gib, FreeCPU: 750, FreeMemory: 5 * gib,
				LeftMemory: 5 * gib, UsedAnonymous: 1933 * mib, Containers: 9}}}}
}

// state of the canned machine on a screen of a size.
func cannedState(columns, lines int) *state {
	local := time.Local
	time.Local = time.UTC // its times are in reasons
	defer func() { time.Local = local }()
	s := newState(choice{})
	s.columns, s.lines, s.now = columns, lines, noon
	u, before, after := canned()
	s.see(&client.Seen{Machine: &before})
	s.see(&client.Seen{Update: &u})
	s.see(&client.Seen{Machine: &after})
	s.settle()
	return s
}

func golden(t *testing.T, name string, s *state) {
	t.Helper()
	testfile.Golden(t, name+".txt", []byte(fits(t, s)))
}

func inUTC(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
}

// Screens of usual and unusual sizes.
func TestScreens(t *testing.T) {
	inUTC(t)
	for _, size := range [][2]int{{80, 24}, {120, 40}, {40, 10}, {200, 12}, {20, 5}} {
		golden(t, fmt.Sprintf("%dx%d", size[0], size[1]), cannedState(size[0], size[1]))
	}
	page := cannedState(110, 0) // of the documentation
	for _, id := range []cluster.JobID{6, 7, 10, 11, 12, 13, 12345} {
		delete(page.jobs, id)
	}
	page.settle()
	golden(t, "once", page)
	empty := newState(choice{})
	empty.columns, empty.lines, empty.now = 80, 8, noon
	empty.settle()
	golden(t, "empty", empty)
}

// What else a screen can show.
func TestOtherScreens(t *testing.T) {
	inUTC(t)
	for name, change := range map[string]func(*state){
		"tasks":    func(s *state) { keys(s, "t") },
		"help":     func(s *state) { keys(s, "h") },
		"filter":   func(s *state) { keys(s, "/LEV") },
		"no-match": func(s *state) { keys(s, "/nothing is so\r") },
		"kill":     func(s *state) { keys(s, "jjK") },
		"explain": func(s *state) {
			keys(s, "e")
			s.hear(&answer{request: s.take()[0],
				explanation: api.Explanation{Job: s.jobs[1],
					Why: "It runs with less memory than its ideal, because otherwise it would wait until 12:07:00.",
					Decisions: []api.DecisionNote{{At: noon, Kind: cluster.Start, Task: cluster.TaskID{Job: 1, Index: 3},
						Why: "fits with its ideal memory, 512MiB"}}}})
		},
		"lost": func(s *state) {
			s.see(&client.Seen{Lost: api.Errorf(api.Unavailable, "the daemon ends; connect again to the next")})
			s.now = s.now.Add(7 * time.Second)
		},
		"trouble": func(s *state) {
			m := *s.machine
			m.Status.Trouble, m.Status.Crowded = "the disk of the state directory is full\x1b[0m",
				"all daemons of the machine together may grant more than it has"
			s.see(&client.Seen{Machine: &m})
		},
	} {
		s := cannedState(80, 24)
		change(s)
		s.settle()
		golden(t, name, s)
	}
}

// On a narrow screen the pane takes the place of the table, and its lines are broken.
func TestNarrowPane(t *testing.T) {
	inUTC(t)
	s := cannedState(40, 10)
	keys(s, "e")
	s.hear(&answer{request: s.take()[0],
		explanation: api.Explanation{Job: s.jobs[1],
			Why: "It runs with less memory than its ideal, because otherwise it would wait until 12:07:00."}})
	keys(s, "]")
	golden(t, "narrow-pane", s)
}

// Whatever happens, whatever is pressed and however small the screen is, its lines fit, and nothing in them is a
// command to the terminal.
func TestScreensFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cannedState(80, 24)
		revision := int64(5)
		t.Repeat(map[string]func(*rapid.T){
			"resize": func(t *rapid.T) {
				s.columns, s.lines = rapid.IntRange(1, 130).Draw(t, "columns"), rapid.IntRange(1, 40).Draw(t, "lines")
			},
			"press": func(t *rapid.T) {
				k := rapid.OneOf(rapid.SampledFrom([]terminal.Key{terminal.KeyUp, terminal.KeyDown, terminal.KeyPageUp,
					terminal.KeyPageDown, terminal.KeyHome, terminal.KeyEnd, terminal.KeyEscape, terminal.KeyEnter,
					terminal.KeyBackspace, terminal.KeyRedraw}),
					rapid.Map(rapid.SampledFrom([]rune("jk e[]prKysS/ufthq?日\u0301")), func(r rune) terminal.Key {
						return terminal.Key(r)
					})).Draw(t, "key")
				s.press(k)
			},
			"update": func(t *rapid.T) {
				revision++
				j := jobOf(cluster.JobID(rapid.IntRange(1, 20).Draw(t, "job")), rapid.String().Draw(t, "name"),
					rapid.String().Draw(t, "owner"), cluster.StatusRunning, rapid.IntRange(0, 3).Draw(t, "tasks"),
					rapid.Int64Range(0, 1<<60).Draw(t, "ideal"))
				j.Waiting, j.Ended = rapid.String().Draw(t, "waiting"), rapid.Bool().Draw(t, "ended")
				if rapid.Bool().Draw(t, "no stages") {
					j.Stages = nil
				}
				for i := range rapid.Int32Range(0, 3).Draw(t, "running") {
					j.Tasks = append(j.Tasks, taskOf(j.ID, i, rapid.Int64Range(0, 1<<40).Draw(t, "cores"),
						rapid.Int64Range(0, 1<<60).Draw(t, "memory")))
				}
				s.see(&client.Seen{Update: &api.Update{Revision: revision,
					Snapshot: rapid.IntRange(0, 9).Draw(t, "snapshot") == 0, Jobs: []api.Job{j}}})
			},
			"machine": func(t *rapid.T) {
				_, m, _ := canned()
				m.At = noon.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "at")) * time.Second)
				m.Tasks = m.Tasks[:rapid.IntRange(0, len(m.Tasks)).Draw(t, "measured")]
				m.Status.Trouble, m.Status.Policy = rapid.String().Draw(t, "trouble"), rapid.String().Draw(t, "policy")
				s.see(&client.Seen{Machine: &m})
			},
			"lose": func(t *rapid.T) {
				s.see(&client.Seen{Lost: api.Errorf(api.Unavailable, "%s", rapid.String().Draw(t, "why"))})
			},
			"answer": func(t *rapid.T) {
				for _, r := range s.take() {
					a := answer{request: r, explanation: api.Explanation{Job: s.jobs[r.job], Why: rapid.String().Draw(t, "why")}}
					if rapid.Bool().Draw(t, "refused") {
						a.err = api.Errorf(api.Denied, "%s", rapid.String().Draw(t, "error"))
					}
					s.hear(&a)
				}
			},
			"wait": func(t *rapid.T) {
				s.now = s.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				s.settle()
				fits(t, s)
				if r := s.current(); (r == nil) != (len(s.rows) == 0) || r != nil && r.subject != s.selected {
					t.Errorf("row %d of %d is selected: %v", s.at, len(s.rows), s.selected)
				}
			},
		})
	})
}

// Amounts take at most five columns.
func TestAmounts(t *testing.T) {
	for bytes, want := range map[int64]string{-1: "-", 0: "0B", 1023: "1023B", 1024: "1K", 1536: "1.5K",
		10 * 1024: "10K", 1023 * 1024: "1023K", 1024*1024 - 1: "1M", 1234 * mib: "1.2G", 8 * gib: "8G", 10*gib - mib: "10G",
		1 << 62: "4E"} {
		if got := size(bytes); got != want {
			t.Errorf("%d bytes are %s, want %s", bytes, got, want)
		}
	}
	for milli, want := range map[int64]string{-1: "-", 0: "0", 4: "0", 250: "0.25", 1000: "1", 1500: "1.5", 9994: "9.99",
		9996: "10", 12_340: "12.3", 999_940: "999.9", 1_000_000: "1000"} {
		if got := cores(milli); got != want {
			t.Errorf("%d millicores are %s, want %s", milli, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(-1, 1<<62).Draw(t, "n")
		if got := size(n); terminal.Cells(got) > 5 {
			t.Fatalf("%d bytes are %s", n, got)
		}
		if got := cores(n % 99_999_000); terminal.Cells(got) > 5 {
			t.Fatalf("%d millicores are %s", n%99_999_000, got)
		}
		a, b, whole, columns := rapid.Int64Range(-1, 1<<60).Draw(t, "used"), rapid.Int64Range(-1, 1<<60).Draw(t, "more"),
			rapid.Int64Range(-1, 1<<60).Draw(t, "whole"), rapid.IntRange(0, 50).Draw(t, "columns")
		if got := bar(a, b, whole, columns); terminal.Cells(got) != columns {
			t.Fatalf("a bar of %d columns is %q", columns, got)
		}
	})
	if got := bar(50, 75, 100, 8); got != "████▒▒··" {
		t.Errorf("the bar is %s", got)
	}
	if got := bar(1, 0, gib, 4); got != "█···" {
		t.Errorf("the bar is %s", got)
	}
}

// What was asked is compared with the rest as far as the screen has room; a task that asked for no limit has none.
func TestSlackLine(t *testing.T) {
	slack := api.Slack{Now: api.SlackOf{Tasks: 2, Open: 1, Asked: 600 * mib, Reserved: 72 * mib, Used: 68 * mib},
		Past: api.SlackOf{Tasks: 3, Open: 3, Reserved: 139 * mib, Used: 102 * mib}}
	for columns, want := range map[int]string{
		100: "slack   asked 600M by 1, reserved 72M, used 68M  ended: asked -, reserved 139M, used 102M",
		80:  "slack   asked 600M by 1, reserved 72M, used 68M  ended: -, 139M, 102M",
		40:  "slack   asked 600M by 1, used 68M",
	} {
		if got := slackLine(&slack, columns).text(); got != want {
			t.Errorf("in %d columns: %q, want %q", columns, got, want)
		}
	}
}

// What is used, reserved and left does not contradict itself when flex containers have grown: what is left is what a
// start finds, and what they have grown to is said.
func TestGrownIsNotLeft(t *testing.T) {
	var s state
	s.machine = &api.Machine{Status: api.Status{ClusterStatus: api.ClusterStatus{Nodes: []api.Node{{Memory: 2 * gib,
		FreeMemory: 1536 * mib, HeldMemory: 2036 * mib, LeftMemory: 12 * mib, UsedAnonymous: 1638 * mib}}}}}
	memory, _, _ := s.sums()
	for columns, want := range map[int]string{
		80: "memory ████████▒▒  1.6G used of 2G  512M reserved  grown to 2G  12M left",
		40: "memory █████▒  1.6G used of 2G  12M left",
	} {
		if got := memory.line("memory", size, columns).text(); got != want {
			t.Errorf("in %d columns: %q, want %q", columns, got, want)
		}
	}
	s.machine.Status.Nodes = append(s.machine.Status.Nodes, api.Node{Memory: gib, FreeMemory: gib, LeftMemory: gib})
	if memory, _, _ := s.sums(); memory.left != gib+12*mib || memory.reserved != 512*mib || memory.grown != 2036*mib {
		t.Errorf("of two nodes: %+v", memory)
	}
}
