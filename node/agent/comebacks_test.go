package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
)

// TestComebacksAreKept: what was put is there again, entirely. A damaged file is as good as none.
func TestComebacksAreKept(t *testing.T) {
	path := comebacks(filepath.Join(t.TempDir(), "comebacks.json"))
	if got, err := path.Get(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v %v", got, err)
	}
	put := []memory.Comeback{{Reserve: resource.GiB, Of: memory.Envelope{
		Container: cluster.ContainerID{Task: cluster.TaskID{Job: 3}, Run: 2},
		Envelope:  cluster.Envelope{Class: cluster.Flex, Min: 1, Max: resource.GiB, Rank: 3, Requeue: true, Owner: "ada"}}}}
	if err := path.Put(put); err != nil {
		t.Fatal(err)
	}
	if got, err := path.Get(); err != nil || !reflect.DeepEqual(got, put) {
		t.Errorf("got %+v %v, put %+v", got, err, put)
	}
	if err := os.WriteFile(string(path), []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := path.Get(); err == nil || got != nil {
		t.Errorf("of a damaged file: %v %v", got, err)
	}
}
