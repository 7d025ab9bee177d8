package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what is answered now into testdata")

// The API's document is checked in, so that a change of the API shows as a change of the file.
func TestOpenAPI(t *testing.T) {
	_, socket := start(t, newFake(), fakeProfiles{})
	h := NewClient(socket).http
	r, err := h.Get("http://bellows/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	const file = "testdata/openapi.json"
	if *rewrite {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the API is not what %s says; if the change is meant, run go test ./server -rewrite", file)
	}
}
