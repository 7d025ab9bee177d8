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

// HeapShare is the largest heap of a JVM as a share of its container's memory. The rest is for memory outside the heap,
// such as compiled code and stacks.
const HeapShare = 0.8

// checkRuntime returns an error if c names an unknown runtime, or if arguments of c cannot reach the runtime: a java
// that a shell starts gets no options.
func (c *Command) checkRuntime() *WrongField {
	switch {
	case c.Runtime == "":
	case c.Runtime != JVM:
		return wrong("runtime", ClipLine(c.Runtime), "must be %s", JVM)
	case len(c.Args) > 0 && filepath.Base(c.Args[0]) != "java":
		return wrong("runtime", JVM,
			"sets -Xmx after java, but the command begins with %s; begin it with java, or omit the runtime and set -Xmx "+
				"yourself", strconv.Quote(Clip(c.Args[0])))
	}
	return nil
}

// WithHeap returns c as a container runs it: with an option for the maximum heap size of java, unless c has one. most
// is the most memory that a container of class FLEX may use, bytes, or 0 if unknown: java then uses its own default. A
// REGULAR container uses its granted memory, and its command no longer has a Runtime, which needs class FLEX.
func (c Command) WithHeap(class Class, most resource.Amount) Command {
	runtime := c.Runtime
	if class == Regular {
		c.Runtime = ""
	}
	if runtime != JVM || slices.ContainsFunc(c.Args, saysHeap) || class == Flex && most == 0 {
		return c
	}
	heap := fmt.Sprintf("-Xmx%dk", resource.Amount(HeapShare*float64(most))/resource.KiB)
	if class == Regular {
		heap = fmt.Sprintf("-Xmx{memory*%v}", HeapShare)
	}
	c.Args = slices.Insert(slices.Clone(c.Args), 1, heap)
	return c
}

// saysHeap reports whether an argument of java sets the maximum heap size.
func saysHeap(argument string) bool {
	return strings.HasPrefix(argument, "-Xmx") || strings.HasPrefix(argument, "-XX:MaxRAM") ||
		strings.HasPrefix(argument, "-XX:MaxHeapSize")
}
