// Package flags has the types of the commands' flags: one per unit. The error of a wrong value says which values are
// allowed.
package flags

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/workload"
)

// value is a flag for a T: parse reads what a user writes, and print writes the default as a user would.
type value[T any] struct {
	to    *T
	unit  string // name of the value in help texts
	parse func(string) (T, error)
	print func(T) string
}

// String implements pflag.Value.
func (v value[T]) String() string { return v.print(*v.to) }

// Type implements pflag.Value.
func (v value[T]) Type() string { return v.unit }

// Set implements pflag.Value.
func (v value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err == nil {
		*v.to = parsed
	}
	return err
}

// Amount is a flag for an amount with its unit, above 0.
type Amount struct {
	value[resource.Amount]
	zero bool // 0 is allowed, too
}

// Of is a flag for an amount of a kind of resource.
func Of(k resource.Kind, to *resource.Amount) Amount {
	return amount(to, k.Unit(), k.Parse, k.FormatExact)
}

// Memory is a flag for bytes, such as 4GiB.
func Memory(to *resource.Amount) Amount { return Of(resource.Memory, to) }

// CPU is a flag for cores, such as 1.5.
func CPU(to *resource.Amount) Amount { return Of(resource.CPU, to) }

// Rate is a flag for bytes a second, such as 50MB/s.
func Rate(to *resource.Amount) Amount { return Of(resource.Disk, to) }

// Budget is a flag for bytes a day, such as 200GB/day.
func Budget(to *resource.Amount) Amount {
	const perDay = "/day"
	parse := func(text string) (resource.Amount, error) {
		bytes, ok := strings.CutSuffix(text, perDay)
		if !ok {
			return 0, fmt.Errorf("must be an amount a day, such as 200GB/day")
		}
		return resource.ParseMemory(bytes)
	}
	return amount(to, "budget", parse, func(a resource.Amount) string { return resource.FormatMemoryExact(a) + perDay })
}

func amount(to *resource.Amount, unit string, parse func(string) (resource.Amount, error), print func(resource.Amount) string) Amount {
	return Amount{value: value[resource.Amount]{to, unit, parse, func(a resource.Amount) string {
		if a == 0 {
			return ""
		}
		return print(a)
	}}}
}

// OrZero makes a flag accept 0, too, with or without a unit.
func (v Amount) OrZero() Amount { v.zero = true; return v }

// Set implements pflag.Value.
func (v Amount) Set(text string) error {
	if text == "0" && v.zero {
		*v.to = 0
		return nil
	}
	a, err := v.parse(text)
	if err != nil {
		return err
	}
	if a < 0 || a == 0 && !v.zero {
		return fmt.Errorf("must be above 0")
	}
	*v.to = a
	return nil
}

// Duration is a flag for a duration of at least least.
func Duration(to *time.Duration, least time.Duration) pflag.Value {
	parse := func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return 0, fmt.Errorf("write a number and one of ms, s, m, h, such as 90s")
		case d < least && least > 0:
			return 0, fmt.Errorf("must be at least %v", least)
		case d < least:
			return 0, fmt.Errorf("must not be negative")
		}
		return d, nil
	}
	print := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}
	return value[time.Duration]{to, "duration", parse, print}
}

// Count is a flag for a whole number from least to most.
func Count(to *int, least, most int) pflag.Value {
	return value[int]{to, "number", func(text string) (int, error) { return parseCount(text, least, most) }, strconv.Itoa}
}

func parseCount(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("must be a whole number from %d to %d", least, most)
	}
	return n, nil
}

// Counts is a flag for whole numbers from least to most, separated by commas.
func Counts(to *[]int, least, most int) pflag.Value {
	parse := func(text string) ([]int, error) {
		var all []int
		for one := range strings.SplitSeq(text, ",") {
			n, err := parseCount(one, least, most)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
		return all, nil
	}
	print := func(all []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ","), "[]") }
	return value[[]int]{to, "numbers", parse, print}
}

// Number is a flag for a number from least to most.
func Number(to *float64, least, most float64) pflag.Value {
	parse := func(text string) (float64, error) {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || n < least || n > most {
			return 0, fmt.Errorf("must be a number from %v to %v", least, most)
		}
		return n, nil
	}
	print := func(n float64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return value[float64]{to, "number", parse, print}
}

// Range is a flag for MIN:MAX.
func Range[T ~int | ~int64](to *workload.Range[T], parse func(string) (workload.Range[T], error), print func(T) string) pflag.Value {
	return value[workload.Range[T]]{to, "min:max", parse, func(r workload.Range[T]) string { return print(r.Min) + ":" + print(r.Max) }}
}

// Choice is a flag for one of a few words.
func Choice(to *string, words ...string) pflag.Value {
	parse := func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("must be one of %s", strings.Join(words, ", "))
		}
		return text, nil
	}
	return value[string]{to, "name", parse, func(text string) string { return text }}
}

// Settings is a flag that may be repeated: POLICY.NAME=VALUE.
type Settings map[string]string

// String implements pflag.Value.
func (v Settings) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, k+"="+v[k])
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (v Settings) Type() string { return "name=value" }

// Set implements pflag.Value.
func (v Settings) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || !strings.Contains(name, ".") {
		return fmt.Errorf("must be POLICY.NAME=VALUE; `bellows policies` lists them")
	}
	v[name] = value
	return nil
}
