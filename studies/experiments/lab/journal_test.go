package lab

import (
	"os"
	"path/filepath"
	"testing"
)

// TestJournalOfAnother: a journal of other settings, or of another program, is not continued; a torn line is ignored.
func TestJournalOfAnother(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	head := journalHead{Version: 1, Experiment: "e", Runs: 3, Program: "p"}
	write := func(h journalHead) int {
		j, err := openJournal(file, h)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.keep("part", 42); err != nil {
			t.Fatal(err)
		}
		if err := j.close(false); err != nil {
			t.Fatal(err)
		}
		return len(j.kept["part"])
	}
	if n := write(head); n != 0 {
		t.Errorf("a new journal keeps %d", n)
	}
	if n := write(head); n != 1 {
		t.Errorf("the same journal keeps %d, want 1", n)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"part":"part","of":4`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if n := write(head); n != 2 {
		t.Errorf("a torn journal keeps %d, want 2", n)
	}
	other := head
	other.Program = "q"
	if n := write(other); n != 0 {
		t.Errorf("a journal of another program keeps %d", n)
	}
}
