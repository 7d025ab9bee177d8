package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// MostExecutors is the largest number of executors of one pool.
const MostExecutors = 1000

// Limits of pools.
const (
	MostPools   = 32        // of one owner
	MostInAll   = 512       // pools of all owners
	MostHeld    = 256 << 20 // bytes of arguments and results that all applications of one owner have in the daemon
	LongestName = 64        // of a pool, bytes
	mostBytes   = 1 << 20
	leastIdle   = time.Second
	mostIdle    = 366 * 24 * time.Hour
)

// Defaults of a Spec.
const (
	DefaultIdle   = time.Minute
	DefaultPolicy = "mira"
	DefaultKeep   = "2s" // setting mira.keep: see decision 69
	DefaultPython = "python3"
)

// keepSetting is the setting of mira for which pools have a default of their own.
const keepSetting = "mira.keep"

// Languages of executors.
const (
	Python = "python" // the executor is the worker that comes with bellows, in the interpreter that Command names
	Go     = "go"     // the executor is a program that calls executor.Main
)

// Ref names a pool. The name of a pool is unique among those of its owner.
type Ref struct {
	UID  uint32 `json:"uid"`
	User string `json:"user"` // name of the owner, or the number of a user without a name
	Name string `json:"name"`
}

// Owner returns to whom the pool belongs.
func (r Ref) Owner() api.Owner { return api.Owner{UID: r.UID, Name: r.User} }

// Spec says what the executors of a pool are, and how many there may be.
type Spec struct {
	Name     string   `json:"name" doc:"unique among the pools of its owner"`
	Language string   `json:"language,omitempty" doc:"what the functions of tasks are written in: python, or go; if left out, the command speaks the protocol itself"`
	Command  []string `json:"command,omitempty" doc:"program of an executor and its arguments; of a pool of Python the interpreter, python3 if left out"`
	Dir      string   `json:"dir,omitempty" doc:"working directory of executors, an absolute path"`
	Env      []string `json:"env,omitempty" doc:"the environment of executors, NAME=VALUE"`
	// Inherited is what executors inherit from whoever makes the pool; nil takes the daemon's defaults.
	Inherited *cluster.Inherited `json:"inherited,omitempty" doc:"what executors inherit: umask, nice and limits; if left out, the umask is 022 and the rest is the daemon's"`

	Min int `json:"min,omitempty" doc:"number of executors that are kept while no task needs them"`
	Max int `json:"max" doc:"number of executors that there may be at most"`
	// What one executor requests, as the one task of a job does.
	CPU       resource.Amount `json:"cpu_millicores,omitempty" doc:"CPU of an executor; one core if left out"`
	Memory    resource.Amount `json:"ideal_memory_bytes" doc:"memory of an executor"`
	MaxMemory resource.Amount `json:"max_memory_bytes,omitempty" doc:"of a flex executor: the most memory that it may have; if left out, as of jobs"`
	Class     cluster.Class   `json:"class,omitempty" doc:"regular or flex; regular if left out"`
	Queue     string          `json:"queue,omitempty" doc:"queue in which executors wait for their start"`

	Idle    time.Duration   `json:"idle_ns,omitempty" doc:"an executor beyond the least number ends when it has run nothing for so long; a minute if left out"`
	Recycle resource.Amount `json:"recycle_bytes,omitempty" doc:"an executor that has more memory after a task is replaced; never if left out"`

	Policy   string            `json:"policy,omitempty" doc:"policy that divides the executors among applications; mira if left out"`
	Settings map[string]string `json:"settings,omitempty" doc:"settings of the policy"`
}

// withDefaults returns s with defaults in place of what was left out.
func withDefaults(s Spec) Spec {
	s.CPU = cmp.Or(s.CPU, resource.Core)
	s.Idle = cmp.Or(s.Idle, DefaultIdle)
	s.Policy = cmp.Or(s.Policy, DefaultPolicy)
	if _, set := s.Settings[keepSetting]; s.Policy == DefaultPolicy && !set {
		settings := map[string]string{keepSetting: DefaultKeep}
		maps.Copy(settings, s.Settings)
		s.Settings = settings
	}
	if s.Language == Python && len(s.Command) == 0 {
		s.Command = []string{DefaultPython}
	}
	return s
}

