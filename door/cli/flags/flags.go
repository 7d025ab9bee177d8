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

	"github.com/bellows-rm/bellows/core/resource"
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

// Parsed is a flag for a T: parse reads what a user writes, and print writes the default as a user would. Unit is the
// name of the value in help texts.
func Parsed[T any](to *T, unit string, parse func(string) (T, error), print func(T) string) pflag.Value {
	return value[T]{to, unit, parse, print}
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

func amount(to *resource.Amount, unit string, parse func(string) (resource.Amount, error),
	print func(resource.Amount) string) Amount {
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
			return 0, fmt.Errorf("write a number and one of ms, s, m, h, such as 90s, up to %v",
				time.Duration(math.MaxInt64).Truncate(time.Hour))
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

// Switch is a flag for true or false. The flag without a value is true: see pflag.Flag.NoOptDefVal.
func Switch(to *bool) pflag.Value {
	parse := func(text string) (bool, error) {
		if text != "true" && text != "false" {
			return false, fmt.Errorf("must be true or false")
		}
		return text == "true", nil
	}
	return value[bool]{to, "bool", parse, strconv.FormatBool}
}

// Count is a flag for a whole number from least to most.
func Count[T ~int | ~int64](to *T, least, most T) pflag.Value {
	return value[T]{to, "number", func(text string) (T, error) { return parseCount(text, least, most) },
		func(n T) string { return strconv.FormatInt(int64(n), 10) }}
}

func parseCount[T ~int | ~int64](text string, least, most T) (T, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(least) || n > int64(most) {
		return 0, fmt.Errorf("must be a whole number from %d to %d", least, most)
	}
	return T(n), nil
}

// Seed is a flag for the seed of a random generator.
func Seed(to *uint64) pflag.Value {
	parse := func(text string) (uint64, error) {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("must be a whole number from 0 to %d", uint64(math.MaxUint64))
		}
		return n, nil
	}
	return value[uint64]{to, "number", parse, func(n uint64) string { return strconv.FormatUint(n, 10) }}
}

// Number is a flag for a number from least to most.
func Number(to *float64, least, most float64) pflag.Value {
	return value[float64]{to, "number", func(text string) (float64, error) { return parseNumber(text, least, most) },
		formatNumber}
}

func parseNumber(text string, least, most float64) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < least || n > most {
		return 0, fmt.Errorf("must be a number from %v to %v", least, most)
	}
	return n, nil
}

func formatNumber(n float64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// Sizes is a flag for amounts of memory, separated by commas, such as 64MiB,128MiB. It sorts them and drops
// repetitions.
func Sizes(to *[]resource.Amount) pflag.Value {
	v := list(to, "sizes", func(text string) (resource.Amount, error) {
		a, err := resource.ParseMemory(text)
		if err == nil && a <= 0 {
			err = fmt.Errorf("must be above 0")
		}
		return a, err
	}, resource.FormatMemoryExact)
	parse := v.parse
	v.parse = func(text string) ([]resource.Amount, error) {
		all, err := parse(text)
		slices.Sort(all)
		return slices.Compact(all), err
	}
	return v
}

// list is a flag for values that are separated by commas.
func list[T any](to *[]T, unit string, parse func(string) (T, error), print func(T) string) value[[]T] {
	return value[[]T]{to, unit, func(text string) (all []T, err error) {
		for one := range strings.SplitSeq(text, ",") {
			v, err := parse(strings.TrimSpace(one))
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	}, func(all []T) string {
		var texts []string
		for _, v := range all {
			texts = append(texts, print(v))
		}
		return strings.Join(texts, ",")
	}}
}

// Words is a flag for one of a few words.
type Words struct {
	value[string]
	words []string
}

// Words returns the words, for completion by a shell.
func (v Words) Words() []string { return v.words }

// Choice is a flag for one of a few words.
func Choice(to *string, words ...string) Words {
	return Words{words: words, value: value[string]{to, "name", func(text string) (string, error) {
		return parseWord(text, words)
	}, func(text string) string { return text }}}
}

func parseWord(text string, words []string) (string, error) {
	if !slices.Contains(words, text) {
		return "", fmt.Errorf("must be one of %s", strings.Join(words, ", "))
	}
	return text, nil
}

// texts is a flag for texts separated by commas, which may be repeated.
type texts struct {
	value[[]string]
	given bool
}

// Texts is a flag for texts separated by commas. It may be repeated, and adds to the texts given before.
func Texts(to *[]string) pflag.Value {
	same := func(text string) string { return text }
	return &texts{value: list(to, "names", func(text string) (string, error) { return text, nil }, same)}
}

// Set implements pflag.Value.
func (v *texts) Set(text string) error {
	more, err := v.parse(text)
	if !v.given {
		*v.to, v.given = nil, true
	}
	*v.to = append(*v.to, more...)
	return err
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
