package swap

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

const (
	kib = resource.KiB
	mib = resource.MiB
	gib = resource.GiB
)

func TestParseSwaps(t *testing.T) {
	text := "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n" +
		"/var/swap\\040file                     file\t\t2097148\t\t1024\t\t-2\n" +
		"/dev/sda2                               partition\t1048572\t0\t\t10\n" +
		"/dev/zram0                              partition\t65532\t\t65532\t\t100\n" +
		"/dev/zram01 partition 4 0 1\n" +
		"/dev/odd magnetic 4 0 1\n" +
		"/dev/full file 4 8 1\n" +
		"short file 1 1\n"
	want := []Device{
		{Path: "/var/swap file", Kind: File, Size: 2097148 * kib, Used: mib, Priority: -2, On: true},
		{Path: "/dev/sda2", Kind: Partition, Size: 1048572 * kib, Priority: 10, On: true},
		{Path: "/dev/zram0", Kind: Zram, Size: 65532 * kib, Used: 65532 * kib, Priority: 100, On: true},
		{Path: "/dev/zram01", Kind: Partition, Size: 4 * kib, Priority: 1, On: true},
	}
	if got := parseSwaps(text); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseNumbers(t *testing.T) {
	if n, ok := parseSectorsWritten(" 10 0 80 0 4 0 24 0 0 1 2 0 0 0 0\n"); !ok || n != 24*512 {
		t.Errorf("sectors: %d, %v", n, ok)
	}
	if _, ok := parseSectorsWritten("1 2 3 4 5 6"); ok {
		t.Error("six numbers have no seventh")
	}
	if stored, memory, ok := parseZramMemory("  8192 100 12288 0 12288 0 0 0 0\n"); !ok || stored != 8192 ||
		memory != 12288 {
		t.Errorf("mm_stat: %d, %d, %v", stored, memory, ok)
	}
	if n, ok := parseZramWriteback("5 6 7\n"); !ok || n != 7*4*kib {
		t.Errorf("bd_stat: %d, %v", n, ok)
	}
	if chosen, all := parseAlgorithms("lzo [lz4] zstd\n"); chosen != "lz4" ||
		!reflect.DeepEqual(all, []string{"lzo", "lz4", "zstd"}) {
		t.Errorf("algorithms: %q of %q", chosen, all)
	}
	info := parseKeyed("MemTotal:  24 kB\npswpout 7\nnegative -1\nHugePages_Total: 3\nx y z\n")
	if want := map[string]int64{"MemTotal:": 24 * 1024, "pswpout": 7, "HugePages_Total:": 3}; !reflect.DeepEqual(info,
		want) {
		t.Errorf("keyed: %v", info)
	}
}

// FuzzParse: whatever a kernel prints, parsing does not panic, and no number is negative or impossibly large.
func FuzzParse(f *testing.F) {
	f.Add("Filename Type Size Used Priority\n/a\\040b file 8 4 -2\n")
	f.Add("MemTotal: 9223372036854775807 kB\npswpout 18446744073709551615\n")
	f.Add("1 2 3 4 5 6 36028797018963968 8\n")
	f.Add("[lzo-rle] lzo [ ]\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range parseSwaps(text) {
			if d.Used < 0 || d.Used > d.Size || d.Free() < 0 || d.Path == "" && !strings.Contains(text, `\`) {
				t.Errorf("%+v", d)
			}
			if d.Kind != File && d.Kind != Partition && d.Kind != Zram {
				t.Errorf("kind %q", d.Kind)
			}
		}
		for name, n := range parseKeyed(text) {
			if n < 0 {
				t.Errorf("%s is %d", name, n)
			}
		}
		if n, _ := parseSectorsWritten(text); n < 0 {
			t.Errorf("%d written", n)
		}
		if n, ok := parseZramWriteback(text); ok && n < 0 {
			t.Errorf("%d written", n)
		}
		if stored, memory, ok := parseZramMemory(text); ok && (stored < 0 || memory < 0) {
			t.Errorf("%d stored in %d", stored, memory)
		}
		parseAlgorithms(text)
	})
}

// fake creates a tree of files that looks like a machine.
func fake(t *testing.T, files map[string]string) Machine {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Machine{Root: root}
}

const swaps = "Filename Type Size Used Priority\n"

func TestDevices(t *testing.T) {
	m := fake(t, map[string]string{
		"proc/swaps": swaps +
			"/f file 100 10 -2\n/dev/sda2 partition 200 20 -3\n/dev/zram1 partition 300 30 100\n",
		"proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 400 kB\nHugetlb: 100 kB\nZswap: 4 " +
			"kB\nZswapped: 12 kB\n",
		"sys/class/block/sda2/stat":              "0 0 0 0 0 0 16 0",
		"sys/class/block/zram1/stat":             "0 0 0 0 0 0 32 0",
		"sys/block/zram1/mm_stat":                "30000 1 15000 0 0 0 0",
		"sys/block/zram1/comp_algorithm":         "lzo [zstd]",
		"sys/module/zswap/parameters/enabled":    "Y\n",
		"sys/module/zswap/parameters/compressor": "lz4\n",
	})
	got, err := m.Devices()
	if err != nil {
		t.Fatal(err)
	}
	want := []Device{
		{Path: "/f", Kind: File, Size: 100 * kib, Used: 10 * kib, Priority: -2, On: true},
		{Path: "/dev/sda2", Kind: Partition, Size: 200 * kib, Used: 20 * kib, Priority: -3, On: true, Written: amount(8192)},
		{Path: "/dev/zram1", Kind: Zram, Size: 300 * kib, Used: 30 * kib, Priority: 100, On: true, Written: amount(16384),
			Compressed: &Compressed{Algorithm: "zstd", Stored: 30000, Memory: 15000}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if z, want := m.Zswap(),
		(&Zswap{Enabled: true, Compressor: "lz4", Stored: amount(12 << 10), Memory: amount(4 << 10)}); !reflect.DeepEqual(z,
		want) {
		t.Errorf("zswap: %+v", z)
	}
	if got, err := m.Memory(); err != nil ||
		got != (Memory{Total: 900 * kib, HugePages: 100 * kib, Available: 400 * kib}) {
		t.Errorf("memory %+v, %v", got, err)
	}
}

// A kernel built without swap has no list of swap, and counts as a machine without swap.
func TestNoSwap(t *testing.T) {
	m := fake(t, nil)
	if all, err := m.Devices(); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	if z := m.Zswap(); z != nil {
		t.Errorf("zswap: %+v", z)
	}
	if _, err := m.Counters(); err == nil {
		t.Error("counters that are not there were read")
	}
	if _, err := m.Memory(); err == nil {
		t.Error("memory that is not there was read")
	}
}
