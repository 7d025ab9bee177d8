package spark

import "github.com/bellows-rm/bellows/node/cgroup"

// group is the control group of the container that this process runs in.
type group struct {
	host *cgroup.Host // nil if it is unknown
}

// ownGroup returns the group of this process; what is unknown of it is zero.
func ownGroup() *group {
	host, err := cgroup.Discover("/")
	if err != nil {
		return &group{}
	}
	return &group{host}
}

// kills returns how many processes of the group the kernel has killed for memory.
func (g *group) kills() int64 {
	if g.host == nil {
		return 0
	}
	return g.host.OwnOOMKills().Or(0)
}

// anonymous returns the memory of the group that only swap can free, bytes; 0 if it is unknown.
func (g *group) anonymous() int64 {
	if g.host == nil {
		return 0
	}
	return g.host.OwnAnonBytes().Or(0)
}
