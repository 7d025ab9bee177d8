package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/trace"
)

// amountValue is a flag for an amount with its unit. least is the smallest value it takes.
type amountValue struct {
	to    *resource.Amount
	least resource.Amount
	kind  resource.Kind
}

func memoryValue(to *resource.Amount) amountValue { return amountValue{to, 1, resource.Memory} }
func cpuValue(to *resource.Amount) amountValue    { return amountValue{to, 1, resource.CPU} }
func rateValue(to *resource.Amount) amountValue   { return amountValue{to, 1, resource.Disk} }

// orZero makes a flag take 0 as well.
func (v amountValue) orZero() amountValue { v.least = 0; return v }

func (v amountValue) String() string {
	switch {
	case v.to == nil || *v.to == 0:
		return ""
	case v.kind == resource.CPU:
		return resource.FormatCPU(*v.to)
	case v.kind == resource.Disk:
		return resource.FormatRateExact(*v.to)
	}
	return resource.FormatMemoryExact(*v.to)
}

func (v amountValue) Type() string {
	switch v.kind {
	case resource.CPU:
		return "cores"
	case resource.Disk:
		return "rate"
	}
	return "size"
}

func (v amountValue) Set(text string) error {
	parse := resource.ParseMemory
	switch v.kind {
	case resource.CPU:
		parse = resource.ParseCPU
	case resource.Disk:
		parse = resource.ParseRate
	}
	if text == "0" && v.least == 0 {
		*v.to = 0
		return nil
	}
	a, err := parse(text)
	if err != nil {
		return err
	}
	if a < v.least {
		return fmt.Errorf("must be above 0")
	}
	*v.to = a
	return nil
}

// budgetValue is a flag for bytes a day.
type budgetValue struct{ to *resource.Amount }

func (v budgetValue) String() string {
	if v.to == nil || *v.to == 0 {
		return ""
	}
	return resource.FormatMemoryExact(*v.to) + "/day"
}

func (v budgetValue) Type() string { return "budget" }

func (v budgetValue) Set(text string) error {
	bytes, ok := strings.CutSuffix(text, "/day")
	if !ok {
		return fmt.Errorf("must be an amount a day, such as 200GB/day")
	}
	a, err := resource.ParseMemory(bytes)
	if err != nil {
		return err
	}
	if a < 1 {
		return fmt.Errorf("must be above 0")
	}
	*v.to = a
	return nil
}

// durationValue is a flag for a duration of at least least.
type durationValue struct {
	to    *time.Duration
	least time.Duration
}

func (v durationValue) String() string {
	if v.to == nil || *v.to == 0 {
		return ""
	}
	return v.to.String()
}

func (v durationValue) Type() string { return "duration" }

func (v durationValue) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("write a number and one of ms, s, m, h, such as 90s")
	}
	if d < v.least {
		if v.least > 0 {
			return fmt.Errorf("must be at least %v", v.least)
		}
		return fmt.Errorf("must not be negative")
	}
	*v.to = d
	return nil
}

// countValue is a flag for a whole number from least to most.
type countValue struct {
	to          *int
	least, most int
}

func (v countValue) String() string {
	if v.to == nil {
		return ""
	}
	return strconv.Itoa(*v.to)
}

func (v countValue) Type() string { return "number" }

func (v countValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < v.least || n > v.most {
		return fmt.Errorf("must be a whole number from %d to %d", v.least, v.most)
	}
	*v.to = n
	return nil
}

// countsValue is a flag for whole numbers from least to most, with commas between them.
type countsValue struct {
	to          *[]int
	least, most int
}

func (v countsValue) String() string {
	if v.to == nil {
		return ""
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*v.to), " ", ","), "[]")
}

func (v countsValue) Type() string { return "numbers" }

func (v countsValue) Set(text string) error {
	var all []int
	for one := range strings.SplitSeq(text, ",") {
		n := 0
		if err := (countValue{&n, v.least, v.most}).Set(one); err != nil {
			return err
		}
		all = append(all, n)
	}
	*v.to = all
	return nil
}

// rangeValue is a flag for MIN:MAX.
type rangeValue[T ~int | ~int64] struct {
	to    *trace.Range[T]
	parse func(string) (trace.Range[T], error)
	print func(T) string
}

func (v rangeValue[T]) String() string {
	if v.to == nil {
		return ""
	}
	return v.print(v.to.Min) + ":" + v.print(v.to.Max)
}

func (v rangeValue[T]) Type() string { return "min:max" }

func (v rangeValue[T]) Set(text string) error {
	r, err := v.parse(text)
	if err != nil {
		return err
	}
	*v.to = r
	return nil
}

// choiceValue is a flag for one of a few words.
type choiceValue struct {
	to      *string
	choices []string
}

func (v choiceValue) String() string {
	if v.to == nil {
		return ""
	}
	return *v.to
}

func (v choiceValue) Type() string { return "name" }

func (v choiceValue) Set(text string) error {
	if !slices.Contains(v.choices, text) {
		return fmt.Errorf("must be one of %s", strings.Join(v.choices, ", "))
	}
	*v.to = text
	return nil
}

// settingsValue is a flag that may be given again: POLICY.NAME=VALUE.
type settingsValue map[string]string

func (v settingsValue) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, k+"="+v[k])
	}
	return strings.Join(parts, ",")
}

func (v settingsValue) Type() string { return "name=value" }

func (v settingsValue) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || !strings.Contains(name, ".") {
		return fmt.Errorf("must be POLICY.NAME=VALUE; `bellows policies` lists them")
	}
	v[name] = value
	return nil
}

// newPolicy makes a policy; a test has one of its own.
var newPolicy = policy.New

// newPolicies returns the named policies; a mistake in a name or a setting is the user's.
func newPolicies(names []string, settings map[string]string) ([]policy.Policy, error) {
	var made []policy.Policy
	for _, name := range names {
		p, err := newPolicy(name, settings)
		if err != nil {
			return nil, usage(err)
		}
		made = append(made, p)
	}
	return made, nil
}
