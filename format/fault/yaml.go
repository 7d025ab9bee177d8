package fault

import (
	"regexp"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
)

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s:.*))$`)

// OfYAML describes an error of package go.yaml.in/yaml in one sentence: the file is not YAML.
func OfYAML(file string, err error) *Fault {
	f := &Fault{File: file, What: "must be YAML: " + cluster.ClipLine(err.Error())}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		f.Line, _ = strconv.Atoi(m[1])
		f.What = "must be YAML: " + cluster.ClipLine(m[2])
	}
	return f
}
