package clusterfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/fault"
	"github.com/bellows-rm/bellows/memory"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/workload"
)

// version of the format that is read.
const version = "1"

// mostNodes is the largest number of nodes of a cluster.
const mostNodes = 1 << 20

// Read reads a description of a cluster. name is used in errors, which are a *fault.Fault if the file is wrong: one
// sentence with file, line and field.
func Read(r io.Reader, name string) (*Cluster, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", name, err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, fault.OfYAML(name, err)
	}
	if len(doc.Content) == 0 {
		return nil, &fault.Fault{File: name, What: "bellows_cluster is missing: must be " + version + ", the version of the format"}
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, fault.OfYAML(name, err)
		}
		return nil, &fault.Fault{File: name, Line: more.Line, What: "must describe one cluster, but a second document begins"}
	}
	c := New()
	var wrong *wrongValue
	if err := c.read(doc.Content[0]); errors.As(err, &wrong) {
		return nil, &fault.Fault{File: name, Line: wrong.line, What: wrong.Error()}
	} else if err != nil {
		return nil, err
	}
	return c, nil
}

// wrongValue is a mistake at a line of a file.
type wrongValue struct {
	line int
	path string // names of fields, from the outermost on
	why  string
}

func (w *wrongValue) Error() string {
	if w.path == "" {
		return w.why
	}
	return w.path + ": " + w.why
}

// setter reads the value of a field, and returns what is wrong with it.
type setter func(n *yaml.Node) error

// fields are the fields that a mapping may have.
type fields map[string]setter

// read reads a mapping, whose fields must all be known and occur once. A mistake in a value gets the name of its field.
func (f fields) read(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return &wrongValue{line: n.Line, why: "must be a mapping of field names to values, but is " + shown(n)}
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, known := f[key.Value]
		switch line, twice := first[key.Value]; {
		case !known || key.Kind != yaml.ScalarNode:
			return &wrongValue{key.Line, shown(key), "unknown field; must be one of " + strings.Join(f.names(), ", ")}
		case twice:
			return &wrongValue{key.Line, key.Value, fmt.Sprintf("written twice, first in line %d", line)}
		}
		first[key.Value] = key.Line
		if err := read(value); err != nil {
			var wrong *wrongValue
			if !errors.As(err, &wrong) {
				wrong = &wrongValue{line: value.Line, path: shown(value), why: err.Error()}
			}
			return &wrongValue{wrong.line, strings.TrimSpace(key.Value + " " + wrong.path), wrong.why}
		}
	}
	return nil
}

func (f fields) names() []string {
	var all []string
	for name := range f {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// shown is a value as an error of one line shows it.
func shown(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "{...}"
	case n.Kind == yaml.SequenceNode:
		return "[...]"
	case n.Kind == yaml.AliasNode:
		return "*" + n.Value
	}
	return cluster.ClipLine(n.Value)
}

// text reads a scalar with parse, whose error says what the value must be.
func text[T any](to *T, parse func(string) (T, error)) setter {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return fmt.Errorf("must be one value")
		}
		v, err := parse(n.Value)
		if err == nil {
			*to = v
		}
		return err
	}
}

// given is text for a value whose absence differs from zero.
func given[T any](to **T, parse func(string) (T, error)) setter {
	return func(n *yaml.Node) error {
		v := new(T)
		err := text(v, parse)(n)
		if err == nil {
			*to = v
		}
		return err
	}
}

// nested reads a mapping.
func nested(f fields) setter { return f.read }

// read reads the whole file.
func (c *Cluster) read(n *yaml.Node) error {
	format := ""
	misjudged := map[string]string{}
	err := fields{
		"bellows_cluster": text(&format, func(s string) (string, error) {
			if s != version {
				return "", fmt.Errorf("must be %s, the version of the format", version)
			}
			return s, nil
		}),
		"nodes":                c.groups,
		"heartbeat":            given(&c.Heartbeat, duration),
		"starts_per_heartbeat": given(&c.StartsPerHeartbeat, whole(0, mostNodes)),
		"application_master": nested(fields{
			"heartbeat": given(&c.CoordinatorHeartbeat, duration),
			"cpus":      text(&c.Coordinator[resource.CPU], orZero(amount(resource.CPU))),
			"memory":    text(&c.Coordinator[resource.Memory], orZero(size)),
		}),
		"launch_delay": text(&c.LaunchDelay, duration),
		"acquire":      given(&c.Acquire, choice(sim.Acquisitions())),
		"machine":      given(&c.Machine, choice(sim.Machines())),
		"swap": nested(fields{
			"size":  given(&c.Swap, orZero(size)),
			"speed": given(&c.SwapSpeed, orZero(amount(resource.Disk))),
		}),
		"failures": nested(fields{
			"every":        text(&c.Failures.Every, duration),
			"repair_after": text(&c.Failures.Repair, duration),
			"seed":         text(&c.Failures.Seed, seed),
		}),
		"flex": nested(fields{
			"manager":       text(&c.Flex.Manager, choice(memory.ManagerNames())),
			"puff_ratio":    text(&c.Flex.PuffRatio, puffRatio),
			"min_container": text(&c.Flex.MinContainer, orZero(size)),
			"look":          given(&c.Flex.Look, duration),
		}),
		"misjudge": nested(fields{
			"duration": deviation(misjudged, "duration"),
			"memory":   deviation(misjudged, "memory"),
			"penalty":  deviation(misjudged, "penalty"),
			"seed":     text(&c.Misjudge.Seed, seed),
		}),
	}.read(n)
	if err != nil {
		return err
	}
	if format == "" {
		return &wrongValue{n.Line, "bellows_cluster is missing", "must be " + version + ", the version of the format"}
	}
	var parts []string
	for _, name := range []string{"duration", "memory", "penalty"} {
		if value, ok := misjudged[name]; ok {
			parts = append(parts, name+"="+value)
		}
	}
	if len(parts) > 0 {
		c.Misjudge.Text = strings.Join(parts, ",")
	}
	return nil
}

