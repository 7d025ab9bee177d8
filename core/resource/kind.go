package resource

// Kind names one resource. Its order is the order of components in a Vector.
type Kind uint8

const (
	CPU     Kind = iota // millicores
	Memory              // bytes
	Disk                // bytes per second
	Network             // bytes per second
	NumKinds
)

// The most of a resource that one task may request. The bounds are far above any sensible value; they keep sums over a
// whole run from overflowing.
const (
	MostCPU    = 1_000_000 * Core
	MostMemory = 1000 * PB
	MostRate   = MostMemory // bytes per second
)

// row is what distinguishes a kind of resource from the other kinds. Code that is about one kind alone names it: memory
// where tasks are under-sized or containers breathe, CPU where time on it is shared, disk where tasks spill.
type row struct {
	name  string // in messages
	field string // in job files and cluster files, and as a flag
	usage string // help text of the flag for what a command requests

	unit          string // what the value of a flag is, in help texts
	parse         func(string) (Amount, error)
	format, exact func(Amount) string
	work          string // unit of amount × time
	workSize      Amount // of one unit of work, in base units × seconds
	named         bool   // an amount as it is printed says of what it is: "2 cores", but not "50MB/s"

	most      Amount // that one task may request
	stated    bool
	rate      bool
	contended bool
}

// kinds is the table of all resources. docs/reference/adding-a-resource.md says what a further row needs.
var kinds = [NumKinds]row{
	CPU: {name: "cpu", field: "cpus",
		usage: "cores that are reserved, and the share where others want them; default: learned, at most 1",
		unit:  "cores", parse: ParseCPU, format: formatCores, exact: FormatCPU, work: "core_s", workSize: Core, named: true,
		most: MostCPU, stated: true, contended: true},
	Memory: {name: "memory", field: "memory",
		usage: "most memory that the command may use, or with --reserve stated the size of its box; default: the node's " +
			"memory",
		unit: "size", parse: ParseMemory, format: FormatMemory, exact: FormatMemoryExact, work: "byte_s", workSize: 1,
		most: MostMemory, stated: true},
	Disk: {name: "disk", field: "disk", usage: "disk bandwidth, such as 50MB/s",
		unit: "rate", parse: ParseRate, format: FormatRate, exact: FormatRateExact, work: "bytes", workSize: 1,
		most: MostRate, rate: true, contended: true},
	Network: {name: "network", field: "network", usage: "network bandwidth, such as 50MB/s or 400Mbit/s",
		unit: "rate", parse: ParseRate, format: FormatRate, exact: FormatRateExact, work: "bytes", workSize: 1,
		most: MostRate, rate: true, contended: true},
}

// String returns the name used in messages.
func (k Kind) String() string {
	if k >= NumKinds {
		return "unknown"
	}
	return kinds[k].name
}

// Field returns the name of k in job files and cluster files, which is also the name of its flag.
func (k Kind) Field() string { return kinds[k].field }

// Usage returns the help text of the flag with which a command requests k; ok is false if there is no such flag.
func (k Kind) Usage() (text string, ok bool) { return kinds[k].usage, kinds[k].usage != "" }

// Unit names the value of a flag for k in help texts, such as "cores".
func (k Kind) Unit() string { return kinds[k].unit }

// Parse reads an amount of k with its unit. An error is one sentence that begins with the text and says what is
// accepted.
func (k Kind) Parse(text string) (Amount, error) { return kinds[k].parse(text) }

// Format prints an amount of k for people, with its unit; Unbounded is "unknown".
func (k Kind) Format(a Amount) string {
	switch {
	case k >= NumKinds:
		return FormatRate(a) // of a record that a later version wrote
	case a == Unbounded:
		return "unknown"
	}
	return kinds[k].format(a)
}

// FormatOf prints an amount of k for people, and says of what it is: "50MB/s of disk", "2 cores".
func (k Kind) FormatOf(a Amount) string {
	if k < NumKinds && kinds[k].named && a != Unbounded {
		return k.Format(a)
	}
	return k.Format(a) + " of " + k.String()
}

// FormatExact prints an amount of k so that Parse reads the same amount back, for a >= 0 other than Unbounded.
func (k Kind) FormatExact(a Amount) string {
	if a == Unbounded {
		return "unknown"
	}
	return kinds[k].exact(a)
}

// WorkUnit names the unit of an amount of k times seconds, such as "core_s", and returns the size of one such unit in
// base units of k times seconds.
func (k Kind) WorkUnit() (name string, size Amount) { return kinds[k].work, kinds[k].workSize }

// Most is the most of k that one task may request.
func (k Kind) Most() Amount { return kinds[k].most }

// Stated reports whether every node states how much it has of k. A node may lack a number for other kinds
// (cluster.Node.Unknown).
func (k Kind) Stated() bool { return kinds[k].stated }

// IsRate reports whether k is an amount per second: a task that runs for longer needs proportionally less at a time.
func (k Kind) IsRate() bool { return kinds[k].rate }

// Contended reports whether the running tasks of a node compete for k, which their grants do not prevent. Memory is not
// contended: a grant of memory is exclusive.
func (k Kind) Contended() bool { return kinds[k].contended }

// KindsWhere returns the kinds that have a property, in order, such as KindsWhere(Kind.IsRate).
func KindsWhere(has func(Kind) bool) []Kind {
	var some []Kind
	for k := range NumKinds {
		if has(k) {
			some = append(some, k)
		}
	}
	return some
}
