package jobfile

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/form"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/internal/testfile"
)

func TestDocumentedJobFiles(t *testing.T) {
	for i, text := range testfile.Examples(t, "../../docs/formats.md", "yaml") {
		w, err := Read(strings.NewReader(text), "example", nil)
		if err != nil {
			t.Errorf("example %d: %v", i+1, err)
			continue
		}
		for _, j := range w.Jobs {
			for _, s := range j.Stages {
				if s.Duration == 0 {
					t.Errorf("example %d cannot be simulated: job %q stage %q has no duration", i+1, j.Name, s.Name)
				}
			}
		}
	}
}

// Every field that a reader accepts is documented.
func TestEveryFieldIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := slices.Concat([]string{"memory:FORM", "slowdown", "disk_rate", "durations"}, jobFields,
		form.Names(&cluster.Stage{}), elasticityShapes, truthFields, form.Names(&cluster.Phase{}),
		form.Names(&workload.Heap{}))
	for _, name := range fields {
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`{"+name+"}`") {
			t.Errorf("docs/formats.md does not mention %s", name)
		}
	}
	for _, name := range testfile.Undocumented(t, "../../docs/formats.md", "Job files", form.Names(&cluster.Stage{})) {
		t.Errorf("docs/formats.md has no row of a table that begins with %s", name)
	}
}
