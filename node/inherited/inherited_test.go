package inherited

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
)

func TestMain(m *testing.M) {
	switch os.Getenv("INHERITED") {
	case "read":
		h, err := Read()
		text, _ := json.Marshal(h)
		fmt.Println(string(text), err)
		return
	case "take":
		h := cluster.Inherited{Limits: map[string]cluster.ResourceLimit{"nofile": {Soft: 70, Hard: 1 << 40},
			"core": {Soft: 0, Hard: 0}}}
		take(&h)
		now, err := Read()
		fmt.Println(now.Limits["nofile"].Soft, now.Limits["nofile"].Hard >= 70, now.Limits["core"], err)
		return
	case "protect", "protect without the right":
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var have [2]unix.CapUserData
		err := unix.Capget(&header, &have[0])
		if os.Getenv("INHERITED") != "protect" {
			have[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
			err = errors.Join(err, unix.Capset(&header, &have[0]))
		}
		was, unprotected := Protect()
		now, _ := os.ReadFile(OOMScore)
		fmt.Println(was, strings.TrimSpace(string(now)), have[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0,
			unprotected != nil, err)
		return
	case "raise":
		before, _ := Read()
		take(&cluster.Inherited{Limits: map[string]cluster.ResourceLimit{"msgqueue": {Soft: -1, Hard: -1}}})
		now, err := Read()
		fmt.Println(now.Limits["msgqueue"].Hard == before.Limits["msgqueue"].Hard, err)
		return
	}
	os.Exit(m.Run())
}

// take sets limits of this process.
func take(h *cluster.Inherited) {
	for number, limit := range Limits(h) {
		_ = unix.Setrlimit(number, &limit)
	}
}

// again runs this program from a shell that sets something first.
func again(t *testing.T, what, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", script+`; "$0"; exit $?`, os.Args[0])
	cmd.Env = append(os.Environ(), "INHERITED="+what)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestOwn reads what a shell has set, the number of files too, which this program raises for itself.
func TestOwn(t *testing.T) {
	text, _, _ := strings.Cut(again(t, "read", "umask 027; ulimit -Sn 88; ulimit -Hn 99; ulimit -Sc 0"), " ")
	var h cluster.Inherited
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	if got := h.Limits["nofile"]; h.Umask != 0o027 || got.Soft != 88 || got.Hard != 99 || h.Limits["core"].Soft != 0 ||
		len(h.Limits) != len(cluster.LimitNames) {
		t.Errorf("read %s", text)
	}
	if err := h.Check(); err != nil {
		t.Errorf("what was read is refused: %v", err)
	}
}

// TestPinned reads on which CPUs a process may run that was pinned, and that others may run on all.
func TestPinned(t *testing.T) {
	if Online("/") < 2 {
		t.Skip("needs two CPUs")
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Skip("needs taskset")
	}
	all, err := pinned()
	if err != nil {
		t.Fatal(err)
	}
	cpu := 0 // of those that this process may use
	if len(all) > 0 {
		cpu = all[0]
	}
	text, _, _ := strings.Cut(again(t, "read", fmt.Sprintf("taskset -cp %d $$ >/dev/null", cpu)), " ")
	var h cluster.Inherited
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.CPUs, []int{cpu}) || h.Check() != nil {
		t.Errorf("pinned to CPU %d: read %v, %v", cpu, h.CPUs, h.Check())
	}
	if got := CPUs(&h); got == nil || !got.IsSet(cpu) || got.Count() != 1 || CPUs(&cluster.Inherited{}) != nil {
		t.Errorf("a program runs on %v, want CPU %d alone", got, cpu)
	}
}

// TestTaken sets limits, some of them higher than this process may have.
func TestTaken(t *testing.T) {
	if got, want := again(t, "take", ":"), "70 true {0 0} <nil>\n"; got != want {
		t.Errorf("limits are %q, want %q", got, want)
	}
}

// TestNotRaised asks for a higher limit than that of this process: root could have it.
func TestNotRaised(t *testing.T) {
	if got, want := again(t, "raise", ":"), "true <nil>\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestProtect: who has the right is protected, and who lacks it learns that it is not, and stays as it was.
func TestProtect(t *testing.T) {
	for _, what := range []string{"protect", "protect without the right"} {
		got := again(t, what, ":")
		var was, now int
		var right, unprotected bool
		var err string
		if _, failed := fmt.Sscan(got, &was, &now, &right, &unprotected, &err); failed != nil || err != "<nil>" {
			t.Fatalf("%s: %q: %v", what, got, failed)
		}
		if was <= protected {
			t.Skipf("this process is protected already: %d", was)
		}
		if want := map[bool]int{true: protected, false: was}[right]; now != want || unprotected == right {
			t.Errorf("%s: from %d to %d, with the right: %t, unprotected: %t", what, was, now, right, unprotected)
		}
	}
}
