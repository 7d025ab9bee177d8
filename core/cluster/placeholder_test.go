package cluster

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

func fillJob() (*Job, resource.Vector, TaskID) {
	j := &Job{ID: 7, Name: "logs", Stages: []Stage{{Name: "map", Tasks: 1}, {Name: "sort", Tasks: 8}}}
	return j, resource.Of(1500, 100*resource.MiB), TaskID{Job: 7, Stage: 1, Index: 3}
}

func fill(c Command, grant resource.Vector, j *Job, id TaskID) (Command, error) {
	j.Stages[id.Stage].Command = c
	return j.FillCommand(id, grant)
}

func TestFillCommand(t *testing.T) {
	j, grant, id := fillJob()
	for text, want := range map[string]string{
		"":                       "",
		"plain } text":           "plain } text",
		"{{memory}":              "{memory}",
		"{{{memory}":             "{86016K",
		"awk '{{print $1}'":      "awk '{print $1}'",
		"{memory}":               "86016K",
		"{memory:K}":             "86016K",
		"{memory:M}":             "84M",
		"{memory:bytes}":         "88080384",
		"{memory*1:bytes}":       "104857600",
		"{memory:KiB}":           "86016",
		"{memory:MiB}m":          "84m",
		"{memory:MB}":            "88",
		"{memory-36MiB}":         "65536K",
		"{memory+28MiB:M}":       "128M",
		"{memory*0.8}":           "81920K",
		"{memory*0.8-16MiB:MiB}": "64",
		"{memory/3:bytes}":       "34952533",
		"{memory/10*3:MiB}":      "30",
		"-Xmx{memory*0.75:M}":    "-Xmx75M",
		"{cpus}":                 "2",
		"{cpus:milli}":           "1500",
		"{job}/{stage}.{task}":   "7/sort.3",
		"{name} {tasks}":         "logs 8",
	} {
		in := Command{Args: []string{"a", text}, Env: map[string]string{"E": text}, Dir: text}
		got, err := fill(in, grant, j, id)
		if err != nil || !reflect.DeepEqual(got, Command{Args: []string{"a", want}, Env: map[string]string{"E": want},
			Dir: want}) {
			t.Errorf("%s: got %+v, %v; want %q", text, got, err, want)
		}
		if in.Args[1] != text || in.Env["E"] != text {
			t.Errorf("%s: the command was changed", text)
		}
	}
	for text, want := range map[string]string{
		"{":                    "the placeholder { is not closed; write {{ for a brace",
		"{memory":              "the placeholder {memory is not closed",
		"{}":                   "placeholder {}: unknown; must be {memory}",
		"{MEMORY}":             "placeholder {MEMORY}: unknown",
		"{memory_bytes}":       "placeholder {memory_bytes}: unknown",
		"{memory:TiB}":         "after the colon must be bytes, K, M, G, KiB",
		"{memory:}":            "after the colon must be",
		"{memory-}":            "is empty",
		"{memory-64}":          "has no unit",
		"{memory*}":            `"": must be a number from 0.000001 to 1000000`,
		"{memory*NaN}":         `"NaN": must be a number`,
		"{memory/0}":           `"0": must be a number`,
		"{memory*-1}":          `"": must be a number`,
		"{memory-100MiB}":      "is 0 bytes with a grant of 100MiB: must be at least 1KiB",
		"{memory-1GiB}":        "is -968884224 bytes",
		"{memory:GiB}":         "must be at least 1GiB",
		"{memory*1e6*1e6}":     "exceeds any memory",
		"{memory+999999999PB}": "is more than",
		"{memory+2000PB}":      "must be at most 1000PB",
	} {
		_, err := fill(Command{Args: []string{text}}, grant, j, id)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "command: ") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func FuzzFillCommand(f *testing.F) {
	f.Add("{memory*0.8-16MiB:MiB} {{ } {task}")
	f.Add("{memory/3+1GiB}")
	f.Fuzz(func(t *testing.T, text string) {
		j, grant, id := fillJob()
		got, err := fill(Command{Args: []string{text}}, grant, j, id)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one line: %v", err)
			}
			return
		}
		if !strings.Contains(text, "{") && got.Args[0] != text {
			t.Fatalf("%q became %q", text, got.Args[0])
		}
	})
}

