package api

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"
)

// Each kind has its own name and status, and is restored from both; commands exit with 1 or 2.
func TestKinds(t *testing.T) {
	for k := Invalid; int(k) < len(kinds); k++ {
		text, err := json.Marshal(Errorf(k, "said"))
		if want := fmt.Sprintf(`{"code":%q,"message":"said"}`, k); err != nil || string(text) != want {
			t.Errorf("sent as %s, %v; want %s", text, err, want)
		}
		var e Error
		if err := json.Unmarshal(text, &e); err != nil || e.Kind != k || e.Message != "said" {
			t.Errorf("read as %+v, %v", e, err)
		}
		if got := KindOfStatus(k.Status()); got != k {
			t.Errorf("status %d of %s is that of %s", k.Status(), k, got)
		}
		if c := k.ExitCode(); c != 1 && c != 2 {
			t.Errorf("commands exit with %d for %s", c, k)
		}
	}
	wrapped := fmt.Errorf("outside: %w", Errorf(Denied, "inside: %w", io.EOF))
	if KindOf(wrapped) != Denied || KindOf(io.EOF) != 0 || KindOf(nil) != 0 {
		t.Errorf("kinds are %v, %v, %v", KindOf(wrapped), KindOf(io.EOF), KindOf(nil))
	}
	if KindOfStatus(413) != Invalid || KindOfStatus(502) != Internal {
		t.Error("unknown statuses do not distinguish mistakes of the caller from failures of the daemon")
	}
}
