package trace

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// examples returns the code blocks of docs/formats.md in the given language.
func examples(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, part := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		all = append(all, block)
	}
	if len(all) == 0 {
		t.Fatalf("docs/formats.md has no example in %s", language)
	}
	return all
}

func TestDocumentedJobFiles(t *testing.T) {
	for i, text := range examples(t, "yaml") {
		w, err := ReadJobs(strings.NewReader(text), "example", nil)
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

func TestDocumentedTrace(t *testing.T) {
	for i, text := range examples(t, "json") {
		w, err := ReadDSS(strings.NewReader(text), "example")
		if err != nil {
			t.Fatalf("example %d: %v", i+1, err)
		}
		if len(w.Jobs) != 2 || w.Jobs[1].After != 0 || !w.Jobs[1].Stages[1].Elastic() {
			t.Errorf("example %d: %+v", i+1, w.Jobs)
		}
	}
}

func TestDocumentedEventLog(t *testing.T) {
	for i, text := range examples(t, "jsonl") {
		if _, records, err := readLog([]byte(text)); err != nil || len(records) != 3 {
			t.Errorf("example %d: %d records, %v", i+1, len(records), err)
		}
	}
}

// Every field that a reader takes is documented.
func TestEveryFieldIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := slices.Concat([]string{"memory:FORM", "slowdown", "disk_rate", "durations"}, dssJobFields, dssTaskFields)
	fields = slices.Concat(fields, jobFields, stageFields, elasticityShapes, truthFields, phaseFields)
	for _, name := range fields {
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`{"+name+"}`") {
			t.Errorf("docs/formats.md does not mention %s", name)
		}
	}
}
