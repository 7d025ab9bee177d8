package server

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/bellows-rm/bellows/internal/testfile"
)

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
	testfile.Golden(t, "openapi.json", got.Bytes())
}
