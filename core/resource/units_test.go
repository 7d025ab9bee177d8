package resource

import (
	"math"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const top = "9223372036854775807"
	for _, c := range []struct {
		parse func(string) (Amount, error)
		text  string
		want  Amount
		wrong string // what the error must say; empty if there is none
	}{
		{ParseCPU, "2", 2000, ""},
		{ParseCPU, "500m", 500, ""},
		{ParseCPU, "1.5", 1500, ""},
		{ParseCPU, "0", 0, ""},
		{ParseCPU, "0.001", 1, ""},
		{ParseCPU, "1.500", 1500, ""},
		{ParseCPU, "007", 7000, ""},
		{ParseCPU, top + "m", math.MaxInt64, ""},
		{ParseCPU, "9223372036854775.807", math.MaxInt64, ""},
		{ParseCPU, "9223372036854775.808", 0, "is more than"},
		{ParseCPU, "9223372036854775808m", 0, "is more than"},
		{ParseCPU, "99999999999999999999999", 0, "is too large"},
		{ParseCPU, "0.0001", 0, "finer than 1m"},
		{ParseCPU, "0.5m", 0, "finer than 1m"},
		{ParseCPU, "", 0, "is empty"},
		{ParseCPU, "-1", 0, "is negative"},
		{ParseCPU, "+1", 0, "does not begin with a digit"},
		{ParseCPU, "NaN", 0, "does not begin with a digit"},
		{ParseCPU, "Inf", 0, "does not begin with a digit"},
		{ParseCPU, "1e3", 0, "unknown unit"},
		{ParseCPU, "0x10", 0, "unknown unit"},
		{ParseCPU, "2 ", 0, "unknown unit"},
		{ParseCPU, "2cores", 0, "unknown unit"},
		{ParseCPU, "1.", 0, "no digit after the point"},
		{ParseCPU, ".5", 0, "does not begin with a digit"},
		{ParseCPU, "1.2.3", 0, "unknown unit"},

		{ParseMemory, "4GiB", 4 * GiB, ""},
		{ParseMemory, "4Gi", 4 * GiB, ""},
		{ParseMemory, "10000MB", 10 * GB, ""},
		{ParseMemory, "512M", 512 * MB, ""},
		{ParseMemory, "1.5GiB", 1536 * MiB, ""},
		{ParseMemory, "64kB", 64 * KB, ""},
		{ParseMemory, "0B", 0, ""},
		{ParseMemory, "1024B", 1024, ""},
		{ParseMemory, "1.5B", 2, ""},
		{ParseMemory, "0.1GiB", 107374182, ""},
		{ParseMemory, "10TB", 10 * TB, ""},
		{ParseMemory, "8191PiB", 8191 * PiB, ""},
		{ParseMemory, top + "B", math.MaxInt64, ""},
		{ParseMemory, "9223372036854775807.4B", math.MaxInt64, ""},
		{ParseMemory, "9223372036854775807.5B", 0, "is more than"},
		{ParseMemory, "8192PiB", 0, "is more than"},
		{ParseMemory, "99999999999999999999PB", 0, "is too large"},
		{ParseMemory, "0.1234567890123456789GB", 0, "more than 18 decimals"},
		{ParseMemory, "1024", 0, "has no unit"},
		{ParseMemory, "0", 0, "has no unit"},
		{ParseMemory, "", 0, "is empty"},
		{ParseMemory, "-4GiB", 0, "is negative"},
		{ParseMemory, "NaNGiB", 0, "does not begin with a digit"},
		{ParseMemory, "GiB", 0, "does not begin with a digit"},
		{ParseMemory, "4gib", 0, "such as 4GiB; did you mean 4GiB?"},
		{ParseMemory, "512m", 0, "; did you mean 512MiB?"},
		{ParseMemory, "1.5g", 0, "; did you mean 1.5GiB?"},
		{ParseMemory, "10gb", 0, "; did you mean 10GB?"},
		{ParseMemory, "4 GiB", 0, "; did you mean 4GiB?"},
		{ParseMemory, "4GiB\n", 0, "unknown unit"},
		{ParseMemory, "4GiB/s", 0, "unknown unit"},
		{ParseMemory, "１GiB", 0, "does not begin with a digit"},

		{ParseRate, "110MB/s", 110 * MB, ""},
		{ParseRate, "0B/s", 0, ""},
		{ParseRate, "1.25GB/s", 1250 * MB, ""},
		{ParseRate, "64KiB/s", 64 * KiB, ""},
		{ParseRate, "1Gbit/s", 125 * MB, ""},
		{ParseRate, "2.5Gbit/s", 312_500 * KB, ""},
		{ParseRate, "100Mbit/s", 12_500 * KB, ""},
		{ParseRate, "64kbit/s", 8 * KB, ""},
		{ParseRate, "64Kbit/s", 8 * KB, ""},
		{ParseRate, "1Tbit/s", 125 * GB, ""},
		{ParseRate, "1Gb/s", 0, "unknown unit"},
		{ParseRate, "1Gibit/s", 0, "unknown unit"},
		{ParseRate, "1Gbps", 0, "does not end in /s"},
		{ParseRate, "99999999Tbit/s", 0, "is more than"},
		{ParseMemory, "1Gbit", 0, "unknown unit"},
		{ParseRate, "110MB", 0, "does not end in /s"},
		{ParseRate, "110", 0, "has no unit"},
		{ParseRate, "110/s", 0, "unknown unit"},
		{ParseRate, "-1MB/s", 0, "is negative"},
		{ParseRate, "8192PiB/s", 0, "is more than"},
		{ParseRate, "", 0, "is empty"},
	} {
		got, err := c.parse(c.text)
		if c.wrong == "" {
			if err != nil || got != c.want {
				t.Errorf("%q: got %d, %v; want %d", c.text, got, err, c.want)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.wrong) || !strings.Contains(err.Error(), ": write ") {
			t.Errorf("%q: got %d, error %v; want one with %q and what is accepted", c.text, got, err, c.wrong)
		}
	}
}

func TestParseCutsLongTexts(t *testing.T) {
	_, err := ParseMemory(strings.Repeat("x\n", 1<<20))
	if err == nil || len(err.Error()) > 400 || strings.Contains(err.Error(), "\n") {
		t.Errorf("want one short line, got %.500v", err)
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{FormatCPU(0), "0"},
		{FormatCPU(1), "1m"},
		{FormatCPU(500), "500m"},
		{FormatCPU(2000), "2"},
		{FormatCPU(1500), "1.5"},
		{FormatCPU(1001), "1.001"},
		{FormatCPU(10010), "10.01"},
		{FormatCPU(-500), "-500m"},
		{FormatCPU(-1500), "-1.5"},
		{FormatCPU(math.MinInt64), "-9223372036854775.808"},
		{FormatMemory(0), "0B"},
		{FormatMemory(4 * GiB), "4GiB"},
		{FormatMemory(10000 * MB), "10GB"},
		{FormatMemory(1536 * MiB), "1536MiB"},
		{FormatMemory(99_999 * MB), "99999MB"},
		{FormatMemory(1_234_567 * KB), "1.15GiB"},
		{FormatMemory(123*GiB + 1), "123.0GiB"},
		{FormatMemory(123_456), "120.6KiB"},
		{FormatMemory(-4 * GiB), "-4GiB"},
		{FormatMemory(math.MaxInt64), "8192PiB"},
		{FormatMemory(95092 * KiB), "92.9MiB"},
		{FormatMemory(9999 * KiB), "9999KiB"},
		{FormatMemory(10116 * KiB), "9.88MiB"},
		{FormatMemory(GiB - 4*KiB), "1024MiB"},
		{FormatMemory(math.MinInt64), "-8192PiB"},
		{FormatMemoryExact(1_234_567 * KB), "1234567KB"},
		{FormatMemoryExact(4 * GiB), "4GiB"},
		{FormatMemoryExact(4*GiB + 1), "4294967297B"},
		{FormatMemoryExact(math.MinInt64), "-8192PiB"},
		{FormatRate(110 * MB), "110MB/s"},
		{FormatRate(123_456_789), "123.5MB/s"},
		{FormatRate(9_876_543), "9.88MB/s"},
		{FormatRate(0), "0B/s"},
		{FormatRateExact(123_456_789), "123456789B/s"},
		{Vector{}.String(), "0"},
		{Of(2000, 4*GiB).String(), "cpu=2 memory=4GiB"},
		{Vector{500, -GiB, 110 * MB, 125 * MB}.String(), "cpu=500m memory=-1GiB disk=110MB/s network=125MB/s"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// What is printed for people is read back, and is right to half of its last digit.
func FuzzFormat(f *testing.F) {
	for _, a := range []int64{0, 1, 999, 1000, 1023, 1024, 99_999, 100_000, 1 << 40, 1e18, math.MaxInt64} {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		a := Amount(n)
		if a < 0 {
			if FormatMemoryExact(a)[0] != '-' || FormatCPU(a)[0] != '-' || FormatRate(a)[0] != '-' {
				t.Fatalf("%d lost its sign", a)
			}
			return
		}
		same := func(got Amount, err error) {
			t.Helper()
			if err != nil || got != a {
				t.Fatalf("%d came back as %d, %v", a, got, err)
			}
		}
		same(ParseCPU(FormatCPU(a)))
		same(ParseMemory(FormatMemoryExact(a)))
		same(ParseRate(FormatRateExact(a)))
		if a > math.MaxInt64/100*99 {
			return // rounding up may leave the range of Amount
		}
		near, err := ParseMemory(FormatMemory(a))
		if err != nil || math.Abs(float64(near-a)) > 0.0051*float64(a) {
			t.Fatalf("%d printed as %s came back as %d, %v", a, FormatMemory(a), near, err)
		}
		near, err = ParseRate(FormatRate(a))
		if err != nil || math.Abs(float64(near-a)) > 0.0051*float64(a) {
			t.Fatalf("%d printed as %s came back as %d, %v", a, FormatRate(a), near, err)
		}
	})
}

// Parsing never panics; it gives an amount that prints and reads back, or one line that names what is accepted.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "2", "500m", "1.5", "4GiB", "10000MB", "512M", "1024", "110MB/s", "-1", "NaN", "1.",
		"9223372036854775807B", "9223372036854775807.5B", "99999999999999999999", "0.0000000000000000000001GB", "1/s",
		"\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range []struct {
			parse  func(string) (Amount, error)
			format func(Amount) string
		}{{ParseCPU, FormatCPU}, {ParseMemory, FormatMemoryExact}, {ParseRate, FormatRateExact}} {
			a, err := c.parse(text)
			if err != nil {
				if a != 0 || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), ": write ") {
					t.Fatalf("%q: %d, %v", text, a, err)
				}
				continue
			}
			if a < 0 {
				t.Fatalf("%q gave %d", text, a)
			}
			if b, err := c.parse(c.format(a)); err != nil || a != b {
				t.Fatalf("%q gave %d, printed %q, which gave %d, %v", text, a, c.format(a), b, err)
			}
		}
	})
}
