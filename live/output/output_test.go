package output

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
)

// The output of jobs counts for their users until it is removed; that of a job that has ended is measured once.
func TestKept(t *testing.T) {
	f := In(t.TempDir())
	write := func(job cluster.JobID, bytes int) {
		t.Helper()
		id := cluster.ContainerID{Task: cluster.TaskID{Job: job}, Run: 1}
		if err := os.MkdirAll(filepath.Dir(f.Path(id)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Path(id)+".out", make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		if !f.Has(id) {
			t.Errorf("there is no output of job %d", job)
		}
	}
	users := map[cluster.JobID]string{1: "ada", 2: "ada", 3: "bob"}
	ended := map[cluster.JobID]bool{1: true}
	var k Kept
	weigh := func() {
		t.Helper()
		if err := k.Weigh(f, func(id cluster.JobID) (string, bool, error) { return users[id], users[id] != "", nil },
			func(id cluster.JobID) bool { return ended[id] }); err != nil {
			t.Fatal(err)
		}
	}
	want := func(user string, bytes int64) {
		t.Helper()
		if got, ok := k.Of(user); !ok || got != bytes {
			t.Errorf("%s has %d bytes, want %d", user, got, bytes)
		}
	}
	if _, ok := k.Of("ada"); ok {
		t.Error("it is known before it was measured")
	}
	for job := range users {
		write(job, 1000)
	}
	write(9, 1000) // of a job that was removed
	weigh()
	want("ada", 2000)
	want("bob", 1000)
	write(1, 5000)
	write(3, 5000)
	weigh()
	want("ada", 2000)
	want("bob", 5000)
	if gone, err := f.Remove([]cluster.JobID{2, 7}); err != nil || !slices.Equal(gone, []cluster.JobID{2, 7}) {
		t.Errorf("removed %v, %v", gone, err)
	}
	weigh()
	want("ada", 1000)
	if f.Size(2) != 0 {
		t.Error("output is left")
	}
	var named []string
	k.Users(func(user string) { named = append(named, user) })
	if slices.Sort(named); !slices.Equal(named, []string{"ada", "bob"}) {
		t.Errorf("users are %v", named)
	}
}
