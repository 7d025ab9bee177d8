package cgroup

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestParseProcessIO(t *testing.T) {
	for _, c := range []struct {
		text string
		want Transfers
		ok   bool
	}{
		{"rchar: 9\nwchar: 8\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1024\n",
			Transfers{4096, 8192, 1024}, true},
		{"read_bytes: 4096\nwrite_bytes: 8192\n", Transfers{4096, 8192, 0}, true},
		{"rchar: 9\nwchar: 8\n", Transfers{}, false},
		{"read_bytes: 1\nwrite_bytes: many\n", Transfers{}, false},
		{"", Transfers{}, false},
	} {
		if got, err := parseProcessIO([]byte(c.text)); got != c.want || (err == nil) != c.ok {
			t.Errorf("%q: %+v (%v), want %+v", c.text, got, err, c.want)
		}
	}
}

func TestParseKinship(t *testing.T) {
	const rest = " 7 7 0 -1 4194560 116 0 0 0 3 4 5 6 20 0 1 0 8800 3190784 417 18446744073709551615\n"
	for _, c := range []struct {
		text string
		want kinship
		ok   bool
	}{
		{"12 (sh) S 7" + rest, kinship{7, 8800, false}, true},
		{"12 (a) Z 1 (b)) Z 7" + rest, kinship{7, 8800, true}, true},
		{"12 (sh) S 7\n", kinship{}, false},
		{"12 (sh) S x" + rest, kinship{}, false},
		{"", kinship{}, false},
	} {
		if got, err := parseKinship([]byte(c.text)); (err == nil) != c.ok || c.ok && got != c.want {
			t.Errorf("%q: %+v (%v), want %+v", c.text, got, err, c.want)
		}
	}
}

