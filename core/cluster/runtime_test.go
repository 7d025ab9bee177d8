package cluster

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

func TestWithHeap(t *testing.T) {
	for _, c := range []struct {
		name, runtime, args string
		class               Class
		want                string
	}{
		{"most", JVM, "java Main", Flex, "java -Xmx838860k Main"},
		{"granted", JVM, "/opt/jdk/bin/java Main", Regular, "/opt/jdk/bin/java -Xmx{memory*0.8} Main"},
		{"alone", JVM, "java", Flex, "java -Xmx838860k"},
		{"given", JVM, "java -ea -Xmx64m Main", Flex, "java -ea -Xmx64m Main"},
		{"given as a share", JVM, "java -XX:MaxRAMPercentage=30 Main", Flex, "java -XX:MaxRAMPercentage=30 Main"},
		{"given by its long name", JVM, "java -XX:MaxHeapSize=64m Main", Flex, "java -XX:MaxHeapSize=64m Main"},
		{"initial", JVM, "java -Xms64m Main", Flex, "java -Xmx838860k -Xms64m Main"},
		{"not asked for", "", "java Main", Flex, "java Main"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := Command{Args: strings.Fields(c.args), Env: map[string]string{"A": "b"}, Runtime: c.runtime}
			after := before.WithHeap(c.class, resource.GiB)
			if got := strings.Join(after.Args, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if strings.Join(before.Args, " ") != c.args || after.Env["A"] != "b" {
				t.Errorf("more than the arguments, or the command itself, was changed: %+v %+v", before, after)
			}
		})
	}
}

// TestWithHeapOfUnknownSize: a wrong heap size would be worse than java's own default.
func TestWithHeapOfUnknownSize(t *testing.T) {
	c := Command{Args: []string{"java", "Main"}, Runtime: JVM}
	if got := strings.Join(c.WithHeap(Flex, 0).Args, " "); got != "java Main" {
		t.Errorf("got %s", got)
	}
	if got := strings.Join(c.WithHeap(Regular, 0).Args, " "); got != "java -Xmx{memory*0.8} Main" {
		t.Errorf("a regular container has what it is granted, but got %s", got)
	}
}

func TestCheckRuntime(t *testing.T) {
	for program, good := range map[string]bool{"java": true, "/usr/lib/jvm/jdk/bin/java": true, "./java": true,
		"sh": false, "javac": false, "java.sh": false, "/java/bin/run": false, "env": false} {
		c := Command{Args: []string{program, "Main"}, Runtime: JVM}
		if err := c.checkRuntime(); (err == nil) != good {
			t.Errorf("%s: %v", program, err)
		}
	}
}
