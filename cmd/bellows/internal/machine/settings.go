package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/node/agent"
)

// setting is a setting of the daemon: a flag of `bellows up`, and a field of the configuration file. The table of
// upOptions has all settings. The flags, the file, its documentation and `bellows config` follow from it.
type setting struct {
	flag  string
	value pflag.Value
	help  string
	short string // flag of one letter; empty if there is none
	// reloads says that a daemon applies a changed value when it reads its file again.
	reloads bool
	// check returns what is wrong with a text that value has accepted; nil accepts all.
	check func(text string) error
}

// field returns the name of the setting in the configuration file.
func (s *setting) field() string { return strings.ReplaceAll(s.flag, "-", "_") }

// named returns the value of a setting that consists of named values, such as the settings of policies; nil for others.
func (s *setting) named() map[string]string { return namedIn(s.value) }

func namedIn(value pflag.Value) map[string]string {
	switch v := value.(type) {
	case flags.Settings:
		return v
	case quotaFlag:
		return v
	}
	return nil
}

// table returns all settings. To set one changes o.
func (o *upOptions) table() []setting {
	variants := strings.Join(slices.Sorted(maps.Keys(memory.Variants())), ", ")
	return []setting{
		{flag: "memory", value: flags.Memory(&o.memory), check: func(string) error {
			return onMachine(agent.Capacity(o.memory, 0))
		}, help: "memory that all jobs together may use; default: nine tenths of the machine's"},
		{flag: "cpus", value: flags.CPU(&o.cpus), check: func(string) error { return onMachine(agent.Capacity(0, o.cpus)) },
			help: "cores that all jobs together may use; default: all"},
		{flag: "disk", value: flags.Rate(&o.disk).OrZero(),
			help: "disk bandwidth that all jobs together may request, such as 100MB/s; 0B/s: unknown, and every request " +
				"fits; default: measured once on the disk of the state directory"},
		{flag: "network", value: flags.Rate(&o.network),
			help: "network bandwidth that all jobs together may request, such as 1Gbit/s or 125MB/s; default: unknown, " +
				"and every request fits"},
		{flag: "swap-budget", value: flags.Budget(&o.swapping),
			help: "most bytes that swapping may write to disks in 24 hours, such as 200GB/day; once it is spent, no " +
				"container is swapped out; default: no limit"},
		{flag: "policy", value: policyFlag{flags.Choice(&o.policy, policy.Names()...)},
			help: "`name` of the scheduling policy: " + strings.Join(policy.Names(), ", ")},
		{flag: "set", value: flags.Settings(o.settings), check: checkPolicySetting,
			help: "setting of the policy; may be repeated"},
		{flag: "flex", value: flags.Choice(&o.flex.preset, memory.PresetNames()...),
			help: "memory `manager` of FLEX containers: default, paper (Pufferfish), or a variant that the paper compares: " +
				variants},
		{flag: "puff-ratio", value: flags.Number(&o.flex.puffRatio, 0, 100), check: func(string) error {
			return checkPuffRatio(o.flex.puffRatio)
		}, help: "growth of a FLEX container per puff, as a `share` of its limit, from 0.01 to 100; 0: as --flex says"},
		{flag: "still", value: flags.Choice(&o.still, "lends", "keeps"),
			help: "whether paused and suspended tasks lend their cores to other tasks: `lends` or keeps"},
		{flag: "memory-default", value: flags.Choice(&o.reserves, "auto", "stated"),
			help: "what a job reserves that states neither class nor reserve: `auto`, what earlier runs needed, or stated, " +
				"what it states"},
		{flag: "output-limit", value: flags.Memory(&o.output), reloads: true,
			help: "size kept of each output of a task, half from its beginning and half from its end; the tasks of a job " +
				"with more than 8 tasks share the size of 8 tasks"},
		{flag: "keep-for", value: flags.Duration(&o.keep.For, time.Minute), reloads: true,
			help: "how long ended jobs and their output are kept"},
		{flag: "keep-jobs", value: flags.Count(&o.keep.Jobs, 1, 1<<30), reloads: true,
			help: "number of ended jobs that are kept; beyond it, the oldest of the user who has most goes"},
		{flag: "keep-output", value: flags.Memory(&o.keep.Output), reloads: true,
			help: "size of the output of ended jobs that is kept; beyond it, that of the oldest of the user who has most goes"},
		{flag: "keep-user-jobs", value: flags.Count(&o.keep.UserJobs, 0, 1<<30), reloads: true,
			help: "number of newest ended jobs of each user that are kept; 0: no limit"},
		{flag: "keep-user-output", value: flags.Memory(&o.keep.UserOutput).OrZero(), reloads: true,
			help: "size of the output of ended jobs of each user that is kept; default, or 0: no limit"},
		{flag: "keep-events", value: flags.Memory(&o.keep.Events), reloads: true,
			help: "size of the event logs that are kept: half for this run of the daemon, half for earlier runs"},
		{flag: "user-quota", value: o.users, reloads: true,
			help: "quota of each user, of memory, cpus, running, waiting, submissions or output, such as running=5; " +
				"ada.running=9 or ada.running=none for user ada; the limit may be followed by waits or refuses; may be repeated"},
		{flag: "queue-quota", value: o.queues, check: checkQueueQuota, reloads: true,
			help: "the same for the jobs of each queue, or of one queue, without output"},
		{flag: "verbose", short: "v", value: flags.Switch(&o.verbose), reloads: true,
			help: "log also each container and each change of a limit"},
		{flag: "log-format", value: flags.Choice(&o.format, logText, logJSON),
			help: "format of the log: `text` or json, one object a line"},
		{flag: "socket-mode", value: modeFlag(&o.door.Mode),
			help: "permissions of the socket, such as 0660; default: 0600, or 0660 with --socket-group"},
		{flag: "socket-group", value: groupFlag(&o.door.Group),
			help: "`group` of the socket: its members may use the daemon; default: that of the daemon"},
		{flag: "operators", value: groupFlag(&o.operators),
			help: "`group` whose members may do to the jobs of all users what root may do; default: none"},
		{flag: "listen", value: addressFlag(&o.listen.address),
			help: "`address` of the network, HOST:PORT, at which clients with a token are served over TLS; needs " +
				"--tls-cert and --tls-key; default: none"},
		{flag: "tls-cert", value: pathFlag(&o.listen.certificate), reloads: true,
			help: "`file` with the certificate for --listen and those of its authorities, PEM; it is read again on SIGHUP"},
		{flag: "tls-key", value: pathFlag(&o.listen.key), reloads: true,
			help: "`file` with the key of the certificate, PEM, which others must not be able to read; it is read again " +
				"on SIGHUP"},
	}
}

