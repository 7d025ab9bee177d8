package importer

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bellows-rm/bellows/core/cluster"
)

// part says where a file stands in a log of several files.
type part struct {
	Source
	log       string // what the parts of a log have in common
	number    int    // of parts of Spark, from 1
	compacted bool   // it replaces all parts up to its number
	date      string // of parts of Databricks; the part without one is the newest
}

var (
	// events_10_application_1_0001.zstd, perhaps with .compact behind it, in a folder eventlog_v2_application_1_0001.
	rolledName = pattern(`^events_([0-9]{1,9})_([^.]+)[^/]*$`)
	// eventlog-2021-06-14--20-00.gz, and eventlog.
	databricksName = pattern(`^eventlog(-[0-9]{4}-[0-9]{2}-[0-9]{2}--[0-9]{2}-[0-9]{2})?(\.gz)?$`)
)

// pattern returns a regular expression that is compiled when it is first used: most commands read no logs of Spark.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// partOf returns the place of a file in a log, from its name.
func partOf(s Source) part {
	folder, name := path.Split(s.Name)
	if m := rolledName().FindStringSubmatch(name); m != nil {
		if number, err := strconv.Atoi(m[1]); err == nil {
			compacted := strings.HasSuffix(name, ".compact")
			return part{Source: s, log: folder + "events_" + m[2], number: number, compacted: compacted}
		}
	}
	if m := databricksName().FindStringSubmatch(name); m != nil {
		return part{Source: s, log: folder + "eventlog", date: cmp.Or(m[1], "~")} // ~ is after every date
	}
	return part{Source: s}
}

// logs puts the parts of logs together, in their order: files in one folder with names that Spark or Databricks give to
// the parts of a log. Every other file is a log of its own.
func (f *Spark) logs(sources []Source, n *notes) [][]Source {
	var order []string
	parts := map[string][]part{}
	for i, s := range sources {
		if strings.HasPrefix(path.Base(s.Name), "appstatus_") {
			continue // beside the parts; without content
		}
		p := partOf(s)
		if p.log == "" {
			p.log = fmt.Sprint(i)
		}
		if parts[p.log] == nil {
			order = append(order, p.log)
		}
		parts[p.log] = append(parts[p.log], p)
	}
	all := make([][]Source, len(order))
	for i, log := range order {
		all[i] = inOrder(parts[log], n)
	}
	return all
}

// inOrder returns the parts of a log, oldest first, from the last compacted one on.
func inOrder(parts []part, n *notes) (all []Source) {
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.date, b.date), byCompaction(a, b))
	})
	for i := len(parts) - 1; i > 0; i-- {
		if parts[i].compacted {
			parts = parts[i:]
			break
		}
	}
	next := 1
	for _, p := range parts {
		if missing := p.number - next; missing > 0 && !p.compacted {
			n.add(fmt.Sprintf("parts of a log are missing before %s", cluster.Clip(path.Base(p.Name))), missing)
		}
		next = p.number + 1
		all = append(all, p.Source)
	}
	return all
}

// byCompaction puts a compacted part behind the part with its number.
func byCompaction(a, b part) int {
	switch {
	case a.compacted == b.compacted:
		return 0
	case a.compacted:
		return 1
	}
	return -1
}
