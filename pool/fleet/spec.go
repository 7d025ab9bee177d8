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

// keepSetting is the setting of mira for which pools have a default of their own.
const keepSetting = "mira.keep"

// withDefaults returns s with defaults in place of what was left out.
func withDefaults(s api.PoolSpec) api.PoolSpec {
	s.CPU = cmp.Or(s.CPU, resource.Core)
	s.Idle = cmp.Or(s.Idle, api.DefaultPoolIdle)
	s.Policy = cmp.Or(s.Policy, api.DefaultPoolPolicy)
	if _, set := s.Settings[keepSetting]; s.Policy == api.DefaultPoolPolicy && !set {
		settings := map[string]string{keepSetting: api.DefaultPoolKeep}
		maps.Copy(settings, s.Settings)
		s.Settings = settings
	}
	if s.Language == api.PoolPython && len(s.Command) == 0 {
		s.Command = []string{api.DefaultPoolPython}
	}
	return s
}

// Check returns an error, which is api.Invalid, if the pool is not possible.
func Check(s api.PoolSpec) error {
	fail := func(format string, values ...any) error {
		return api.Errorf(api.Invalid, "pool %q "+format, append([]any{s.Name}, values...)...)
	}
	s = withDefaults(s)
	switch {
	case !isPoolName(s.Name):
		return api.Errorf(api.Invalid,
			"pool %q: its name must be 1 to %d letters, digits, dots, hyphens and underscores, and begin with a letter "+
				"or a digit", cluster.Clip(s.Name), LongestName)
	case s.Language != "" && s.Language != api.PoolPython && s.Language != api.PoolGo:
		return fail("language %q: must be python, go, or left out", cluster.Clip(s.Language))
	case len(s.Command) == 0:
		return fail("command: must be given, unless the language is python")
	case s.Max < 1 || s.Max > api.MostPoolExecutors:
		return fail("max %d: must be from 1 to %d", s.Max, api.MostPoolExecutors)
	case s.Min < 0 || s.Min > s.Max:
		return fail("min %d: must be from 0 to max, %d", s.Min, s.Max)
	case s.Memory <= 0:
		return fail("ideal_memory_bytes %d: must be given", s.Memory)
	case s.MaxMemory != 0 && s.Class != cluster.Flex:
		return fail("max_memory_bytes %d: is for executors of the class flex", s.MaxMemory)
	case s.Idle < leastIdle || s.Idle > mostIdle:
		return fail("idle_ns %d: must be from %d to %d", s.Idle, leastIdle, mostIdle)
	case s.Recycle < 0 || s.Recycle > resource.MostMemory:
		return fail("recycle_bytes %d: must be from 0 to %d", s.Recycle, resource.MostMemory)
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
func newPolicy(s *api.PoolSpec) (policy.Policy, error) {
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
func bytesOf(s *api.PoolSpec) (bytes int) {
	for _, text := range append(append([]string{s.Dir}, s.Env...), s.Command...) {
		bytes += len(text)
	}
	for name, value := range s.Settings {
		bytes += len(name) + len(value)
	}
	return bytes
}

// needOf is what one executor requests.
func needOf(s *api.PoolSpec) resource.Vector { return resource.Of(s.CPU, s.Memory) }

// jobOf is the job that an executor is, without what depends on its launch.
func jobOf(s *api.PoolSpec, number int) *cluster.Job {
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