// policyFlag is the name of the daemon's policy. Settings after the name, as simulate takes them for each of its
// policies, are refused with what to write instead.
type policyFlag struct{ flags.Words }

// Set implements pflag.Value.
func (v policyFlag) Set(text string) error {
	name, rest, _ := strings.Cut(text, ":")
	if setting, value, ok := strings.Cut(rest, "="); ok && slices.Contains(policy.Names(), name) {
		value, _, _ = strings.Cut(value, ":")
		return fmt.Errorf("must be a name alone: settings are given by --set, such as --set %s.%s=%s", name,
			strings.TrimPrefix(setting, name+"."), value)
	}
	return v.Words.Set(text)
}

// onMachine returns the error of a capacity.
func onMachine(_ resource.Vector, err error) error { return err }

// checkPolicySetting checks a setting of a policy, NAME=VALUE, by itself.
func checkPolicySetting(text string) error {
	name, value, _ := strings.Cut(text, "=")
	owner, _, _ := strings.Cut(name, ".")
	if !slices.Contains(policy.Names(), owner) {
		owner = policy.Names()[0] // any policy refuses a name of no policy
	}
	_, err := policy.New(owner, map[string]string{name: value})
	return err
}

func checkPuffRatio(ratio float64) error {
	_, err := memory.PresetOf("default", ratio)
	return err
}

func (o *upOptions) flags(f *pflag.FlagSet) {
	for _, s := range o.table() {
		added := f.VarPF(s.value, s.flag, s.short, s.help)
		if s.value.Type() == "bool" {
			added.NoOptDefVal = "true"
		}
	}
}

// row is the value of a setting, as `bellows config show` prints it. A setting that consists of named values has a
// row for each of them.
type row struct {
	Setting string `json:"setting" doc:"field of the [file](../formats.md#configuration-file); of set with the name of the setting of the policy"`
	Value   string `json:"value,omitempty" doc:"as the file has it; omitted for a default that the daemon works out"`
	From    string `json:"from" doc:"default, flag or FILE:LINE"`
	Reloads bool   `json:"reloads" doc:"a daemon applies a changed value when it reads the file again, on SIGHUP"`
}

// rows returns the values of all settings; configure must have been called.
func (o *upOptions) rows() []row {
	var all []row
	add := func(s *setting, name, value string) {
		all = append(all, row{Setting: name, Value: value, From: o.origins.of(name), Reloads: s.reloads})
	}
	for _, s := range o.table() {
		if s.named() == nil {
			value := s.value.String()
			if o.origins.stated(s.field()) {
				value = cmp.Or(value, "0") // as it was given
			}
			add(&s, s.field(), value)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(s.named())) {
			add(&s, s.field()+" "+name, s.named()[name])
		}
	}
	return all
}
