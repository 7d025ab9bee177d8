package clusterfile

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/form"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
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
	n, err := form.Document(data, name, "cluster")
	if err != nil {
		return nil, err
	}
	c := New()
	known := append([]string{"bellows_cluster", "nodes", "application_master", "acquire", "machine", "swap", "caps",
		"failures", "flex", "misjudge"}, form.Names(c)...)
	c.read(form.Open(name, "", n, &err, known...))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// read reads the whole file.
func (c *Cluster) read(m *form.Mapping) {
	if v, _ := m.Scalar("bellows_cluster"); v != version {
		m.Fail("bellows_cluster", "must be %s, the version of the format", version)
	}
	m.Read(c)
	if m.Has("nodes") {
		c.readGroups(m)
	}
	m.Fill("application_master", &c.Coordinator)
	if m.Has("acquire") {
		c.Acquire = new(string)
		*c.Acquire = m.Choice("acquire", sim.Acquisitions())
	}
	if m.Has("machine") {
		c.Machine = new(string)
		*c.Machine = m.Choice("machine", sim.Machines())
	}
	m.Fill("swap", &c.Swap)
	if m.Has("caps") {
		c.Caps = m.Choice("caps", []string{"none", "cpus", "all"})
	}
	if m.Has("still") {
		c.Still = m.Choice("still", []string{"lends", "keeps"})
	}
	m.Fill("failures", &c.Failures)
	if flex := m.Fill("flex", &c.Flex, "manager", "puff_ratio"); flex != nil {
		c.Flex.readManager(flex)
	}
	if misjudge := m.Fill("misjudge", &c.Misjudge, misjudged...); misjudge != nil {
		c.Misjudge.readErrors(misjudge)
	}
}

func (f *Flex) readManager(m *form.Mapping) {
	if m.Has("manager") {
		f.Manager = m.Choice("manager", memory.PresetNames())
	}
	if m.Has("puff_ratio") {
		text, _ := m.Scalar("puff_ratio")
		ratio, err := strconv.ParseFloat(text, 64)
		if err == nil && ratio != 0 {
			_, err = memory.PresetOf("default", ratio)
		}
		if err != nil {
			m.Fail("puff_ratio", "must be 0, or from 0.01 to 100")
		}
		f.PuffRatio = ratio
	}
}

// misjudged are the estimates that can deviate from the truth.
var misjudged = []string{"duration", "memory", "penalty", "demand"}

func (d *Misjudge) readErrors(m *form.Mapping) {
	var parts []string
	for _, part := range misjudged {
		if !m.Has(part) {
			continue
		}
		text, _ := m.Scalar(part)
		if _, err := workload.ParseMisjudgement(part + "=" + text); err != nil || strings.Contains(text, ",") {
			m.Fail(part, "must be an error such as 0.15, or two with a colon between them, above -1 and at most 10")
		}
		parts = append(parts, part+"="+text)
	}
	if parts != nil {
		d.Text = strings.Join(parts, ",")
	}
}

// readGroups reads the nodes: a list of groups, whose nodes have different names.
func (c *Cluster) readGroups(m *form.Mapping) {
	total := 0
	seen := map[string]bool{}
	for i, n := range m.List("nodes", "group of nodes") {
		in := m.Child(fmt.Sprintf("nodes %d", i+1), n, append(form.Names(&Group{}), "count", "name", "names")...)
		g := readGroup(in, mostNodes-total, seen)
		if m.Failed() {
			return
		}
		total += len(g.Names)
		for _, name := range g.Names {
			if seen[name] {
				in.FailAt(in.Line, "%s%s: is the name of two nodes", in.Who, name)
			}
			seen[name] = true
		}
		c.Groups = append(c.Groups, g)
	}
}

// readGroup reads one group of up to most nodes. Nodes without names are numbered, from the first free number on.
func readGroup(m *form.Mapping, most int, taken map[string]bool) Group {
	g := Group{Unknown: m.Unknown()}
	m.Read(&g)
	count, base := m.Whole("count", 1, mostNodes, 0), "node"
	if m.Has("name") {
		base = m.Name("name")
	}
	if m.Has("names") {
		g.Names = m.Names("names")
	}
	switch {
	case g.Capacity[resource.CPU] == 0:
		m.Fail("cpus", "must be above 0")
	case g.Capacity[resource.Memory] == 0:
		m.Fail("memory", "must be above 0")
	case g.Names != nil && (m.Has("count") || m.Has("name")):
		m.Fail("names", "cannot be combined with count or name")
	case max(count, len(g.Names)) > most:
		m.FailAt(m.Line, "%s: a cluster has at most %d nodes", strings.TrimSuffix(m.Who, " "), mostNodes)
	case g.Names == nil && count == 0:
		m.Fail("count", "must be at least 1, or names given")
	}
	if g.Names == nil && !m.Failed() {
		first := 0
		for taken[base+strconv.Itoa(first+1)] {
			first++
		}
		g.Names = Numbered(base, first+count)[first:]
	}
	return g
}
