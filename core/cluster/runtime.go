package cluster

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// JVM is the Runtime of a Command whose program is java.
const JVM = "jvm"

// HeapShare is the largest heap of a runtime as a share of its container's memory. The rest is for memory outside the
// heap, such as compiled code and stacks.
const HeapShare = 0.8

// runtime is a language's runtime that fixes the largest size of its heap when it starts, by the memory limit of its
// container. The limit of a FLEX container is small then, and grows later, so the runtime gets a heap from bellows.
type runtime struct {
	name     string   // for people
	programs []string // that are this runtime, or start it; what else starts it need not be known, see variable
	// option is the option that tells the heap to a program of that name, and needs no variable: fmt's format, for the
	// heap in unit. A variable would do, but java prints each that it reads.
	option map[string]string
	// variable tells the heap to every process of the container, also behind a wrapper or a script; assignment is its
	// value, fmt's format, for the heap in unit.
	variable, assignment string
	unit                 resource.Amount
	// least is the heap, bytes, that the runtime takes however small its container is: it gets no smaller one.
	least resource.Amount
	// own begin the options that set the heap; variables are where else they can stand, without being seen among the
	// arguments. settings are variables that set it by themselves.
	own, variables, settings []string
}

const (
	jdkOptions = "JDK_JAVA_OPTIONS"
	maxRAM     = "-XX:MaxRAM" // begins options that set the heap as a share
)

// runtimes are the heap-based runtimes; docs/reference/runtimes.md says what was tested. Go and CPython have no
// largest heap; DuckDB and sort read no variable.
var runtimes = []runtime{
	{name: "java", programs: []string{"java", "javac", "javadoc", "jshell", "mvn", "mvnw"},
		option:   map[string]string{"java": "-Xmx%dk", "javac": "-J-Xmx%dk", "javadoc": "-J-Xmx%dk", "jshell": "-J-Xmx%dk"},
		variable: jdkOptions, assignment: "-Xmx%dk", unit: resource.KiB,
		own:       []string{"-Xmx", maxRAM, "-XX:MaxHeapSize", "-J-Xmx", "-J-XX:MaxRAM", "-J-XX:MaxHeapSize"},
		variables: []string{"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"}},
	{name: "node", programs: []string{"node", "nodejs", "npm", "npx", "yarn", "pnpm"},
		variable: "NODE_OPTIONS", assignment: "--max-old-space-size=%d", unit: resource.MiB, least: 256 * resource.MiB,
		own: []string{"--max-old-space-size", "--max_old_space_size", "--max-heap-size", "--max_heap_size"}},
	{name: ".NET", programs: []string{"dotnet"},
		variable: "DOTNET_GCHeapHardLimit", assignment: "0x%x", unit: 1,
		settings: []string{"DOTNET_GCHeapHardLimitPercent", "COMPlus_GCHeapHardLimit", "COMPlus_GCHeapHardLimitPercent"}},
}

// maxMemoryVariable tells a program in a FLEX container how much memory it may count on, bytes.
const maxMemoryVariable = "BELLOWS_MAX_MEMORY_BYTES"

// heap is what r gets in a container that may have most bytes; ok is false if that says less than r takes anyway.
func (r *runtime) heap(most resource.Amount) (heap resource.Amount, ok bool) {
	heap = resource.Amount(HeapShare*float64(most)) / r.unit * r.unit
	return heap, heap >= max(r.least, r.unit)
}

// isOwn reports whether an option sets the heap.
func (r *runtime) isOwn(option string) bool {
	return slices.ContainsFunc(r.own, func(begin string) bool { return strings.HasPrefix(option, begin) })
}

// sizedBy returns what of an environment sets the heap of r; empty if nothing does.
func (r *runtime) sizedBy(env []string) string {
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case slices.Contains(r.settings, name):
			return name
		case (name == r.variable || slices.Contains(r.variables, name)) &&
			(value == "" || len(r.own) == 0 || slices.ContainsFunc(strings.Fields(value), r.isOwn)):
			return name
		case r.variable == jdkOptions && strings.Contains(value, maxRAM): // as in MAVEN_OPTS: -Xmx would win
			return name
		}
	}
	return ""
}

// runtimeOf returns the runtime that a command is or starts, by the name of its program or by the words of a text for
// a shell. program is that name; nil if there is none.
func runtimeOf(args []string) (r *runtime, program string) {
	if len(args) == 0 {
		return nil, ""
	}
	words := args[:1]
	if len(args) > 2 && strings.HasSuffix(filepath.Base(args[0]), "sh") && args[1] == "-c" {
		words = strings.FieldsFunc(args[2], func(c rune) bool { return strings.ContainsRune(" \t\n;|&()", c) })
	}
	for _, word := range words {
		program = filepath.Base(word)
		for i := range runtimes {
			if slices.Contains(runtimes[i].programs, program) {
				return &runtimes[i], program
			}
		}
	}
	return nil, ""
}

