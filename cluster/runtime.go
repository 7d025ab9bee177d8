package cluster

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/resource"
)

// JVM is the Runtime of a Command whose program is java.
const JVM = "jvm"

// HeapShare is the largest heap of a JVM as a share of the memory of its container: the rest is for what a JVM holds beside it,
// such as compiled code and stacks.
const HeapShare = 0.8

// CheckRuntime returns an error if c names a runtime that there is not, or that cannot be told about memory by its arguments: what
// a shell would start is out of reach.
func (c *Command) CheckRuntime() error {
	switch {
	case c.Runtime == "":
	case c.Runtime != JVM:
		return fmt.Errorf("runtime %s: must be %s", ClipLine(c.Runtime), JVM)
	case len(c.Args) > 0 && filepath.Base(c.Args[0]) != "java":
		return fmt.Errorf("runtime %s: puts -Xmx behind java, but the command begins with %s; begin it with java, or leave the runtime out and write -Xmx yourself",
			JVM, strconv.Quote(Clip(c.Args[0])))
	}
	return nil
}

// WithHeap returns c as a container runs it: java is told how large its heap may become, unless c says so itself. most is what a
// container of class FLEX may come to hold, bytes, 0 if nobody knows: java then takes its own default. A REGULAR one holds what it is granted.
func (c Command) WithHeap(class Class, most resource.Amount) Command {
	if c.Runtime != JVM || slices.ContainsFunc(c.Args, saysHeap) {
		return c
	}
	if class == Flex && most == 0 {
		return c
	}
	heap := fmt.Sprintf("-Xmx%dk", resource.Amount(HeapShare*float64(most))/resource.KiB)
	if class == Regular {
		heap = fmt.Sprintf("-Xmx{memory*%v}", HeapShare)
	}
	c.Args = slices.Insert(slices.Clone(c.Args), 1, heap)
	return c
}

// saysHeap reports whether an argument of java says how large its heap may become.
func saysHeap(argument string) bool {
	return strings.HasPrefix(argument, "-Xmx") || strings.HasPrefix(argument, "-XX:MaxRAM") || strings.HasPrefix(argument, "-XX:MaxHeapSize")
}
