package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// settings reads the parameters of one policy and keeps the first error.
type settings struct {
	values     map[string]string
	parameters []Parameter
	err        error
}

// text returns the value of a parameter, which must be declared.
func (s *settings) text(name string) string {
	if v, ok := s.values[name]; ok {
		return v
	}
	for _, p := range s.parameters {
		if p.Name == name {
			return p.Default
		}
	}
	panic("policy: undeclared parameter " + name)
}

func (s *settings) fail(name, must string) {
	if s.err == nil {
		s.err = fmt.Errorf("setting %s=%q: must be %s", name, s.text(name), must)
	}
}

// reject records an error in the value of a setting.
func (s *settings) reject(name string, err error) {
	if s.err == nil {
		s.err = fmt.Errorf("setting %s=%q: %w", name, s.text(name), err)
	}
}

func (s *settings) flag(name string) bool {
	v, err := strconv.ParseBool(s.text(name))
	if err != nil {
		s.fail(name, "true or false")
	}
	return v
}

func (s *settings) oneOf(name string, choices ...string) string {
	v := s.text(name)
	if !slices.Contains(choices, v) {
		s.fail(name, fmt.Sprintf("one of %v", choices))
	}
	return v
}

// share is a number from 0 to 1.
func (s *settings) share(name string) float64 {
	v, err := strconv.ParseFloat(s.text(name), 64)
	if err != nil || !(v >= 0 && v <= 1) {
		s.fail(name, "a number from 0 to 1")
	}
	return v
}

// number is a number of at least 0.
func (s *settings) number(name string) float64 {
	v, err := strconv.ParseFloat(s.text(name), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		s.fail(name, "a number of at least 0")
	}
	return v
}

func (s *settings) duration(name string) time.Duration {
	v, err := time.ParseDuration(s.text(name))
	if err != nil || v <= 0 {
		s.fail(name, "a positive duration such as 1s")
	}
	return v
}

func (s *settings) memory(name string) resource.Amount {
	v, err := resource.ParseMemory(s.text(name))
	if err != nil || v <= 0 {
		s.fail(name, "a positive amount of memory such as 100MB")
	}
	return v
}
