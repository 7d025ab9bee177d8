package machine

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/internal/testfile"
)

// The table in docs/reference/settings.md has all settings, with the defaults and the help of their flags. With
// -rewrite it is written anew.
func TestSettingsAreDocumented(t *testing.T) {
	const page = "../../../../docs/reference/settings.md"
	const head = "| field | value | meaning | default | a change applies |\n|---|---|---|---|---|\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("%s has no table of settings", page)
	}
	table := ""
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		table += line
	}
	want := "| `bellows_config` | | version of the format: 1 | required | |\n"
	for _, s := range newUpOptions().table() {
		want += documented(&s)
	}
	if table == want {
		return
	}
	if !testfile.Rewriting() {
		t.Errorf("the table of settings in %s differs; run the test with -rewrite. It should be\n%s", page, want)
		return
	}
	if err := os.WriteFile(page, []byte(before+head+want+strings.TrimPrefix(rest, table)), 0o644); err != nil {
		t.Error(err)
	}
}

// documented returns the row of a setting.
func documented(s *setting) string {
	_, meaning := pflag.UnquoteUsage(&pflag.Flag{Usage: s.help, Value: s.value})
	value := s.value.Type()
	switch {
	case s.named() != nil:
		value = "mapping"
	case value == "bool":
		value = "`true` or `false`"
	}
	byDefault := s.value.String()
	if byDefault != "" {
		byDefault = "`" + byDefault + "` "
	}
	applies := "at the next start"
	if s.reloads {
		applies = "on SIGHUP"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s| %s |\n", s.field(), value, meaning, byDefault, applies)
}

// Each setting is a field that the file can have and a flag of `bellows up`, and no flag is forgotten.
func TestFlagsAreSettings(t *testing.T) {
	settings := map[string]bool{}
	for _, s := range newUpOptions().table() {
		if settings[s.flag] {
			t.Errorf("setting %s is in the table twice", s.flag)
		}
		settings[s.flag] = true
	}
	// These say which daemon is meant, and how this command starts it.
	for _, name := range []string{"config", "state", "socket", "detach", "accept-store", "log"} {
		settings[name] = true
	}
	upCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !settings[f.Name] {
			t.Errorf("flag %s of up is no setting: define it in upOptions.table", f.Name)
		}
	})
}

// A detached daemon gets quotas as they were given.
func TestQuotasAreArguments(t *testing.T) {
	o, err := withArguments(t, "--user-quota", "running=10 refuses", "--user-quota", "ada.memory=none",
		"--queue-quota=batch.cpus=2")
	if err != nil {
		t.Fatal(err)
	}
	again := strings.Join(o.origins.again, "|")
	for _, want := range []string{"|--user-quota|ada.memory=none|--user-quota|running=10 refuses",
		"|--queue-quota|batch.cpus=2"} {
		if !strings.Contains(again, want) {
			t.Errorf("arguments %s lack %s", again, want)
		}
	}
	for _, text := range []string{"memory", "memory=", "=5", "ada.=5", "ada.memory", "running=-1", "running=1x",
		"cpus=0", "memory=5"} {
		if err := (quotaFlag{}).Set(text); err == nil {
			t.Errorf("%q is a quota", text)
		}
	}
}
