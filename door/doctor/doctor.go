// Package doctor finds out whether a machine is ready for a daemon, and what a daemon on it lacks. It asks the probes
// of the parts that a daemon opens, and changes nothing.
package doctor

import (
	"context"
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Level is how bad a finding is; the order is that of severity.
type Level uint8

const (
	OK      Level = iota
	Warning       // bellows works, with less than it could
	Problem       // bellows does not start, or does not work
)

var levelNames = [...]string{"ok", "warning", "problem"}

func (l Level) String() string { return levelNames[l] }

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(text []byte) error {
	return cluster.ParseName(l, levelNames[:], 0, text, "level")
}

// Finding is the result of one check.
type Finding struct {
	// Check is its name: see Checks.
	Check string `json:"check" doc:"name of the check"`
	Level Level  `json:"level" doc:"ok, warning (bellows works, with less than it could) or problem (it does not start, or does not work)"`
	// Found is one sentence on what was found.
	Found string `json:"found" doc:"what was found, in one sentence"`
	// Remedy is one sentence on what to do; empty if the level is OK.
	Remedy string `json:"remedy,omitempty" doc:"what to do, in one sentence; omitted if the level is ok"`
}

func fine(format string, operands ...any) Finding {
	return Finding{Found: fmt.Sprintf(format, operands...)}
}

func warning(found, remedy string) Finding {
	return Finding{Level: Warning, Found: found, Remedy: remedy}
}

func problem(found, remedy string) Finding {
	return Finding{Level: Problem, Found: found, Remedy: remedy}
}

// scope says where a check has a finding.
type scope uint8

const (
	everywhere scope = iota
	ownDaemon        // where no daemon of another user answers: it is about a daemon that this user starts
	inGroups         // as ownDaemon, and where control groups can be had
)

// checks has all checks in the order of their findings.
var checks = []struct {
	name  string
	scope scope
	judge func(*Facts) Finding
}{
	{"kernel", everywhere, (*Facts).kernel},
	{"user", ownDaemon, (*Facts).user},
	{"resources", ownDaemon, (*Facts).resources},
	{"control groups", ownDaemon, (*Facts).groups},
	{"controllers", inGroups, (*Facts).controllers},
	{"processes", inGroups, (*Facts).processes},
	{"pressure", inGroups, (*Facts).pressure},
	{"network counters", inGroups, (*Facts).network},
	{"priority", ownDaemon, (*Facts).priority},
	{"out of memory", ownDaemon, (*Facts).protection},
	{"swap", everywhere, (*Facts).swap},
	{"state directory", ownDaemon, (*Facts).stateDirectory},
	{"disk space", ownDaemon, (*Facts).diskSpace},
	{"inodes", ownDaemon, (*Facts).inodes},
	{"open files", ownDaemon, (*Facts).openFiles},
	{"limits", ownDaemon, (*Facts).limits},
	{"clock", everywhere, (*Facts).clock},
	{"certificate", ownDaemon, (*Facts).certificate},
	{"quotas", ownDaemon, (*Facts).quotas},
	{"socket", everywhere, (*Facts).socket},
	{"daemon", everywhere, (*Facts).daemon},
}

// Examine examines this machine. It needs no daemon, but asks one that answers.
func Examine(ctx context.Context, c Config) []Finding { return judge(look(ctx, c)) }

// judge returns a finding for each check that applies.
func judge(f *Facts) []Finding {
	var all []Finding
	for _, c := range checks {
		if c.scope == inGroups && !f.had() || c.scope != everywhere && f.served() {
			continue
		}
		finding := c.judge(f)
		finding.Check = c.name
		all = append(all, finding)
	}
	return all
}