// groups reads the nodes: a list of groups, whose nodes have different names.
func (c *Cluster) groups(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return fmt.Errorf("must be a list of at least one group of nodes")
	}
	total := 0
	seen := map[string]bool{}
	for i, element := range n.Content {
		g, err := readGroup(element, mostNodes-total, seen)
		total += len(g.Names)
		var wrong *wrongValue
		if errors.As(err, &wrong) {
			return &wrongValue{wrong.line, strings.TrimSpace(fmt.Sprintf("%d %s", i+1, wrong.path)), wrong.why}
		} else if err != nil {
			return err
		}
		for _, name := range g.Names {
			if seen[name] {
				return &wrongValue{element.Line, fmt.Sprintf("%d %s", i+1, name), "is the name of two nodes"}
			}
			seen[name] = true
		}
		c.Groups = append(c.Groups, g)
	}
	return nil
}

// readGroup reads one group of at most most nodes. Nodes without names are numbered, from the first free number on.
func readGroup(n *yaml.Node, most int, taken map[string]bool) (Group, error) {
	var g Group
	count, base := 0, "node"
	form := fields{
		"count": text(&count, whole(1, mostNodes)),
		"name":  text(&base, nodeName),
		"names": func(n *yaml.Node) error {
			if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > mostNodes {
				return fmt.Errorf("must be a list of at least one name, of at most %d nodes", mostNodes)
			}
			g.Names = make([]string, len(n.Content))
			for i, element := range n.Content {
				if err := text(&g.Names[i], nodeName)(element); err != nil {
					return &wrongValue{element.Line, shown(element), err.Error()}
				}
			}
			return nil
		},
	}
	for k := range resource.NumKinds {
		parse := amount(k)
		if !k.Stated() {
			parse = orZero(parse)
		}
		form[k.Field()] = text(&g.Capacity[k], parse)
	}
	if err := form.read(n); err != nil {
		return g, err
	}
	for _, k := range resource.KindsWhere(resource.Kind.Stated) {
		if g.Capacity[k] == 0 {
			return g, &wrongValue{n.Line, k.Field() + " is missing", "must be above 0"}
		}
	}
	switch {
	case g.Names != nil && (count > 0 || base != "node"):
		return g, &wrongValue{n.Line, "names", "cannot stand beside count or name"}
	case max(count, len(g.Names)) > most:
		return g, &wrongValue{line: n.Line, why: fmt.Sprintf("a cluster has at most %d nodes", mostNodes)}
	case g.Names == nil && count == 0:
		return g, &wrongValue{n.Line, "count is missing", "must be at least 1, or names given"}
	}
	if g.Names == nil {
		first := 0
		for taken[base+strconv.Itoa(first+1)] {
			first++
		}
		g.Names = Numbered(base, first+count)[first:]
	}
	return g, nil
}

func nodeName(s string) (string, error) {
	if !cluster.IsName(s) {
		return "", fmt.Errorf("must be a name of 1 to %d printable characters", cluster.LongestName)
	}
	return s, nil
}

// duration reads a non-negative duration; a bare 0 is accepted.
func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > cluster.LongestTime {
		return 0, fmt.Errorf("must be a duration with its unit from 0s to %v, such as 90s", cluster.LongestTime)
	}
	return d, nil
}

func whole(least, most int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		return n, nil
	}
}

func seed(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("must be a whole number from 0 on")
	}
	return n, nil
}

func choice(of []string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !slices.Contains(of, s) {
			return "", fmt.Errorf("must be one of %s", strings.Join(of, ", "))
		}
		return s, nil
	}
}

func puffRatio(s string) (float64, error) {
	r, err := strconv.ParseFloat(s, 64)
	if err == nil && r != 0 {
		_, err = memory.ManagerOf("default", r)
	}
	if err != nil {
		return 0, fmt.Errorf("must be 0, or from 0.01 to 100")
	}
	return r, nil
}

// amount reads an amount above 0 of a kind of resource.
func amount(k resource.Kind) func(string) (resource.Amount, error) {
	return func(s string) (resource.Amount, error) {
		a, err := k.Parse(s)
		if err != nil {
			why := err.Error() // begins with the value
			if _, rest, ok := strings.Cut(why, strconv.Quote(s)+" "); ok {
				why = rest
			}
			return 0, errors.New(why)
		}
		if a <= 0 || a > k.Most() {
			return 0, fmt.Errorf("must be above 0, and not larger than any cluster")
		}
		return a, nil
	}
}

// orZero also accepts 0, which needs no unit.
func orZero(read func(string) (resource.Amount, error)) func(string) (resource.Amount, error) {
	return func(s string) (resource.Amount, error) {
		if s == "0" {
			return 0, nil
		}
		return read(s)
	}
}

// size reads memory above 0.
var size = amount(resource.Memory)

// deviation reads a deviation of estimates into the named part.
func deviation(to map[string]string, part string) setter {
	return func(n *yaml.Node) error {
		var s string
		return text(&s, func(s string) (string, error) {
			if _, err := workload.ParseMisjudgement(part + "=" + s); err != nil || strings.Contains(s, ",") {
				return "", fmt.Errorf("must be an error such as 0.15, or two with a colon between them, above -1 and at most 10")
			}
			to[part] = s
			return s, nil
		})(n)
	}
}
