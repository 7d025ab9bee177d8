package pooling

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/connector/spark"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// What is not stated of a pool of Spark has a size that Spark runs in, and the user hears of it.
func TestDefaultSparkSize(t *testing.T) {
	var s api.PoolSpec
	said := strings.Join(defaultSparkSize(&s, false), "\n")
	if _, err := spark.Heap(int64(s.Memory)); err != nil || s.Max < 1 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, want := range []string{"memory: 1536MiB an executor, of which the heap has 1152MiB", "max: at most"} {
		if !strings.Contains(said, want) {
			t.Errorf("said %s, want %s", said, want)
		}
	}
	s = api.PoolSpec{Memory: resource.GiB, Max: 3}
	for _, flex := range []bool{false, true} {
		if said := defaultSparkSize(&s, flex); len(said) > 0 || s.Memory != resource.GiB || s.Max != 3 {
			t.Errorf("%+v: %s", s, said)
		}
	}
	s = api.PoolSpec{Max: 1}
	if said := defaultSparkSize(&s, true); len(said) != 1 || said[0] !=
		"memory: 384MiB an executor at first, unless --memory says otherwise" || s.Memory != spark.DefaultStart {
		t.Errorf("%+v: %s", s, said)
	}
}

// The heap must be large enough for Spark: that of the size of a REGULAR executor, and of the largest of a FLEX one.
func TestCheckHeap(t *testing.T) {
	for _, c := range []struct {
		memory, most resource.Amount
		flex         bool
		want         string
	}{
		{resource.GiB, 0, false, ""},
		{256 * resource.MiB, 0, false, "memory: 256 MiB leave a heap of 0 MiB: must be at least 834 MiB"},
		{256 * resource.MiB, 0, true, ""},
		{256 * resource.MiB, 2 * resource.GiB, true, ""},
		{256 * resource.MiB, 512 * resource.MiB, true, "max-memory: 512 MiB leave a heap of 128 MiB: must be at least 834"},
	} {
		err := checkHeap(&api.PoolSpec{Memory: c.memory, MaxMemory: c.most}, c.flex)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The line that submits to a pool is for a shell.
func TestSparkSubmit(t *testing.T) {
	t.Setenv("BELLOWS_SOCKET", "/run/other.sock")
	o := createOptions{spec: api.PoolSpec{Name: "sp"}, connector: spark.Compiled{Jar: "/home/a b/c.jar"}}
	o.place.Socket = "/run/other.sock"
	want := "spark-submit --master spark-bellows://sp --jars '/home/a b/c.jar' PROGRAM"
	if got := o.sparkSubmit(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	o.place.Socket = "/tmp/it's.sock"
	want = strings.Replace(want, " PROGRAM", ` --conf 'spark.bellows.socket=/tmp/it'\''s.sock' PROGRAM`, 1)
	if got := o.sparkSubmit(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	o.class = flexClass
	want = strings.Replace(want, " PROGRAM", " --conf spark.network.timeout=1h PROGRAM", 1)
	if got := o.sparkSubmit(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What makes no sense for executors of Spark is refused in one sentence.
func TestCheckSpark(t *testing.T) {
	for want, change := range map[string]func(*api.PoolSpec){
		"":                                   func(*api.PoolSpec) {},
		"executors of Spark have no COMMAND": func(s *api.PoolSpec) { s.Command = []string{"python3"} },
		"language go: is not for executors":  func(s *api.PoolSpec) { s.Language = api.PoolGo },
		"policy fair: must be mira":          func(s *api.PoolSpec) { s.Policy = "fair" },
	} {
		o := createOptions{spec: api.PoolSpec{Policy: api.DefaultPoolPolicy}}
		change(&o.spec)
		if err := o.checkSpark(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
