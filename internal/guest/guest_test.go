package guest

import (
	"bufio"
	"bytes"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/internal/guest/internal/plan"
)

func TestArchive(t *testing.T) {
	var out bytes.Buffer
	a := &archive{w: &out}
	a.dir("dir")
	a.file("dir/five", 0o755, []byte("12345"))
	a.file("empty", 0o644, nil)
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	// Read it as the kernel does.
	rest := out.Bytes()
	var got []string
	for len(rest) > 0 {
		if string(rest[:6]) != "070701" {
			t.Fatalf("an entry begins with %q", rest[:6])
		}
		number := func(i int) int {
			n, err := strconv.ParseUint(string(rest[6+8*i:14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		mode, size, nameSize := number(1), number(6), number(11)
		content := (110 + nameSize + 3) &^ 3
		got = append(got, strconv.FormatInt(int64(mode), 8)+" "+string(rest[110:110+nameSize-1])+" "+
			string(rest[content:content+size]))
		rest = rest[(content+size+3)&^3:]
	}
	want := "40755 dir |100755 dir/five 12345|100644 empty |0 TRAILER!!! "
	if strings.Join(got, "|") != want {
		t.Errorf("entries are %q, want %q", got, want)
	}
}

func TestCopyRun(t *testing.T) {
	for _, c := range []struct{ answers, output, stops, end string }{
		{"=== RUN a\r\n--- PASS\n" + plan.End + "0\nnext\n", "=== RUN a\r\n--- PASS\n", "", "0"},
		{"half a line\n" + plan.End + "2\n", "half a line\n", "", "2"},
		{"x\n" + plan.Fail + "no such user\n", "x\n", "", "no such user"},
		{"x\ny", "x\n", "", "nothing: the guest is gone"},
		{"x\n" + plan.Stop + "paused 3s\r\ny\n" + plan.Stop + "asleep 1m0s\n" + plan.End + "0\n", "x\ny\n",
			"paused 3s, asleep 1m0s, ", "0"},
	} {
		var out, stops strings.Builder
		end := copyRun(&out, bufio.NewReader(strings.NewReader(c.answers)), func(request string) {
			stops.WriteString(request + ", ")
		})
		if out.String() != c.output || stops.String() != c.stops || end != c.end {
			t.Errorf("%q: output %q, stops %q and end %q, want %q, %q and %q", c.answers, out.String(), stops.String(), end,
				c.output, c.stops, c.end)
		}
	}
}

// What a guest that is left to another turn would run is what its arguments select, without what its user lacks.
func TestList(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Skips: func(as As, test string) bool { return as == Narrow && test == "TestArchive" }}
	args := []string{"-test.run=^Test(Archive|CopyRun|List)$", "-test.skip=^TestList$"}
	for _, w := range []struct {
		as        As
		run, want string
	}{
		{Root, "", "TestArchive TestCopyRun"},
		{Narrow, "", "TestCopyRun"},
		{Root, "^TestSelection$", "TestSelection"},
		{Root, "^TestArchive$/some", "TestArchive"},
	} {
		if got := strings.Join(c.list(t, binary, w.as, w.run, args), " "); got != w.want {
			t.Errorf("as %s, -run=%q: %s, want %s", w.as, w.run, got, w.want)
		}
	}
}

func TestSelection(t *testing.T) {
	given := flag.Lookup("test.run").Value.String()
	defer flag.Set("test.run", given)
	for _, c := range []struct {
		run      string
		as       As
		tests    string
		selected bool
	}{
		{"", Root, "", true},
		{"TestGuest", Root, "", true},
		{"TestGuest/v2", Root, "", true},
		{"TestGuest/v2/root", RootScope, "", true},
		{"TestGuest/v2/^root$", RootScope, "", false},
		{"TestGuest/v2/^root$/^TestLease$", Root, "^TestLease$", true},
		{"TestGuest/v2/root/TestPageOutStays/little", Root, "TestPageOutStays/little", true},
	} {
		flag.Set("test.run", c.run)
		if tests, selected := selection("TestGuest/v2", c.as); tests != c.tests || selected != c.selected {
			t.Errorf("-run=%s: %s runs %q, %v; want %q, %v", c.run, c.as, tests, selected, c.tests, c.selected)
		}
	}
}
