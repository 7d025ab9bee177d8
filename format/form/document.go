package form

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/format/fault"
)

// Document parses a file that describes one thing, such as a cluster, in one YAML document, which is a mapping. An
// empty file is an empty mapping. file is used in errors, which are a *fault.Fault.
func Document(text []byte, file, thing string) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, fault.OfYAML(file, err)
	}
	if len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, fault.OfYAML(file, err)
		}
		return nil, fault.At(file, more.Line, "must describe one %s, but a second document begins", thing)
	}
	n := doc.Content[0]
	if n.Kind != yaml.MappingNode {
		return nil, fault.At(file, n.Line, "%s", mustBeMapping(n))
	}
	return n, nil
}