// A short command cannot expand to one that exhausts memory, nor to one that no kernel executes.
func TestFillCommandIsBounded(t *testing.T) {
	j, grant, id := fillJob()
	j.Name = strings.Repeat("x", LongestName)
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Command{Args: []string{"echo", strings.Repeat("x", longestFilled)}}, ""},
		{Command{Args: []string{"echo", strings.Repeat("x", longestFilled+1)}},
			"command: must be at most 131071 bytes once its placeholders are filled"},
		{Command{Args: []string{"echo", strings.Repeat("{name}", 1_000_000)}}, "command: must be at most 131071 bytes"},
		{Command{Args: []string{"echo"}, Dir: strings.Repeat("{name}", 1_000_000)}, "dir: must be at most 131071 bytes"},
		{Command{Args: []string{"echo"}, Env: map[string]string{"A": strings.Repeat("{{", longestFilled+1)}},
			"env A: must be at most 131071 bytes"},
		{Command{Args: append([]string{"echo"}, slices.Repeat([]string{strings.Repeat("{name}", 600)}, 18)...)},
			"together once"},
		{Command{Args: append([]string{"echo"}, slices.Repeat([]string{strings.Repeat("{name}", 600)}, 17)...)}, ""},
	} {
		_, err := fill(c.command, grant, j, id)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("error is %v, want %q", err, c.want)
		}
		if checked := j.CheckCommand(1); (checked == nil) != (err == nil) {
			t.Errorf("checked it is %v, filled %v", checked, err)
		}
	}
}

func TestEveryFormOfMemoryIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range memoryForms {
		if !strings.Contains(string(text), "`"+form.name+"`") && !strings.Contains(string(text), "`{"+form.name+"}`") {
			t.Errorf("docs/formats.md does not mention %s", form.name)
		}
	}
}

// A program sizes itself by its memory if and only if its filled command depends on that, wherever the placeholder is.
func TestSizesItself(t *testing.T) {
	texts := []string{"{memory}", "in-{memory:MiB}.txt", "{memory*0.5}", "{{{memory}", "{{memory}", "{task}", "x"}
	for _, text := range texts {
		for field, c := range map[string]Command{
			"argument": {Args: []string{"sort", text}},
			"env":      {Args: []string{"sort"}, Env: map[string]string{"SIZE": text}},
			"dir":      {Args: []string{"sort"}, Dir: text},
			"stdin":    {Args: []string{"sort"}, Stdin: text},
		} {
			j := Job{Stages: []Stage{{Tasks: 1, Command: c}}}
			var filled [2]Command
			for i := range filled {
				var err error
				grant := resource.Of(resource.Core, resource.Amount(1+i)*resource.GiB)
				if filled[i], err = j.FillCommand(TaskID{}, grant); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := c.SizesItself(), !reflect.DeepEqual(filled[0], filled[1]); got != want {
				t.Errorf("%s in %s: sizes itself %v, want %v", text, field, got, want)
			}
		}
	}
}

// An item is filled in as a whole or in parts, and quoted where a shell reads it.
func TestItems(t *testing.T) {
	j := &Job{Stages: []Stage{{Tasks: 4, Command: Command{Items: []string{"a/b.tar.gz", "it's", "/.hidden", "x.y/"}}}}}
	for text, want := range map[string][]string{
		"{item}":        {"a/b.tar.gz", "it's", "/.hidden", "x.y/"},
		"{item:stem}":   {"a/b.tar", "it's", "/.hidden", "x.y/"},
		"{item:name}":   {"b.tar.gz", "it's", ".hidden", ""},
		"{item:base}":   {"b.tar", "it's", ".hidden", ""},
		"{item:folder}": {"a", ".", "/", "x.y"},
		"{number}":      {"1", "2", "3", "4"},
	} {
		for i := range want {
			id := TaskID{Index: int32(i)}
			j.Stages[0].Args = []string{"a", text}
			if got, err := j.FillCommand(id, resource.Vector{}); err != nil || got.Args[1] != want[i] {
				t.Errorf("%s: got %q, %v; want %q", text, got.Args, err, want[i])
			}
			quoted := "'" + strings.ReplaceAll(want[i], "'", `'\''`) + "'"
			if text == "{number}" {
				quoted = want[i]
			}
			j.Stages[0].Args = []string{"sh", "-c", "echo " + text}
			if got, err := j.FillCommand(id, resource.Vector{}); err != nil || got.Args[2] != "echo "+quoted {
				t.Errorf("%s for the shell: got %q, %v; want %q", text, got.Args, err, quoted)
			}
		}
	}
	j.Stages[0].Items = nil
	j.Stages[0].Args = []string{"a", "{item}"}
	_, err := j.FillCommand(TaskID{}, resource.Vector{})
	if err == nil || !strings.Contains(err.Error(), "must have each") {
		t.Errorf("without items: %v", err)
	}
}
