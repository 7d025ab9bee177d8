package server

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// A line reports each hole of a file, wherever it is.
func TestWhatWasLeftOutIsTold(t *testing.T) {
	const block = 4096
	part := func(letter string) string { return string(bytes.Repeat([]byte(letter), block)) }
	file := filepath.Join(t.TempDir(), "stdout")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for letter, at := range map[string]int64{"a": 0, "b": 3 * block} {
		if _, err := f.WriteAt([]byte(part(letter)), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(4*block + 5); err != nil {
		t.Fatal(err)
	}
	d := newFake()
	task := cluster.TaskID{Job: 1}
	d.logs = []api.LogFile{{Task: task, Run: 1, Stdout: file, Ended: true}}
	c, _ := start(t, d, fakeProfiles{})
	for from, want := range map[int64]string{
		0: part("a") + "\n[bellows: 8192 bytes were left out here]\n" + part("b") +
			"\n[bellows: 5 bytes were left out here]\n",
		2 * block: "\n[bellows: 4096 bytes were left out here]\n" + part("b") + "\n[bellows: 5 bytes were left out here]\n",
	} {
		var b bytes.Buffer
		if _, err := c.Output(context.Background(), &b, api.Output{Task: task, From: from}); err != nil ||
			b.String() != want {
			t.Errorf("from %d: got %q, %v", from, b.String(), err)
		}
	}
}

// A reader that wants all output holds a lock on the part it has not read, and on no more.
func TestReaderOfAllHoldsALock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := newFake()
	task := cluster.TaskID{Job: 1}
	d.logs = []api.LogFile{{Task: task, Run: 1, Stdout: file}}
	c, _ := start(t, d, fakeProfiles{})
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := c.Output(context.Background(), w, api.Output{Task: task, Follow: true, All: true})
		done <- err
	}()
	for at := int64(5); at <= 10; at += 5 {
		if _, err := f.WriteString("12345"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			lock := unix.Flock_t{Type: unix.F_WRLCK}
			if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
				t.Fatal(err)
			}
			if lock.Type == unix.F_RDLCK && lock.Start == at && lock.Len == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("lock %+v, want one from %d on", lock, at)
			}
		}
	}
	close(d.ended)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
