package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

func TestWithHeaps(t *testing.T) {
	const share = ", 0.8 of the 1GiB that its container may have"
	const told = "java gets a heap of 819.2MiB" + share
	quiet := []string{"BELLOWS_MAX_MEMORY_BYTES=1073741824", "NODE_OPTIONS=--max-old-space-size=819",
		"DOTNET_GCHeapHardLimit=0x33333333"} // what a program has beside the arguments of java
	all := slices.Insert(slices.Clone(quiet), 1, "JDK_JAVA_OPTIONS=-Xmx838860k")
	for _, c := range []struct {
		name      string
		args, env []string
		want      []string // the arguments
		more      []string // what the environment has in addition to env, or instead
		words     string
	}{
		{"java", []string{"/opt/jdk/bin/java", "Main"}, nil, []string{"/opt/jdk/bin/java", "-Xmx838860k", "Main"}, quiet,
			told},
		{"java alone", []string{"java"}, nil, []string{"java", "-Xmx838860k"}, quiet, told},
		{"java with an initial heap", []string{"java", "-Xms64m", "Main"}, nil,
			[]string{"java", "-Xmx838860k", "-Xms64m", "Main"}, quiet, told},
		{"java with a heap", []string{"java", "-ea", "-Xmx64m", "Main"}, nil, nil, quiet,
			"java has a heap of its own, by its arguments"},
		{"java with a share", []string{"java", "-XX:MaxRAMPercentage=30", "Main"}, nil, nil, quiet,
			"java has a heap of its own, by its arguments"},
		{"java with a heap by its long name", []string{"java", "-XX:MaxHeapSize=64m", "Main"}, nil, nil, quiet,
			"java has a heap of its own, by its arguments"},
		{"java with a heap in a variable", []string{"java", "Main"}, []string{"JAVA_TOOL_OPTIONS=-ea -Xmx64m"}, nil, quiet,
			"java has a heap of its own, by JAVA_TOOL_OPTIONS"},
		{"java with other options in a variable", []string{"java", "Main"}, []string{"JDK_JAVA_OPTIONS=-ea"},
			[]string{"java", "-Xmx838860k", "Main"}, quiet, told},
		{"java's compiler", []string{"javac", "A.java"}, nil, []string{"javac", "-J-Xmx838860k", "A.java"}, quiet, told},
		{"a wrapper of java", []string{"/usr/bin/mvn", "test"}, nil, nil, all, told},
		{"a wrapper with a share in a variable", []string{"mvn", "test"}, []string{"MAVEN_OPTS=-XX:MaxRAMPercentage=50"}, nil,
			quiet, "java has a heap of its own, by MAVEN_OPTS"},
		{"java in a text for a shell", []string{"/bin/sh", "-c", "cd a;java Main"}, nil, nil, all, told},
		{"another program", []string{"sort", "java"}, nil, nil, all, ""},
		{"a script with options in a variable", []string{"./run.sh"}, []string{"JDK_JAVA_OPTIONS=-ea"}, nil,
			slices.Insert(slices.Clone(quiet), 0, "JDK_JAVA_OPTIONS=-Xmx838860k -ea"), ""},
		{"a script with an empty variable", []string{"./run.sh"}, []string{"JDK_JAVA_OPTIONS="}, nil, quiet, ""},
		{"node", []string{"node", "a.js"}, nil, nil, all, "node gets a heap of 819MiB" + share},
		{"node with a heap", []string{"node", "--max-old-space-size=99", "a.js"}, nil, nil,
			slices.Delete(slices.Clone(all), 2, 3), "node has a heap of its own, by its arguments"},
		{"node with other options in a variable", []string{"npm", "test"}, []string{"NODE_OPTIONS=--no-warnings"}, nil,
			[]string{"BELLOWS_MAX_MEMORY_BYTES=1073741824", "JDK_JAVA_OPTIONS=-Xmx838860k",
				"NODE_OPTIONS=--max-old-space-size=819 --no-warnings", "DOTNET_GCHeapHardLimit=0x33333333"},
			"node gets a heap of 819MiB" + share},
		{".NET", []string{"dotnet", "a.dll"}, nil, nil, all, ".NET gets a heap of 819.2MiB" + share},
		{".NET with a heap", []string{"dotnet", "a.dll"}, []string{"DOTNET_GCHeapHardLimit=0x8000000"}, nil, all[:3],
			".NET has a heap of its own, by DOTNET_GCHeapHardLimit"},
		{".NET with a share", []string{"dotnet", "a.dll"}, []string{"COMPlus_GCHeapHardLimitPercent=0x20"}, nil, all[:3],
			".NET has a heap of its own, by COMPlus_GCHeapHardLimitPercent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			submitter := append([]string{"A=b"}, c.env...)
			args, env, words := WithHeaps(slices.Clone(c.args), slices.Clone(submitter), resource.GiB,
				"that its container may have")
			if c.want == nil {
				c.want = c.args
			}
			want := submitter
			for _, pair := range c.more {
				name, _, _ := strings.Cut(pair, "=")
				want = slices.DeleteFunc(slices.Clone(want), func(old string) bool { return strings.HasPrefix(old, name+"=") })
				want = append(want, pair)
			}
			if !slices.Equal(args, c.want) || words != c.words ||
				!slices.Equal(slices.Sorted(slices.Values(env)), slices.Sorted(slices.Values(want))) {
				t.Errorf("got  %q %q %q\nwant %q %q %q", args, env, words, c.want, want, c.words)
			}
			if got := WithoutHeaps(env); !slices.Equal(slices.Sorted(slices.Values(got)),
				slices.Sorted(slices.Values(submitter))) {
				t.Errorf("its jobs get %q, want %q", got, submitter)
			}
			if clause := GivenHeap("fits; " + words); (clause != "") != strings.Contains(words, "gets") ||
				clause != "" && clause != words {
				t.Errorf("%q says that it gets a heap: %q", words, clause)
			}
		})
	}
}

// TestLeastHeap: node takes 256 MiB in the smallest container, and less would be a loss.
func TestLeastHeap(t *testing.T) {
	for most, want := range map[resource.Amount]string{319 * resource.MiB: "",
		320 * resource.MiB: "--max-old-space-size=256"} {
		_, env, _ := WithHeaps([]string{"node"}, nil, most, "")
		i := slices.IndexFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "NODE_OPTIONS=") })
		if got := i >= 0; got != (want != "") || got && env[i] != "NODE_OPTIONS="+want {
			t.Errorf("with %d bytes: %q, want %q", most, env, want)
		}
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
