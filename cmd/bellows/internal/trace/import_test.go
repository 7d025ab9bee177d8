package trace

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Every assumption, with its default, is documented in the section of its format in docs/reference/importers.md.
func TestAssumptionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/reference/importers.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		sections[name] = body
	}
	check := func(section string, f *pflag.Flag) {
		switch f.Name {
		case "help", "json", "quiet":
			return
		}
		if !strings.Contains(sections[section], "`--"+f.Name+"`") {
			t.Errorf("docs/reference/importers.md, %s: does not mention --%s", section, f.Name)
		}
		if usual := f.DefValue; usual != "" && usual != "false" && !strings.Contains(sections[section], usual) {
			t.Errorf("docs/reference/importers.md, %s: does not mention %s, the default of --%s", section, usual, f.Name)
		}
	}
	for _, format := range importFormats() {
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		format.flags(own)
		own.VisitAll(func(f *pflag.Flag) { check(format.format.Name(), f) })
		format.command().Flags().VisitAll(func(f *pflag.Flag) {
			if own.Lookup(f.Name) == nil {
				check("Options of every format", f)
			}
		})
	}
}

func TestShortForms(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{shortNumber(3), "3"}, {shortNumber(42.94), "42.9"}, {shortNumber(878), "878"}, {shortNumber(56512), "56.5k"},
		{shortNumber(3.1e6), "3.1M"},
		{shortNumber(1.256), "1.3"}, {shortSeconds(0.0121), "12.1ms"}, {shortSeconds(15.42), "15.4s"},
		{shortSeconds(0), "0s"},
		{shortSeconds(125), "2.1m"}, {shortSeconds(46800), "13h"}, {shortSeconds(7 * 86400), "7d"},
		{shortBytes(1 << 30), "1.1GB"}, {shortBytes(12), "12B"}, {shortBytes(2.5e15), "2.5PB"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}
