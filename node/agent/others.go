package agent

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// sizePrefix begins the name of the socket with which an agent publishes how much memory it manages. The name is
// abstract and contains the number itself, so that no process has to answer, and it vanishes with the agent. After the
// prefix come the name of the agent's control groups, a dash, and the number of bytes.
const sizePrefix = "@bellows-size-"

// tellSize publishes how much memory the containers of this agent may use together. If that fails, it returns nil:
// other agents do not count this one then, which is no reason not to run.
func tellSize(name string, memory resource.Amount) net.Listener {
	l, err := net.Listen("unix", fmt.Sprintf("%s%s-%d", sizePrefix, name, memory))
	if err != nil {
		return nil
	}
	return l
}

// others returns how much memory agents other than the named one manage, bytes by name of their groups: the sizes in
// sockets, the text of /proc/net/unix, or else the memory granted to containers that have outlived their agent.
// beside are the names of all that have groups.
func others(name, sockets string, beside []string, granted func(name string) int64) map[string]resource.Amount {
	const most = 1 << 48 // Any user may make a socket with such a name.
	sizes := map[string]resource.Amount{}
	for line := range strings.Lines(sockets) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		text, ok := strings.CutPrefix(words[len(words)-1], sizePrefix)
		other, number, sized := strings.Cut(text, "-")
		if bytes, err := strconv.ParseInt(number, 10, 64); ok && sized && err == nil && bytes > 0 {
			sizes[other] = max(sizes[other], resource.Amount(min(bytes, most)))
		}
	}
	delete(sizes, name)
	for _, other := range beside {
		if _, told := sizes[other]; other == name || told {
			continue
		}
		if bytes := granted(other); bytes > 0 {
			sizes[other] = resource.Amount(min(bytes, most))
		}
	}
	return sizes
}

// crowded returns a sentence if all agents of a machine together manage more memory than may be used of it, else "".
func crowded(own resource.Amount, u *Usable, others map[string]resource.Amount) string {
	var sum resource.Amount
	for _, bytes := range others {
		sum = min(sum+bytes, 1<<60)
	}
	machine := u.Has[resource.Memory]
	switch {
	case own+sum <= machine:
		return ""
	case sum == 0: // It had more when the agent began.
		return fmt.Sprintf("this daemon manages %s, more than %s; start it again, or give it less with `bellows up --memory`",
			resource.FormatMemory(own), u.has(resource.Memory))
	}
	return fmt.Sprintf("other bellows daemons manage %s of this machine, and this one %s: together more than its "+
		"%s; give each a part of it with `bellows up --memory`", resource.FormatMemory(sum), resource.FormatMemory(own),
		resource.FormatMemory(machine))
}

// Crowded returns one sentence if the daemons of this machine together manage more memory than it has; empty if they do
// not, or if that is unknown.
func (a *Agent) Crowded() string {
	u, err := FindUsable()
	if err != nil {
		return ""
	}
	return crowded(a.capacity[resource.Memory], &u, a.groups.others())
}

func (g *groups) others() map[string]resource.Amount {
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		sockets = nil // Granted memory still shows.
	}
	round := newRound(0)
	return others(groupName(g.dir), string(sockets), g.root.Beside(), func(name string) (sum int64) {
		for bytes := range g.root.GrantedBeside(name) {
			sum += bytes
			round.next()
		}
		return sum
	})
}
