package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A module with a test that fails by chance, which is the first time, and one that fails for certain.
const (
	byChance = `package m
import ("os"; "testing")
func TestTwice(t *testing.T) {
	t.Run("a case", func(t *testing.T) {
		if _, err := os.Stat("been"); err == nil { return }
		os.WriteFile("been", nil, 0o600)
		t.Error("the first time")
	})
	t.Run("other", func(t *testing.T) {})
}
func TestOther(t *testing.T) {}
`
	always = `package m
import "testing"
func TestAlways(t *testing.T) { t.Error("again") }
`
	panics = `package m
import "testing"
func TestPanics(t *testing.T) { panic("our bug") }
`
)

func TestRetry(t *testing.T) {
	for _, c := range []struct {
		name    string
		files   []string
		code    int
		retried string
		end     string
	}{
		{"by chance", []string{byChance}, 0, "=== once more, alone: m TestTwice/a_case\n",
			"FLAKY: m TestTwice/a_case\n3 passed, 0 failed, 0 skipped in "},
		{"for certain", []string{byChance, always}, 1, "=== once more, alone: m TestAlways\n",
			"FLAKY: m TestTwice/a_case\nfailed: m TestAlways\n3 passed, 1 failed, 0 skipped in "},
		{"with a panic", []string{byChance, panics}, 1, "",
			"failed: m TestTwice/a_case\nfailed: m TestPanics\n2 passed, 2 failed, 0 skipped in "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write := func(name, text string) {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("go.mod", "module m\n\ngo 1.24\n")
			for i, text := range c.files {
				write(string(rune('a'+i))+"_test.go", text)
			}
			ledger := filepath.Join(t.TempDir(), "ledger")
			var out strings.Builder
			code := execute(t.Context(), []string{"--", "-count=1", "./..."}, &out, &out, ledger)
			if code != c.code || !strings.Contains(out.String(), c.end) || !strings.Contains(out.String(), c.retried) ||
				strings.Contains(out.String(), "once more") != (c.retried != "") {
				t.Errorf("exit code %d, want %d, and output\n%swant %q and\n%s", code, c.code, out.String(), c.retried, c.end)
			}
			out.Reset()
			if code := execute(t.Context(), []string{"-account", ledger}, &out, &out, ""); code != c.code ||
				!strings.Contains(out.String(), "the first time") {
				t.Errorf("the account: exit code %d, want %d, and output\n%s", code, c.code, out.String())
			}
		})
	}
}

// Properties are tested on the same cases in each run, unless the environment has a seed.
func TestPropertySeed(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.24\n", "m_test.go": `package m
import ("os"; "testing")
func TestSeed(t *testing.T) {
	if os.Getenv("RAPID_SEED") != os.Getenv("WANT") { t.Error(os.Getenv("RAPID_SEED")) }
}
`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	given, ok := os.LookupEnv(propertySeed)
	t.Setenv(propertySeed, given) // restored at the end
	if !ok {
		os.Unsetenv(propertySeed)
		given = "1"
	}
	for _, seed := range []string{given, "7"} {
		t.Setenv("WANT", seed)
		var out strings.Builder
		if code := execute(t.Context(), []string{"--", "-count=1", "./..."}, &out, &out, ""); code != 0 {
			t.Errorf("seed %s: exit code %d\n%s", seed, code, out.String())
		}
		t.Setenv(propertySeed, "7")
	}
}

func TestAlone(t *testing.T) {
	args := []string{"-race", "-run=Test", "-timeout=1m", "m/a", "m/b", "-seeds=5"}
	got := alone(args, testName{"m/b", "TestX/a.b"})
	want := []string{`-run=^TestX$/^a\.b$`, "-race", "-timeout=1m", "m/b", "-seeds=5"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestIndependent(t *testing.T) {
	for test, want := range map[string]string{
		"TestX":                               "TestX",
		"TestScripts/help/more":               "TestScripts/help",
		"TestGuest/v2":                        "TestGuest/v2",
		"TestGuest/v2/root/TestX/a.b":         "TestGuest/v2/root/TestX",
		"TestGuest/v2_with_zram/root/TestX/a": "TestGuest/v2_with_zram/root/TestX",
	} {
		if got := independent(test); got != want {
			t.Errorf("%s: %s, want %s", test, got, want)
		}
	}
}
