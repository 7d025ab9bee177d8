package server

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/bellows-rm/bellows/internal/testfile"
)

// servedDocument returns the API's document, as a client gets it.
func servedDocument(t *testing.T) []byte {
	t.Helper()
	_, socket := start(t, newFake(), newFakeStore())
	r, err := NewClient(socket).http.Get("http://bellows/openapi.json")
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
