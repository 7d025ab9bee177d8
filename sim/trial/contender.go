package trial

import (
	"fmt"
	"maps"
	"strings"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
)

// Contender is a policy with its settings, for trials. A contender can take part in many trials at once.
type Contender struct {
	// Label is its name in tables, and the text from which it was parsed.
	Label string
	// Policy is the name of a policy, Settings are its settings by POLICY.NAME. A missing setting has its default.
	Policy   string
	Settings map[string]string
	// Pooled runs the policy on one node with the capacity of all nodes together. The node starts any number of tasks
	// per heartbeat, as the separate nodes together would.
	Pooled bool
	// Box is the fixed container of FLEX jobs, if any.
	Box Box
}

// poolSuffix marks a policy that runs on one node with the capacity of all nodes.
const poolSuffix = "pool"

// ParseContender reads NAME[@pool][@SIZE|@peak][:SETTING=VALUE...]. A part without = belongs to the value before it.
// settings apply to every policy whose name they begin with; settings in the text override them. The error names what
// is wrong with the text; On checks whether the policy and its settings exist.
func ParseContender(text string, settings map[string]string) (Contender, error) {
	parts := strings.Split(text, ":")
	suffixes := strings.Split(parts[0], "@")
	c := Contender{Label: text, Policy: suffixes[0], Settings: maps.Clone(settings)}
	if c.Settings == nil {
		c.Settings = map[string]string{}
	}
	for _, suffix := range suffixes[1:] {
		if suffix == poolSuffix {
			c.Pooled = true
			continue
		}
		var err error
		if c.Box, err = parseBox(suffix); err != nil {
			return c, fmt.Errorf("policy %q: what follows @ %w", parts[0], err)
		}
	}
	last := ""
	for _, part := range parts[1:] {
		setting, value, ok := strings.Cut(part, "=")
		switch {
		case ok && setting != "":
			last = c.Policy + "." + strings.TrimPrefix(setting, c.Policy+".")
			c.Settings[last] = value
		case !ok && last != "":
			c.Settings[last] += ":" + part
		default:
			return c, fmt.Errorf("policy %q: %q must be SETTING=VALUE", text, part)
		}
	}
	return c, nil
}

// AllSettings returns every setting of the policy with its effective value: the given value, or the default.
func (c Contender) AllSettings() map[string]string {
	all := map[string]string{}
	_, parameters := policy.About(c.Policy)
	for _, p := range parameters {
		all[p.Name] = p.Default
		if v, ok := c.Settings[p.Name]; ok {
			all[p.Name] = v
		}
	}
	return all
}

// Box is the fixed-size container of each task of a FLEX job, instead of a container whose memory changes. The zero
// value is no box: FLEX containers grow and shrink.
type Box struct {
	given bool
	size  resource.Amount // bytes; 0 is the largest working set of each stage
}

// parseBox reads a size, or peak.
func parseBox(text string) (Box, error) {
	if text == "peak" {
		return Box{given: true}, nil
	}
	size, err := resource.ParseMemory(text)
	if err != nil || size <= 0 {
		return Box{}, fmt.Errorf("must be pool, peak or a positive amount of memory")
	}
	return Box{true, size}, nil
}

// String returns the size, peak, or the empty string if there is no box.
func (b Box) String() string {
	switch {
	case !b.given:
		return ""
	case b.size == 0:
		return "peak"
	}
	return resource.FormatMemoryExact(b.size)
}

// fill puts the FLEX jobs of w into boxes, if b is given.
func (b Box) fill(w *workload.Workload) *workload.Workload {
	if !b.given {
		return w
	}
	return workload.Boxed(w, b.size)
}
