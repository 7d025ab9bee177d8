package fleet

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/live/api"
)

// sound is a pool that there can be.
func sound() api.PoolSpec {
	return api.PoolSpec{Name: "p", Language: api.PoolGo, Command: []string{"/bin/worker"}, Dir: "/work", Max: 4,
		Memory: 64 * resource.MiB}
}

// A mistake is one sentence with the field and the limit.
func TestCheck(t *testing.T) {
	if err := Check(sound()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*api.PoolSpec)
		want   string
	}{
		{func(s *api.PoolSpec) { s.Name = "../x" }, "its name must be"},
		{func(s *api.PoolSpec) { s.Name = "" }, "its name must be"},
		{func(s *api.PoolSpec) { s.Name = strings.Repeat("x", LongestName+1) }, "its name must be"},
		{func(s *api.PoolSpec) { s.Language = "cobol" }, `language "cobol": must be`},
		{func(s *api.PoolSpec) { s.Command = nil }, "command: must be given"},
		{func(s *api.PoolSpec) { s.Max = 0 }, "max 0: must be from 1"},
		{func(s *api.PoolSpec) { s.Min = 5 }, "min 5: must be from 0 to max, 4"},
		{func(s *api.PoolSpec) { s.Memory = 0 }, "ideal_memory_bytes 0"},
		{func(s *api.PoolSpec) { s.MaxMemory = resource.GiB }, "class flex"},
		{func(s *api.PoolSpec) { s.Idle = time.Millisecond }, "idle_ns 1000000: must be"},
		{func(s *api.PoolSpec) { s.Recycle = -1 }, "recycle_bytes -1"},
		{func(s *api.PoolSpec) { s.Class, s.Recycle = cluster.Flex, resource.MostMemory+1 },
			"recycle_bytes 1000000000000000001: must be from 0 to 1000000000000000000"},
		{func(s *api.PoolSpec) { s.Recycle = resource.GiB }, "recycle_bytes 1073741824: must be less"},
		{func(s *api.PoolSpec) { s.Dir = "work" }, "dir \"work\": must be an absolute path"},
		{func(s *api.PoolSpec) { s.Env = []string{strings.Repeat("x", mostBytes)} }, "must be at most"},
		{func(s *api.PoolSpec) { s.Policy = "magic" }, `policy "magic": must be one of`},
		{func(s *api.PoolSpec) { s.Settings = map[string]string{"fair.gaps": "auto"} },
			"must be a setting of a policy that is used"},
		{func(s *api.PoolSpec) { s.Queue = "a\nb" }, "queue"},
		{func(s *api.PoolSpec) { s.Command = []string{"{nonsense}"} }, "command"},
	} {
		s := sound()
		c.change(&s)
		if err := Check(s); err == nil || api.KindOf(err) != api.Invalid || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %v, want %q", err, c.want)
		}
	}
}

