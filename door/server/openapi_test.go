package server

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/internal/testfile"
)

// servedDocument returns the API's document, as a client gets it.
func servedDocument(t *testing.T) []byte {
	t.Helper()
	_, socket := start(t, newFake(), newFakeStore())
	r, err := httpOf(client.New(socket)).Get("http://bellows/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The API's document is checked in, so that a change of the API shows as a change of the file.
func TestOpenAPI(t *testing.T) {
	var got bytes.Buffer
	if err := json.Indent(&got, servedDocument(t), "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	testfile.Golden(t, "openapi.json", got.Bytes())
}

// Later daemons can answer with words that this document does not have, such as codes of errors. Clients generated
// from an enum refuse these, so what is answered has none.
func TestAnswersAreOpen(t *testing.T) {
	doc := documentIn(t, servedDocument(t))
	seen := map[string]bool{}
	var look func(where string, v any)
	look = func(where string, v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				look(where, one)
			}
		case object:
			if v["enum"] != nil {
				t.Errorf("%s must be one of %v", where, v["enum"])
			}
			if ref, ok := v["$ref"].(string); ok && !seen[ref] {
				seen[ref] = true
				look(ref, within(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
			}
			for name, part := range v {
				look(where+" "+name, part)
			}
		}
	}
	for path := range within(doc, "paths") {
		for method := range within(doc, "paths", path) {
			look(method+" "+path, within(doc, "paths", path, method, "responses"))
		}
	}
	for _, event := range []string{"Update", "Machine", "Dropped"} {
		look(event, within(doc, "components", "schemas", event))
	}
	if !seen["#/components/schemas/Problem"] {
		t.Error("no answer is a Problem")
	}
}