// Check returns an error, which is api.Invalid, if the pool is not possible.
func Check(s Spec) error {
	fail := func(format string, values ...any) error {
		return api.Errorf(api.Invalid, "pool %q "+format, append([]any{s.Name}, values...)...)
	}
	s = withDefaults(s)
	switch {
	case !isPoolName(s.Name):
		return api.Errorf(api.Invalid,
			"pool %q: its name must be 1 to %d letters, digits, dots, hyphens and underscores, and begin with a letter "+
				"or a digit", cluster.Clip(s.Name), LongestName)
	case s.Language != "" && s.Language != Python && s.Language != Go:
		return fail("language %q: must be python, go, or left out", cluster.Clip(s.Language))
	case len(s.Command) == 0:
		return fail("command: must be given, unless the language is python")
	case s.Max < 1 || s.Max > MostExecutors:
		return fail("max %d: must be from 1 to %d", s.Max, MostExecutors)
	case s.Min < 0 || s.Min > s.Max:
		return fail("min %d: must be from 0 to max, %d", s.Min, s.Max)
	case s.Memory <= 0:
		return fail("ideal_memory_bytes %d: must be given", s.Memory)
	case s.MaxMemory != 0 && s.Class != cluster.Flex:
		return fail("max_memory_bytes %d: is for executors of the class flex", s.MaxMemory)
	case s.Idle < leastIdle || s.Idle > mostIdle:
		return fail("idle_ns %d: must be from %d to %d", s.Idle, leastIdle, mostIdle)
	case s.Recycle < 0:
		return fail("recycle_bytes %d: must not be negative", s.Recycle)
	case s.Recycle > 0 && s.Class != cluster.Flex && s.Recycle >= s.Memory:
		return fail("recycle_bytes %d: must be less than its memory, %d, or it never applies", s.Recycle, s.Memory)
	case !filepath.IsAbs(s.Dir):
		return fail("dir %q: must be an absolute path", cluster.Clip(s.Dir))
	case bytesOf(&s) > mostBytes:
		return fail("command, env and settings have %d bytes: must be at most %d", bytesOf(&s), mostBytes)
	}
	for _, text := range append(append([]string{s.Dir}, s.Env...), s.Command...) {
		if _, err := cluster.DecodeText(text); err != nil {
			return fail("command, env and dir: %w", err)
		}
	}
	if err := s.Inherited.Check(); err != nil {
		return fail("%w", err)
	}
	if _, err := newPolicy(&s); err != nil {
		return fail("%w", err)
	}
	j := jobOf(&s, 0)
	if err := j.CheckRuns(); err != nil {
		return fail("%w", err)
	}
	if err := cmp.Or(j.CheckCommand(0), j.CheckExec(0, s.Env, s.Inherited)); err != nil {
		return fail("%w", err)
	}
	return nil
}

// newPolicy makes the policy of the pool.
func newPolicy(s *Spec) (policy.Policy, error) {
	p, err := policy.New(s.Policy, s.Settings)
	if err == nil {
		err = policy.CheckUsed(s.Settings, s.Policy)
	}
	if err == nil {
		err = live.CheckPolicy(p)
	}
	return p, err
}

// bytesOf is the length of the texts, which are kept in memory and in the definition.
func bytesOf(s *Spec) (bytes int) {
	for _, text := range append(append([]string{s.Dir}, s.Env...), s.Command...) {
		bytes += len(text)
	}
	for name, value := range s.Settings {
		bytes += len(name) + len(value)
	}
	return bytes
}

// needOf is what one executor requests.
func needOf(s *Spec) resource.Vector { return resource.Of(s.CPU, s.Memory) }

// jobOf is the job that an executor is, without what depends on its launch.
func jobOf(s *Spec, number int) *cluster.Job {
	return &cluster.Job{Name: fmt.Sprintf("%s executor %d", s.Name, number), App: appOf(s.Name), Queue: s.Queue,
		Class: s.Class, MaxAttempts: 1,
		Stages: []cluster.Stage{{Name: "executor", Tasks: 1, Ideal: needOf(s), MaxMemory: s.MaxMemory,
			Command: cluster.Command{Args: s.Command}}}}
}

// appOf is what jobs of a pool have in common.
func appOf(pool string) string { return appPrefix + pool }

const appPrefix = "pool/"

// numberOf returns the number of the executor that a job of a pool is; ok is false if the job is not an executor.
func numberOf(name string, j *api.Job) (number int, ok bool) {
	text, ok := strings.CutPrefix(j.Name, name+" executor ")
	if !ok || len(text) > len("1073741824") {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		number = 10*number + int(c-'0')
	}
	return number, text != "" && number <= pool.MostNumber
}

// isPoolName reports whether a pool can have this name. The name is a part of paths and of the names of files.
func isPoolName(name string) bool {
	for i, c := range []byte(name) {
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && (i == 0 || c != '.' && c != '-' && c != '_') {
			return false
		}
	}
	return name != "" && len(name) <= LongestName
}
