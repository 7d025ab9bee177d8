package cluster

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// FillCommand returns the command of a task of j as the task runs it with the given grant. It replaces {memory} and the
// other placeholders in arguments, values of variables, directory and standard input; docs/formats.md lists them. j
// does not change. An error names the placeholder that is unknown or cannot be filled with this grant.
func (j *Job) FillCommand(task TaskID, grant resource.Vector) (Command, error) {
	c := &j.Stages[task.Stage].Command
	f := filler{grant: grant, job: j, task: task, left: mostFilled}
	filled := *c
	filled.Args, filled.Env, filled.Dir, filled.Stdin = make([]string, len(c.Args)), nil, f.fill("dir", c.Dir),
		f.fill("stdin", c.Stdin)
	for i, arg := range c.Args {
		f.shell = i == 2 && c.ByShell()
		filled.Args[i] = f.fill("command", arg)
	}
	f.shell = false
	if c.Env != nil {
		filled.Env = make(map[string]string, len(c.Env))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		filled.Env[name] = f.fill("env "+name, c.Env[name])
	}
	if f.err != nil {
		return Command{}, f.err
	}
	return filled, nil
}

// filled returns the texts of c in which FillCommand replaces placeholders.
func (c *Command) filled() []string {
	return slices.Concat(c.Args, []string{c.Dir, c.Stdin}, slices.Sorted(maps.Values(c.Env)))
}

// anyNode is the memory of a node that commands are checked for, before it is known where they run.
const anyNode = 4 * resource.TiB

// CheckCommand returns an error if the stage has no command, or if a placeholder in its command is unknown or cannot be
// filled for a task of the stage, with either ideal or minimum memory.
func (j *Job) CheckCommand(stage int) error {
	s := &j.Stages[stage]
	if len(s.Args) == 0 || s.Args[0] == "" {
		return errors.New("command: must begin with the name of a program")
	}
	for _, text := range slices.Concat(slices.Sorted(maps.Keys(s.Env)), s.filled(), s.Items) {
		if _, err := DecodeText(text); err != nil {
			return fmt.Errorf("command %s: %w", ClipLine(text), err)
		}
	}
	sizes := []resource.Amount{j.Told(stage, s.Ideal[resource.Memory], anyNode)}
	if s.MinMemory > 0 {
		sizes = append(sizes, s.MinMemory)
	}
	for _, memory := range sizes {
		_, err := j.FillCommand(TaskID{Job: j.ID, Stage: int32(stage)}, s.Ideal.With(resource.Memory, memory))
		if err != nil {
			return err
		}
	}
	return nil
}

// filler fills placeholders and keeps the first error.
type filler struct {
	grant resource.Vector
	job   *Job
	task  TaskID
	shell bool // what is filled is read by a shell
	left  int  // bytes that may still be written
	err   error
}

// The longest lengths of a filled command. The kernel executes nothing longer: see MAX_ARG_STRLEN and ARG_MAX in
// execve(2).
const (
	longestFilled = 128<<10 - 1 // one argument, value or directory, bytes
	mostFilled    = 2 << 20     // all together, bytes
)

const placeholders = "{memory}, {cpus}, {cpus:milli}, {task}, {tasks}, {number}, {item}, {stage}, {job} or {name}; " +
	"write {{ for a brace"

// fill replaces each {...} in text; {{ is a brace. field is used in errors.
func (f *filler) fill(field, text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		f.write(&out, field, before)
		if !found || f.err != nil {
			return out.String()
		}
		if after, escaped := strings.CutPrefix(rest, "{"); escaped {
			f.write(&out, field, "{")
			text = after
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			f.fail("%s: the placeholder {%s is not closed; write {{ for a brace", field, ClipLine(rest))
			return ""
		}
		f.write(&out, field, f.value(field, name))
		text = after
	}
}

// write appends text to one argument, value or directory, unless it becomes too long.
func (f *filler) write(out *strings.Builder, field, text string) {
	f.left -= len(text)
	switch {
	case out.Len()+len(text) > longestFilled:
		f.fail("%s: must be at most %d bytes once its placeholders are filled", field, longestFilled)
	case f.left < 0:
		f.fail("%s: arguments, env and dir must be at most %d bytes together once their placeholders are filled", field,
			mostFilled)
	default:
		out.WriteString(text)
	}
}

func (f *filler) fail(format string, operands ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, operands...)
	}
}

// value returns the text that replaces {name}.
func (f *filler) value(field, name string) string {
	stage := &f.job.Stages[f.task.Stage]
	switch name {
	case "task":
		return strconv.Itoa(int(f.task.Index))
	case "tasks":
		return strconv.Itoa(stage.Tasks)
	case "number":
		return strconv.Itoa(int(f.task.Index) + 1)
	case "item", "item:name", "item:folder", "item:stem", "item:base":
		return f.item(field, stage, name)
	case "stage":
		return stage.Name
	case "job":
		return strconv.FormatInt(int64(f.job.ID), 10)
	case "name":
		return f.job.Name
	case "cpus":
		return strconv.FormatInt(Cores(f.grant[resource.CPU]), 10)
	case "cpus:milli":
		return strconv.FormatInt(int64(f.grant[resource.CPU]), 10)
	}
	if sum, isMemory := strings.CutPrefix(name, "memory"); isMemory &&
		(sum == "" || strings.ContainsRune("+-*/:", rune(sum[0]))) {
		text, err := fillMemory(f.grant[resource.Memory], sum)
		if err != nil {
			f.fail("%s: placeholder {%s}: %w", field, ClipLine(name), err)
		}
		return text
	}
	f.fail("%s: placeholder {%s}: unknown; must be %s", field, ClipLine(name), placeholders)
	return ""
}