// heapWords is in what WithHeaps says of a heap that a runtime gets, and in nothing else.
const heapWords = " gets a heap of "

// GivenHeap returns the clause of WithHeaps from the end of clauses, if it says that a runtime gets a heap; else empty.
func GivenHeap(clauses string) string {
	if clause := clauses[strings.LastIndex(clauses, "; ")+1:]; strings.Contains(clause, heapWords) {
		return strings.TrimSpace(clause)
	}
	return ""
}

// WithHeaps returns arguments and environment, NAME=value, of a program with what tells heap-based runtimes a heap that
// fits a FLEX container, which may count on most bytes; which says in words what these are. What the command or the
// environment sets is never replaced. words is a clause on the runtime that the command is or starts; empty if it is
// none.
func WithHeaps(args, env []string, most resource.Amount, which string) (newArgs, newEnv []string, words string) {
	newArgs = args
	newEnv = append(slices.Clone(env), fmt.Sprintf("%s=%d", maxMemoryVariable, most))
	is, program := runtimeOf(args)
	for i := range runtimes {
		r := &runtimes[i]
		heap, ok := r.heap(most)
		if r == is && slices.ContainsFunc(args, r.isOwn) {
			words = r.name + " has a heap of its own, by its arguments"
			continue
		}
		if by := r.sizedBy(env); by != "" {
			if r == is {
				words = r.name + " has a heap of its own, by " + by
			}
			continue
		}
		if !ok {
			continue
		}
		if r == is {
			words = fmt.Sprintf("%s%s%s, %v of the %s %s", r.name, heapWords, resource.FormatMemory(heap), HeapShare,
				resource.FormatMemory(most), which)
			if option := r.option[program]; option != "" && filepath.Base(args[0]) == program {
				newArgs = slices.Insert(slices.Clone(args), 1, fmt.Sprintf(option, heap/r.unit))
				continue
			}
		}
		newEnv = r.tell(newEnv, heap)
	}
	return newArgs, newEnv, words
}

// told is the variable of r as an environment has it, NAME=value.
func (r *runtime) told(heap resource.Amount) string {
	return r.variable + "=" + fmt.Sprintf(r.assignment, heap/r.unit)
}

// tell returns env with the variable of r. Options of the submitter stay behind that of r: the last one counts.
func (r *runtime) tell(env []string, heap resource.Amount) []string {
	told := r.told(heap)
	for i, pair := range env {
		if options, ok := strings.CutPrefix(pair, r.variable+"="); ok {
			env[i] = told + " " + options
			return env
		}
	}
	return append(env, told)
}

// WithoutHeaps returns the environment, NAME=value, of a submitter without what WithHeaps told it: if the submitter is
// itself a program in a FLEX container, its heap is not that of its jobs.
func WithoutHeaps(env []string) []string {
	at := slices.IndexFunc(env, func(pair string) bool { return strings.HasPrefix(pair, maxMemoryVariable+"=") })
	if at < 0 {
		return env
	}
	most, err := strconv.ParseInt(strings.TrimPrefix(env[at], maxMemoryVariable+"="), 10, 64)
	out := slices.Delete(slices.Clone(env), at, at+1)
	if err != nil {
		return out
	}
	for i := range runtimes {
		r := &runtimes[i]
		heap, _ := r.heap(resource.Amount(most))
		told := r.told(heap)
		if at := slices.Index(out, told); at >= 0 {
			out = slices.Delete(out, at, at+1)
		}
		for i, pair := range out {
			if options, ok := strings.CutPrefix(pair, told+" "); ok {
				out[i] = r.variable + "=" + options
			}
		}
	}
	return out
}

// checkRuntime returns an error if c names an unknown runtime, or one that its program is not.
func (c *Command) checkRuntime() *WrongField {
	switch {
	case c.Runtime == "":
	case c.Runtime != JVM:
		return wrong("runtime", ClipLine(c.Runtime), "must be %s", JVM)
	case len(c.Args) > 0 && filepath.Base(c.Args[0]) != "java":
		return wrong("runtime", JVM, "says that the program is java, but the command begins with %s; omit the runtime: "+
			"every java in a flex container gets a heap", strconv.Quote(Clip(c.Args[0])))
	}
	return nil
}
