package contract

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

// Settings are what the constructor of a policy declares and reads. The first error is kept.
type Settings struct {
	Policy   string            // whose they are
	Values   map[string]string // what users have set, by "POLICY.NAME"
	Declared []Parameter       // in the order in which users see them
	Err      error             // the first error in a value
}

// Declare adds a parameter and returns its value, which is parsed by one of the methods of Setting. A constructor
// declares all parameters of its policy each time, in the order in which users see them.
func (s *Settings) Declare(name, byDefault, meaning string) Setting {
	p := Parameter{s.Policy + "." + name, byDefault, meaning}
	s.Declared = append(s.Declared, p)
	text, ok := s.Values[p.Name]
	if !ok {
		text = byDefault
	}
	return Setting{p.Name, text, &s.Err}
}

// Setting is the value of a parameter.
type Setting struct {
	name, Text string
	err        *error // Settings.Err
}

// Fail records that the value is out of range, unless another error came first.
func (v Setting) Fail(must string) { v.Reject(fmt.Errorf("must be %s", must)) }

// Reject records an error in the value, unless another error came first.
func (v Setting) Reject(err error) {
	if *v.err == nil {
		*v.err = fmt.Errorf("setting %s=%q: %w", v.name, v.Text, err)
	}
}

// Flag is true or false.
func (v Setting) Flag() bool {
	b, err := strconv.ParseBool(v.Text)
	if err != nil {
		v.Fail("true or false")
	}
	return b
}

// OneOf is one of some words.
func (v Setting) OneOf(choices ...string) string {
	if !slices.Contains(choices, v.Text) {
		v.Fail("one of " + strings.Join(choices, ", "))
	}
	return v.Text
}

// Share is a number from 0 to 1.
func (v Setting) Share() float64 {
	f, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		v.Fail("a number from 0 to 1")
	}
	return f
}

// Number is a number of at least 0.
func (v Setting) Number() float64 {
	f, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || !(f >= 0) || math.IsInf(f, 0) {
		v.Fail("a number of at least 0")
	}
	return f
}

// Count is a whole number from 1 to most.
func (v Setting) Count(most int) int {
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < 1 || n > most {
		v.Fail(fmt.Sprintf("a whole number from 1 to %d", most))
	}
	return n
}

// Duration is above 0 and at most cluster.LongestTime.
func (v Setting) Duration() time.Duration {
	d, err := time.ParseDuration(v.Text)
	if err != nil || d <= 0 || d > cluster.LongestTime {
		v.Fail(fmt.Sprintf("a positive duration such as 1s, up to %v", cluster.LongestTime))
	}
	return d
}

// OrNever is a duration that may be 0, which is never.
func (v Setting) OrNever() time.Duration {
	d, err := time.ParseDuration(v.Text)
	if err != nil || d < 0 || d > cluster.LongestTime {
		v.Fail(fmt.Sprintf("a duration such as 1s, up to %v, or 0s for never", cluster.LongestTime))
	}
	return d
}

// DurationOr is a duration as above, or 0 for one of some words.
func (v Setting) DurationOr(words ...string) time.Duration {
	if slices.Contains(words, v.Text) {
		return 0
	}
	d, err := time.ParseDuration(v.Text)
	if err != nil || d <= 0 || d > cluster.LongestTime {
		v.Fail(fmt.Sprintf("one of %s, or a positive duration such as 1s, up to %v", strings.Join(words, ", "),
			cluster.LongestTime))
	}
	return d
}

// Memory is a positive amount of memory.
func (v Setting) Memory() resource.Amount {
	m, err := resource.ParseMemory(v.Text)
	if err != nil || m <= 0 {
		v.Fail("a positive amount of memory such as 100MB")
	}
	return m
}

// Kinds is a list of resources, such as "disk,network", in the order of kinds.
func (v Setting) Kinds() (list []resource.Kind) {
	all := resource.KindsWhere(func(resource.Kind) bool { return true })
	for _, name := range strings.Split(v.Text, ",") {
		at := slices.IndexFunc(all, func(k resource.Kind) bool { return k.Field() == name })
		if at < 0 {
			v.Fail(fmt.Sprintf("a list of %s", resource.KindsOf(all...)))
			return nil
		}
		list = append(list, all[at])
	}
	slices.Sort(list)
	return slices.Compact(list)
}
