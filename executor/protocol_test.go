package executor_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/executor"
)

// What was encoded is decoded again, whatever the payload is.
func TestMessages(t *testing.T) {
	sent := executor.Next{Lease: "a", Done: &executor.Report{Work: 3, Error: "line 1\nline 2", Size: 4, Output: 3}}
	message, err := executor.Encode(sent, []byte("a\nb\x00"), []byte("out"))
	if err != nil {
		t.Fatal(err)
	}
	var got executor.Next
	payload, err := executor.Read(bytes.NewReader(message), int64(len(message)), -1, &got)
	if err != nil || string(payload) != "a\nb\x00out" || *got.Done != *sent.Done || got.Lease != sent.Lease {
		t.Errorf("got %+v %q %v", got, payload, err)
	}
	if _, err := executor.Read(bytes.NewReader(message), int64(len(message))-1, -1, &got); err == nil ||
		!strings.Contains(err.Error(), "more than") {
		t.Errorf("a message that is too long: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("{\"lease\":\"a\"}\npayload"))
	f.Add([]byte("{"))
	f.Add([]byte("null\n"))
	f.Fuzz(func(t *testing.T, message []byte) {
		var head executor.Next
		payload, err := executor.Decode(message, &head)
		if err == nil && bytes.HasPrefix(message, []byte("null")) {
			t.Errorf("%q is taken for a message", message)
		}
		if err == nil && len(payload) > 0 && !bytes.HasSuffix(message, append([]byte("\n"), payload...)) {
			t.Errorf("the payload of %q is %q", message, payload)
		}
	})
}