func TestParseBound(t *testing.T) {
	for text, want := range map[string]Maybe[int64]{
		"max\n": Known(NoLimit), "-1\n": Known(NoLimit), "9223372036854771712\n": Known(NoLimit),
		"9223372036854775807": Known(NoLimit),
		"0\n":                 Known[int64](0), "67108864\n": Known[int64](67108864),
		"": {}, "-2": {}, "1 2": {}, "18446744073709551615": {}, "MAX": {},
	} {
		if got := parseBound(text); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func TestParseTransfers(t *testing.T) {
	v2 := "8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=4096 dios=1\n8:0 \n254:0 wbytes=2 " +
		"rbytes=1\nother rbytes=1 wbytes=1\n9:0 rbytes=5\n"
	if read, written := parseIOStat(v2); read != 1459200+1+5 || written != 314773504+2 {
		t.Errorf("io.stat: %d read, %d written", read, written)
	}
	v1 := "254:0 Read 12288\n254:0 Write 4096\n254:0 Sync 4096\n254:0 Discard 999\n254:0 Total 17383\n8:0 Write " +
		"1\nTotal 17383\n"
	if read, written, counted := parseServiceBytes(v1); read != 12288 || written != 4096+1 || !counted {
		t.Errorf("io_service_bytes: %d read, %d written, %t", read, written, counted)
	}
	if _, _, counted := parseServiceBytes("Total 0\n"); counted {
		t.Error("nothing counted became something")
	}
}

func TestParseProcs(t *testing.T) {
	if got, want := parseProcs("12\n0\n7\n-3\nx\n"), []int{12, 7}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v: 0 is outside our namespace", got, want)
	}
}

func TestParseOwn(t *testing.T) {
	own, err := parseOwn("12:blkio,memory:/a:b\n1:name=systemd:/s\n0::/u (deleted)\n\n")
	if err != nil {
		t.Fatal(err)
	}
	want := ownPaths{legacy: map[Controller]string{IO: "/a:b", Memory: "/a:b"}, unified: "/u"}
	if !reflect.DeepEqual(own, want) {
		t.Errorf("got %+v, want %+v", own, want)
	}
	for _, bad := range []string{"x", "1:memory", "1:memory:relative"} {
		if _, err := parseOwn(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// The parser finds a mountinfo line with the given values, whatever lines surround it.
func FuzzParseMounts(f *testing.F) {
	f.Add("35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:4 - cgroup cgroup rw,memory", "/m nt")
	f.Add("22 27 0:21 / /proc rw - proc proc rw\n1 1", "")
	f.Add("1 2 3:4 / /a\\040b\\ rw - cgroup2 x y", "\\040")
	f.Fuzz(func(t *testing.T, text, dir string) {
		before, errBefore := parseMounts(strings.NewReader(text))
		for _, m := range before {
			if m.version == V2 && m.controllers != nil {
				t.Errorf("version 2 with controllers %v", m.controllers)
			}
		}
		if strings.ContainsAny(dir, "\r\n") || strings.TrimSpace(dir) != dir || len(text)+len(dir) > 1<<12 {
			return
		}
		escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`).Replace("/" + dir)
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		line := fmt.Sprintf("%s35 31 0:32 / %s rw master:1 - cgroup cgroup rw,memory,new\n", text, escaped)
		after, errAfter := parseMounts(strings.NewReader(line))
		if errBefore != nil {
			return
		}
		if errAfter != nil {
			t.Fatalf("%q: %v", line, errAfter)
		}
		last := after[len(after)-1]
		if len(after) != len(before)+1 || last.dir != "/"+dir || !reflect.DeepEqual(last.controllers, []Controller{Memory}) {
			t.Errorf("%q gave %+v", line, last)
		}
	})
}

// A line of a key and a number is found among any others, and the last one of a key counts.
func FuzzParseKeyed(f *testing.F) {
	f.Add("anon 4096\nfile 0\nworkingset_refault_anon 17\n", int64(5))
	f.Add("low 0\nhigh 41\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n", int64(0))
	f.Add("oom_kill_disable 0\nunder_oom 0\noom_kill -1\n", int64(1<<62))
	f.Add("oom_kill 18446744073709551615", int64(-1))
	f.Fuzz(func(t *testing.T, text string, n int64) {
		for key, value := range parseKeyed(text) {
			if value < 0 || key == "" || strings.ContainsAny(key, " \n") {
				t.Errorf("%q: %d", key, value)
			}
		}
		got, ok := parseKeyed(fmt.Sprintf("%s\nwanted %d\n", text, n)).first("missing\x00", "wanted").Get()
		before, was := parseKeyed(text).first("wanted").Get()
		if n < 0 { // Not a count: as if the line were not there.
			if got != before || ok != was {
				t.Errorf("a line with %d changed %d, %t to %d, %t", n, before, was, got, ok)
			}
		} else if !ok || got != n {
			t.Errorf("got %d, %t, want %d", got, ok, n)
		}
	})
}

func FuzzParseIOStat(f *testing.F) {
	f.Add("8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n", uint32(1), uint32(2))
	f.Add("8:0 rbytes=-1 wbytes=x\n:: rbytes=1 wbytes=1\n", uint32(0), uint32(0))
	f.Add("254:0 Read 1\n254:0 Write 2\n254:0 Total 3\nTotal 3\n", uint32(7), uint32(9))
	f.Fuzz(func(t *testing.T, text string, read, written uint32) {
		// A line more adds what it says, whatever lines surround it.
		before, beforeWritten := parseIOStat(text)
		after, afterWritten := parseIOStat(fmt.Sprintf("%s\n8:7 rios=1 rbytes=%d wbytes=%d\n", text, read, written))
		if after-before != int64(read) || afterWritten-beforeWritten != int64(written) {
			t.Errorf("io.stat: %d and %d became %d and %d", before, beforeWritten, after, afterWritten)
		}
		before, beforeWritten, _ = parseServiceBytes(text)
		after, afterWritten,
			counted := parseServiceBytes(fmt.Sprintf("%s\n8:7 Read %d\n8:7 Write %d\nTotal 1\n", text, read, written))
		if after-before != int64(read) || afterWritten-beforeWritten != int64(written) || !counted {
			t.Errorf("io_service_bytes: %d and %d became %d and %d", before, beforeWritten, after, afterWritten)
		}
	})
}
