package policy

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/resource"
)

// userLimits bound what one owner of jobs may use in a leaf.
type userLimits struct {
	on      bool
	percent float64 // YARN's minimum-user-limit-percent
	factor  float64 // YARN's user-limit-factor
}

// userUse is the use of one user in a leaf.
type userUse struct {
	used     resource.Vector
	runnable int // jobs that can start a task; a user who has one is active
}

// leafUsers are the users of a leaf.
type leafUsers struct {
	users     map[string]*userUse
	active    int
	activeUse resource.Vector // the sum of what the active users use
}

func newUserLimits(s *contract.Settings) userLimits {
	return userLimits{
		on: s.Declare("user-limits", "false", "limit how much of a leaf the jobs of one owner may hold").Flag(),
		percent: s.Declare("minimum-user-limit-percent", "100",
			"with user-limits: percentage of a leaf that each user may always hold, however many users there are").Number(),
		factor: s.Declare("user-limit-factor", "1",
			"with user-limits: largest multiple of the leaf's guarantee that one user may hold").Number(),
	}
}

// leave subtracts a job that is about to change from the counts of its user; join adds it again.
func (u *userLimits) leave(m *capacityMember) { u.count(m, -1) }
func (u *userLimits) join(m *capacityMember)  { u.count(m, 1) }

func (u *userLimits) count(m *capacityMember, sign int64) {
	if !u.on {
		return
	}
	leaf := &m.Leaf.Own.leafUsers
	if m.Own.user == nil {
		m.Own.user = leaf.user(m.Job.Owner)
	}
	leaf.count(m.Own.user, -1)
	m.Own.user.used = m.Own.user.used.Add(m.Counted.Scale(sign))
	if m.Runnable {
		m.Own.user.runnable += int(sign)
	}
	leaf.count(m.Own.user, 1)
}

func (l *leafUsers) user(owner string) *userUse {
	if l.users == nil {
		l.users = map[string]*userUse{}
	}
	if l.users[owner] == nil {
		l.users[owner] = &userUse{}
	}
	return l.users[owner]
}

func (l *leafUsers) count(user *userUse, sign int64) {
	if user.runnable > 0 {
		l.active += int(sign)
		l.activeUse = l.activeUse.Add(user.used.Scale(sign))
	}
}

// over reports whether the owner of a job is above the user limit of the leaf. The limit is the larger of an equal part
// of what the active users of the leaf use, need included, and a percentage of the leaf: of its guarantee, or of its
// use, need included, once it uses its guarantee. It is never more than a multiple of the guarantee. The task that
// takes the owner above the limit may start.
func (u *userLimits) over(c *capacity, m *capacityMember, need resource.Vector) (cluster.Reason, bool) {
	if !u.on {
		return cluster.Reason{}, false
	}
	const rounding = 1e-9
	leaf := &m.Leaf.Own
	required := c.measure.share(need)
	guaranteed := max(leaf.ofCluster, required)
	current := guaranteed
	if used := c.measure.share(m.Leaf.Used); used >= guaranteed {
		current = used + required
	}
	limit := max(c.measure.share(leaf.activeUse.Add(need))/float64(max(1, leaf.active)), current*u.percent/100)
	limit = min(limit, guaranteed*u.factor)
	if c.measure.share(m.Own.user.used) <= limit+rounding {
		return cluster.Reason{}, false
	}
	k := c.measure.largest(m.Own.user.used)
	return cluster.BecauseUserLimit(k, m.Own.user.used[k], resource.Amount(limit*float64(c.measure.whole[k]))), true
}
