package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// After any amount of logging, four files of the given size have the newest lines, whole and in order.
func TestDaemonLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.log")
	const lines, most = 1000, 500
	for i := range lines {
		// A new daemon writes each line.
		l, err := openDaemonLog(path, most)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(l, "line %03d\n", i); err != nil {
			t.Fatal(err)
		}
		l.file.Close()
	}
	var all string
	for i := daemonLogsOld; i >= 0; i-- {
		text, err := os.ReadFile((&daemonLog{path: path}).name(i))
		if err != nil || len(text) > most {
			t.Errorf("log %d: %d bytes, %v", i, len(text), err)
		}
		all += string(text)
	}
	var want strings.Builder
	const line = len("line 000\n")
	for i := lines - len(all)/line; i < lines; i++ {
		fmt.Fprintf(&want, "line %03d\n", i)
	}
	if all != want.String() || len(all) < daemonLogsOld*(most-line) {
		t.Errorf("kept %q", all)
	}
	if names, err := filepath.Glob(path + "*"); err != nil || len(names) != daemonLogsOld+1 {
		t.Errorf("files %v %v", names, err)
	}
}
