package cluster

import (
	"strings"
	"testing"
)

func TestDeriveApp(t *testing.T) {
	for _, c := range []struct {
		name string
		args string
		want string
	}{
		{"sort", "sort -S {memory*0.8} -o out.txt /data/big-17.txt", "sort -S {memory*0.8} -o *.txt *.txt"},
		{"sort", "/usr/bin/sort -S64M -k2 part-0003", "sort -S# -k2 part-#"},
		{"python3", "python3 lib/train.py --epochs=20 --rate 0.5 --data=/d/x.csv",
			"python3 train.py --epochs=# --rate # --data=*.csv"},
		{"xz", "xz -9 -T4 a.tar", "xz -9 -T4 *.tar"},
		{"nightly-2026-11-23", "make all", "nightly-#-#-#: make all"},
		{"sh", "sh -c", "sh -c"},
		{"java", "java -Xmx4G -jar app.jar in/1", "java -Xmx# -jar app.jar *"},
		{"x", "x 64MiB 5m 10 {task} a.b.c v1.2", "x # # # {task} *.c v#.#"},
		{"x", "x a\x01b", `x a\x01b`},
		{"x", "", ""},
	} {
		j := Job{Name: c.name, Stages: []Stage{{Command: Command{Args: strings.Fields(c.args)}}}}
		if got := j.DeriveApp(); got != c.want {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
	script := Job{Name: "sh", Stages: []Stage{{Command: Command{Args: []string{"sh", "-c", "cat 17.log | sort >out/7"}}}}}
	if got, want := script.DeriveApp(), "sh -c cat *.log | sort *"; got != want {
		t.Errorf("a script: %q, want %q", got, want)
	}
	long := Job{Name: "x", Stages: []Stage{{Command: Command{Args: append([]string{"x"}, strings.Repeat("wort ", 100))}}}}
	a := long.DeriveApp()
	long.Stages[0].Args[1] += "last"
	if b := long.DeriveApp(); !IsName(a) || !IsName(b) || a == b || !strings.HasPrefix(a, "x wort wort") {
		t.Errorf("long commands: %q and %q must be different names", a, b)
	}
}
