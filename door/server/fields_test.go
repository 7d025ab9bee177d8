package server

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/internal/testfile"
)

// answers are the schemas of what commands print with --json, in the order of the page that lists their fields.
var answers = []string{"Job", "Task", "Explanation", "TaskUsage", "Status", "Update", "Machine", "Dropped",
	"QuotaUse", "Token", "IssuedToken", "PoolSummary", "PoolDetail", "Application", "Imported", "Pruned"}

// docs/reference/fields.md lists the fields of answers, by the document of the API. With -rewrite it is written anew.
func TestFieldsOfAnswers(t *testing.T) {
	const page = "../../docs/reference/fields.md"
	all := within(documentIn(t, servedDocument(t)), "components", "schemas")
	text := new(bytes.Buffer)
	fmt.Fprintln(text, "# Fields of answers\n\nWhat `ps`, `explain`, `status`, `top`, `quota`, `token`, `pool`, "+
		"`profile list` and `prune` print with `--json`, and what the [API](api.md) answers:\n"+
		"generated from its document, `GET /openapi.json`, by `go test ./door/server -run FieldsOfAnswers -rewrite`.\n"+
		"[Output](output.md) says what holds for all fields, and what the commands make of them.")
	known := slices.Clone(answers)
	for i := 0; i < len(known); i++ {
		schema, _ := all[known[i]].(object)
		if schema == nil {
			t.Fatalf("the document has no %s", known[i])
		}
		fmt.Fprintf(text, "\n## %s\n\n| field | is | meaning |\n|---|---|---|\n", known[i])
		properties := within(schema, "properties")
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			property := properties[name].(object)
			is, of := kindOf(property)
			if of != "" && !slices.Contains(known, of) {
				known = append(known, of)
			}
			about, _ := property["description"].(string)
			fmt.Fprintf(text, "| `%s` | %s | %s |\n", name, is, strings.ReplaceAll(about, "|", `\|`))
		}
	}
	if testfile.Rewriting() {
		if err := os.WriteFile(page, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, text.Bytes()) {
		t.Errorf("%s is not what the document of the API says: run the test with -rewrite", page)
	}
}

// kindOf says what a value of a schema is, and which other schema it has; of is empty if it has none.
func kindOf(schema object) (is, of string) {
	if ref, ok := schema["$ref"].(string); ok {
		of = ref[strings.LastIndex(ref, "/")+1:]
		return fmt.Sprintf("[%s](#%s)", of, strings.ToLower(of)), of
	}
	if items, ok := schema["items"].(object); ok {
		is, of = kindOf(items)
		return "list of " + is, of
	}
	if values, ok := schema["additionalProperties"].(object); ok {
		is, of = kindOf(values)
		return "mapping to " + is, of
	}
	is, _ = schema["type"].(string)
	if schema["format"] == "date-time" {
		return "time", ""
	}
	if is == "" {
		is = "any"
	}
	return is, ""
}