// item returns the part of the item of the task that a placeholder names, quoted if a shell reads it.
func (f *filler) item(field string, stage *Stage, name string) string {
	if int(f.task.Index) >= len(stage.Items) {
		f.fail("%s: placeholder {%s}: the stage must have each, a list of what its tasks work on", field, name)
		return ""
	}
	item := stage.Items[f.task.Index]
	folder, base := path.Split(item)
	stem := base
	if dot := strings.LastIndexByte(base, '.'); dot > 0 { // a name that begins with a dot is no extension
		stem = base[:dot]
	}
	switch name {
	case "item:name":
		item = base
	case "item:folder":
		item = path.Clean(folder)
	case "item:stem":
		item = folder + stem
	case "item:base":
		item = stem
	}
	if f.shell {
		return "'" + strings.ReplaceAll(item, "'", `'\''`) + "'"
	}
	return item
}

type memoryForm struct {
	name, suffix string
	unit         resource.Amount
}

// memoryForms are the forms that may follow the colon in {memory:...}. {memory} uses the first: whole KiB, as sort -S
// and java -Xmx read them.
var memoryForms = []memoryForm{
	{"K", "K", resource.KiB},
	{"M", "M", resource.MiB},
	{"G", "G", resource.GiB},
	{"bytes", "", 1},
	{"KiB", "", resource.KiB},
	{"MiB", "", resource.MiB},
	{"GiB", "", resource.GiB},
	{"KB", "", resource.KB},
	{"MB", "", resource.MB},
	{"GB", "", resource.GB},
}

// Headroom is what {memory} without arithmetic leaves of the grant: for the program's memory outside its configured
// buffer, and for a little page cache. GNU sort uses 2 MiB more than its -S and slows down with less than 12 MiB.
const Headroom = 16 * resource.MiB

// fillMemory prints memory, in bytes, after the arithmetic in sum: any of *N /N +SIZE -SIZE, from left to right, and
// then an optional :FORM. Without arithmetic it is the larger of memory less the headroom and half of memory. It rounds
// down.
func fillMemory(memory resource.Amount, sum string) (string, error) {
	sum, formName, hasForm := strings.Cut(sum, ":")
	form := memoryForms[0]
	if hasForm {
		i := slices.IndexFunc(memoryForms, func(f memoryForm) bool { return f.name == formName })
		if i < 0 {
			return "", errors.New("after the colon must be bytes, K, M, G, KiB, MiB, GiB, KB, MB or GB")
		}
		form = memoryForms[i]
	}
	value := memory
	if sum == "" {
		value = max(memory-Headroom, memory/2)
	}
	for sum != "" {
		end := strings.IndexAny(sum[1:], "+-*/") + 1
		if end == 0 {
			end = len(sum)
		}
		var err error
		if value, err = step(value, sum[0], sum[1:end]); err != nil {
			return "", err
		}
		sum = sum[end:]
	}
	if value < form.unit {
		return "", fmt.Errorf("is %d bytes with a grant of %s: must be at least %s", value,
			resource.FormatMemory(memory), resource.FormatMemoryExact(form.unit))
	}
	return strconv.FormatInt(int64(value/form.unit), 10) + form.suffix, nil
}

// step applies one operation of {memory...} to value, in bytes.
func step(value resource.Amount, operator byte, operand string) (resource.Amount, error) {
	if operator == '+' || operator == '-' {
		size, err := resource.ParseMemory(operand)
		switch {
		case err != nil:
			return 0, err
		case size > resource.MostMemory:
			return 0, fmt.Errorf("size %s: must be at most %s", operand, resource.FormatMemoryExact(resource.MostMemory))
		case operator == '-':
			return value - size, nil
		case value > math.MaxInt64-size:
			return 0, errors.New("exceeds any memory")
		}
		return value + size, nil
	}
	factor, err := strconv.ParseFloat(operand, 64)
	if err != nil || !(factor >= 1e-6 && factor <= 1e6) {
		return 0, fmt.Errorf("%q: must be a number from 0.000001 to 1000000", operand)
	}
	// The small excess keeps 0.1*30 from rounding down to 2.
	product := float64(value) * (1 + 1e-12)
	if operator == '*' {
		product *= factor
	} else {
		product /= factor
	}
	if product > float64(resource.MostMemory) || product < -float64(resource.MostMemory) {
		return 0, errors.New("exceeds any memory")
	}
	return resource.Amount(math.Floor(product)), nil
}