// The names of fields are those of jobs, and what is stored is read again.
func TestSpecAsJSON(t *testing.T) {
	s := sound()
	s.Class, s.MaxMemory, s.Idle, s.Recycle = cluster.Flex, resource.GiB, time.Second, resource.MiB
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"name":"p","language":"go","command":["/bin/worker"],"dir":"/work","max":4,"ideal_memory_bytes":67108864,"max_memory_bytes":1073741824,"class":"flex","idle_ns":1000000000,"recycle_bytes":1048576}`; string(text) != want {
		t.Errorf("it is %s, want %s", text, want)
	}
	var again api.PoolSpec
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("it is read as %+v, %v", again, err)
	}
}

// The name of a job says which executor of a pool it is.
func TestNumberOf(t *testing.T) {
	s := sound()
	for name, want := range map[string]int{jobOf(&s, 12).Name: 12, "p executor 0": 0, "p executor ": -1,
		"p executor -1":          -1,
		"p executor 99999999999": -1, "q executor 1": -1} {
		number, ok := numberOf("p", &api.Job{Name: name})
		if ok != (want >= 0) || ok && number != want {
			t.Errorf("%q: %d, %v", name, number, ok)
		}
	}
}

// Pools keep executors between two stages for a while, unless their owner or another policy decides otherwise.
func TestDefaultKeep(t *testing.T) {
	for _, c := range []struct {
		policy   string
		set      map[string]string
		settings map[string]string
	}{
		{"", nil, map[string]string{"mira.keep": "2s"}},
		{"mira", map[string]string{"mira.rule": "paper"}, map[string]string{"mira.keep": "2s", "mira.rule": "paper"}},
		{"mira", map[string]string{"mira.keep": "none"}, map[string]string{"mira.keep": "none"}},
		{"fair", nil, nil},
	} {
		s := sound()
		s.Policy, s.Settings = c.policy, c.set
		if got := withDefaults(s); !maps.Equal(got.Settings, c.settings) || Check(got) != nil {
			t.Errorf("policy %q with %v: settings are %v, %v", c.policy, c.set, got.Settings, Check(got))
		}
	}
}

// A definition that is damaged does no harm to others.
func TestDamagedDefinition(t *testing.T) {
	b, err := openBook(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	good := record{ID: newID(), As: cluster.Credentials{UID: 1, User: "ada"}, Spec: withDefaults(sound()), Launched: 3}
	bad := good
	bad.ID = newID()
	for _, r := range []*record{&good, &bad} {
		if err := b.write(r); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(b.path(&bad))
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"", string(text[:len(text)/2]), strings.Replace(string(text), `"max":4`, `"max":0`,
		1), strings.Replace(string(text), `"name":"p"`, `"name":"q"`, 1), "[]"} {
		if err := os.WriteFile(b.path(&bad), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		var said []string
		all, err := b.read(func(file string, err error) { said = append(said, file) })
		if err != nil || len(all) != 1 || !reflect.DeepEqual(*all[0], good) || len(said) != 1 || said[0] != b.path(&bad) {
			t.Errorf("%q: read %+v, said %v, %v", damage, all, said, err)
		}
	}
	if err := b.remove(&good); err != nil {
		t.Fatal(err)
	}
	if all, err := b.read(func(string, error) {}); err != nil || len(all) != 0 {
		t.Errorf("after the removal: %v, %v", all, err)
	}
}

// A secret is that of one executor of one pool, for whoever has the key, and its file is read by its owner alone.
func TestSecret(t *testing.T) {
	dir := t.TempDir()
	k, err := openKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v, %v", info.Mode(), err)
	}
	again, err := openKey(dir)
	if err != nil || again.secret("a", 1) != k.secret("a", 1) {
		t.Errorf("the key was not kept: %v", err)
	}
	for _, wrong := range []string{k.secret("a", 2), k.secret("b", 1), k.secret("a", 11), "",
		make(key, keySize).secret("a", 1)} {
		if k.verify("a", 1, wrong) {
			t.Errorf("%q is accepted", wrong)
		}
	}
	if !k.verify("a", 1, k.secret("a", 1)) {
		t.Error("the secret is refused")
	}
	h, err := openHandover(filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	to := cluster.Credentials{UID: ownUID()}
	if ownUID() == 0 {
		to = cluster.Credentials{UID: 65534, GID: 65534}
	}
	if err := h.give("a", 1, "x", to); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(h.secretPath("a", 1)); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if err := h.clear(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(h.dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, h.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := openHandover(filepath.Join(dir, "s")); err == nil ||
		!strings.Contains(err.Error(), "must be a directory") {
		t.Errorf("a link in place of the folder: %v", err)
	}
}

// Whenever the daemon dies while it stores a pool, makes the first one, or removes one, the next daemon finds the
// former definition or the new one, and nothing else.
func TestKilledWhileStoring(t *testing.T) {
	b, err := openBook(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := record{ID: newID(), As: ada, Spec: withDefaults(sound())}
	r.Spec.Max = 1
	deaths := 0
	store := func(change func() error, want ...int) { // the most executors of the pool; 0 is that there is none
		t.Helper()
		durable.Watch = func(op durable.Op, path string) {
			dead := book{t.TempDir()}
			if err := os.CopyFS(dead.dir, os.DirFS(b.dir)); err != nil {
				t.Fatal(err)
			}
			all, err := dead.read(func(file string, err error) { t.Errorf("death before %s %s: %s: %v", op, path, file, err) })
			found := 0
			for _, r := range all {
				found += r.Spec.Max
			}
			if err != nil || !slices.Contains(want, found) {
				t.Errorf("death before %s %s: %d executors at most, want one of %v, %v", op, path, found, want, err)
			}
			deaths++
		}
		defer func() { durable.Watch = nil }()
		if err := change(); err != nil {
			t.Fatal(err)
		}
	}
	write := func() error { return b.write(&r) }
	store(write, 0, 1)
	r.Spec.Max = 2
	store(write, 1, 2)
	store(func() error { return b.remove(&r) }, 2, 0)
	if deaths < 10 {
		t.Errorf("%d deaths", deaths)
	}
}
