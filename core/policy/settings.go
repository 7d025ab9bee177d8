package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Parameter is a setting of a policy, as users see it.
type Parameter struct {
	Name    string // "POLICY.NAME"
	Default string
	Meaning string
}

// settings are what the constructor of a policy declares and reads. The first error is kept.
type settings struct {
	policy   string
	values   map[string]string // what users have set, by "POLICY.NAME"
	declared []Parameter
	err      error
}

// declare adds a parameter and returns its value, which is parsed by one of the methods of setting. A constructor
// declares all parameters of its policy each time, in the order in which users see them.
func (s *settings) declare(name, byDefault, meaning string) setting {
	p := Parameter{s.policy + "." + name, byDefault, meaning}
	s.declared = append(s.declared, p)
	text, ok := s.values[p.Name]
	if !ok {
		text = byDefault
	}
	return setting{p.Name, text, &s.err}
}

// setting is the value of a parameter.
type setting struct {
	name, text string
	err        *error // settings.err
}

// fail records that the value is out of range, unless another error came first.
func (v setting) fail(must string) { v.reject(fmt.Errorf("must be %s", must)) }

// reject records an error in the value, unless another error came first.
func (v setting) reject(err error) {
	if *v.err == nil {
		*v.err = fmt.Errorf("setting %s=%q: %w", v.name, v.text, err)
	}
}

func (v setting) flag() bool {
	b, err := strconv.ParseBool(v.text)
	if err != nil {
		v.fail("true or false")
	}
	return b
}

func (v setting) oneOf(choices ...string) string {
	if !slices.Contains(choices, v.text) {
		v.fail("one of " + strings.Join(choices, ", "))
	}
	return v.text
}

// share is a number from 0 to 1.
func (v setting) share() float64 {
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		v.fail("a number from 0 to 1")
	}
	return f
}

// number is a number of at least 0.
func (v setting) number() float64 {
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || !(f >= 0) || math.IsInf(f, 0) {
		v.fail("a number of at least 0")
	}
	return f
}

// count is a whole number from 1 to most.
func (v setting) count(most int) int {
	n, err := strconv.Atoi(v.text)
	if err != nil || n < 1 || n > most {
		v.fail(fmt.Sprintf("a whole number from 1 to %d", most))
	}
	return n
}

// duration is above 0 and at most cluster.LongestTime.
func (v setting) duration() time.Duration {
	d, err := time.ParseDuration(v.text)
	if err != nil || d <= 0 || d > cluster.LongestTime {
		v.fail(fmt.Sprintf("a positive duration such as 1s, up to %v", cluster.LongestTime))
	}
	return d
}

// orNever is a duration that may be 0, which is never.
func (v setting) orNever() time.Duration {
	d, err := time.ParseDuration(v.text)
	if err != nil || d < 0 || d > cluster.LongestTime {
		v.fail(fmt.Sprintf("a duration such as 1s, up to %v, or 0s for never", cluster.LongestTime))
	}
	return d
}

// durationOr is a duration as above, or 0 for one of some words.
func (v setting) durationOr(words ...string) time.Duration {
	if slices.Contains(words, v.text) {
		return 0
	}
	d, err := time.ParseDuration(v.text)
	if err != nil || d <= 0 || d > cluster.LongestTime {
		v.fail(fmt.Sprintf("one of %s, or a positive duration such as 1s, up to %v", strings.Join(words, ", "),
			cluster.LongestTime))
	}
	return d
}

func (v setting) memory() resource.Amount {
	m, err := resource.ParseMemory(v.text)
	if err != nil || m <= 0 {
		v.fail("a positive amount of memory such as 100MB")
	}
	return m
}

// kinds is a list of resources, such as "disk,network", in the order of kinds.
func (v setting) kinds() (list []resource.Kind) {
	all := resource.KindsWhere(func(resource.Kind) bool { return true })
	for _, name := range strings.Split(v.text, ",") {
		at := slices.IndexFunc(all, func(k resource.Kind) bool { return k.Field() == name })
		if at < 0 {
			v.fail(fmt.Sprintf("a list of %s", resource.KindsOf(all...)))
			return nil
		}
		list = append(list, all[at])
	}
	slices.Sort(list)
	return slices.Compact(list)
}
