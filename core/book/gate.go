package book

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
)

// gate keeps tasks from starting that would take a user or a queue above a quota. It decides before the policy does,
// so that no policy knows of quotas: a task that the gate withholds cannot start (JobState.Ready), as if its job had
// fewer tasks. What it lets through counts from then on as if it had started. So the policy may start all of that, in
// any order, and no quota is exceeded.
//
// Jobs get their turn in the order of submission. A job for which too little of a quota is left does not keep back
// later ones.
type gate struct {
	quotas *cluster.Quotas // nil means none
	// anew says that everything is to be counted anew: the quotas have changed, or the inventory is complete.
	anew     bool
	accounts map[cluster.Party]*account // of parties with a quota and with jobs
	freed    []*account                 // that have more left than when the jobs that wait for them last had their turn
	turn     []*JobState                // of the step, kept for its memory
}

// account is what the jobs of a party take of its quotas.
type account struct {
	party       cluster.Party
	most, taken [cluster.NumCounted]int64
	jobs        int         // that have not been retired
	waiting     []*JobState // with tasks that are withheld, by ascending ID
	inside      int         // how many of these have started, or may start
	// least is a lower bound of what a task of a job that waits takes.
	least [cluster.NumCounted]int64
	freed bool
}

// standing is what a gate knows of a job whose user or queue has a quota.
type standing struct {
	accounts []*account
	// counted are the kinds of which one of the accounts has a quota. Others are not counted: without a bound, the sum
	// over the tasks of a job might overflow.
	counted [cluster.NumCounted]bool
	claim   [cluster.NumCounted]int64 // what the job takes of each account
	least   [cluster.NumCounted]int64 // what the smallest of its tasks takes, of memory and CPU
	waits   bool                      // it is among the jobs that wait in its accounts
	fresh   bool                      // it has not had its turn yet
}

// setQuotas records the quotas that hold from now on.
func (s *Snapshot) setQuotas(q *cluster.Quotas) error {
	if q == nil {
		return fmt.Errorf("quotas set: the event has no quotas")
	}
	if err := q.Check(); err != nil {
		return err
	}
	s.gate.quotas, s.gate.anew = q, true
	return nil
}

// pass counts what has changed, and lets tasks through.
func (g *gate) pass(p *Plan) {
	if g.quotas == nil {
		return
	}
	changed := p.Changes.Jobs
	if g.anew {
		changed = g.begin(p.Snapshot)
	}
	g.turn = g.turn[:0]
	for _, j := range changed {
		if g.count(j) {
			g.turn = append(g.turn, j)
		}
	}
	for _, a := range g.freed {
		a.freed = false
		g.letWaiting(p, a)
	}
	g.freed = g.freed[:0]
	slices.SortFunc(g.turn, func(a, b *JobState) int { return byID(a, b.ID) })
	for _, j := range slices.Compact(g.turn) {
		g.letThrough(p, j)
	}
	clear(g.turn)
}

// letWaiting gives the jobs that wait in an account their turn, until too little is left for any of them: usually
// that is so after the first.
func (g *gate) letWaiting(p *Plan, a *account) {
	least := [cluster.NumCounted]int64{cluster.QuotaMemory: cluster.Unlimited, cluster.QuotaCPU: cluster.Unlimited}
	for i := 0; i < len(a.waiting); {
		if a.tight() {
			return
		}
		j := a.waiting[i]
		if st := j.standing; st.claim[cluster.QuotaRunning] > 0 ||
			a.taken[cluster.QuotaRunning] < a.most[cluster.QuotaRunning] {
			g.letThrough(p, j)
		}
		if i == len(a.waiting) || a.waiting[i] != j {
			continue // It does not wait any more.
		}
		for k := range cluster.QuotaRunning {
			least[k] = min(least[k], j.standing.least[k])
		}
		i++
	}
	a.least = least
}

// tight reports whether too little is left for any job that waits in the account.
func (a *account) tight() bool {
	left := func(k cluster.QuotaKind) int64 { return a.most[k] - a.taken[k] }
	return left(cluster.QuotaMemory) < a.least[cluster.QuotaMemory] ||
		left(cluster.QuotaCPU) < a.least[cluster.QuotaCPU] || left(cluster.QuotaRunning) <= 0 && a.inside == 0
}

// begin forgets what was counted and returns all jobs.
func (g *gate) begin(s *Snapshot) []*JobState {
	g.anew, g.accounts, g.freed = false, map[cluster.Party]*account{}, nil
	for _, j := range s.Jobs {
		j.standing, j.met = nil, false
		for i := range j.Progress {
			j.Progress[i].Withheld = 0
		}
		s.reopened(j)
	}
	return s.Jobs
}

// reopened notes that other tasks of a job may start than before.
func (s *Snapshot) reopened(j *JobState) {
	j.Version++
	s.Changes.Jobs = append(s.Changes.Jobs, j)
	s.demand()
}

// count counts a job anew. It reports whether tasks of the job are withheld.
func (g *gate) count(j *JobState) (waits bool) {
	if !j.met && !j.Retired() {
		g.meet(j)
	}
	if j.standing == nil {
		return false
	}
	for i := j.passed; i < len(j.Progress); i++ {
		s := &j.Progress[i]
		if s.Withheld = min(s.Withheld, s.Pending); j.PausedWhole() {
			s.Withheld = s.Pending
		}
	}
	g.settle(j)
	if j.standing != nil && j.standing.exceeds() {
		for i := range j.Progress {
			j.Progress[i].Withheld = j.Progress[i].Pending
		}
		j.Version++
		g.settle(j)
	}
	return j.standing != nil && j.standing.waits
}

// exceeds reports whether an account has more than its quota, as after the quota was lowered: then a task that is to
// run again waits.
func (st *standing) exceeds() bool {
	return slices.ContainsFunc(st.accounts, func(a *account) bool {
		return a.taken[cluster.QuotaMemory] > a.most[cluster.QuotaMemory] ||
			a.taken[cluster.QuotaCPU] > a.most[cluster.QuotaCPU]
	})
}

// meet opens the accounts of a job and withholds its tasks, if its user or its queue has a quota.
func (g *gate) meet(j *JobState) {
	j.met = true
	if j.Drives {
		return // Quotas count tasks, which such a job starts itself.
	}
	st := &standing{fresh: true}
	st.look(j, 0)
	for _, party := range j.Parties() {
		var most [cluster.NumCounted]int64
		limited := false
		for k := range cluster.NumCounted {
			if most[k] = g.quotas.Of(party, k).Most; most[k] != cluster.Unlimited {
				limited, st.counted[k] = true, true
			}
		}
		if !limited {
			continue
		}
		a := g.accounts[party]
		if a == nil {
			a = &account{party: party, most: most}
			g.accounts[party] = a
		}
		a.jobs++
		st.accounts = append(st.accounts, a)
	}
	if len(st.accounts) == 0 {
		return
	}
	j.standing = st
	for i := range j.Progress {
		j.Progress[i].Withheld = j.Progress[i].Pending
	}
}

// settle brings the accounts of a job up to date.
func (g *gate) settle(j *JobState) {
	st := j.standing
	claim, waits := st.claimOf(j), j.waitsForQuota()
	for _, a := range st.accounts {
		less := false
		for k := range cluster.NumCounted {
			a.taken[k] += claim[k] - st.claim[k]
			less = less || k != cluster.QuotaWaiting && claim[k] < st.claim[k]
		}
		if less && !a.freed {
			a.freed = true
			g.freed = append(g.freed, a)
		}
		if waits != st.waits {
			a.file(j, waits)
		}
		if st.waits && st.claim[cluster.QuotaRunning] > 0 {
			a.inside--
		}
		if waits && claim[cluster.QuotaRunning] > 0 {
			a.inside++
		}
		if j.Retired() {
			if a.jobs--; a.jobs == 0 {
				delete(g.accounts, a.party)
			}
		}
	}
	if st.claim, st.waits = claim, waits; j.Retired() {
		j.standing = nil
	}
}

// file adds a job to those that wait, or removes it.
func (a *account) file(j *JobState, waits bool) {
	at, _ := slices.BinarySearchFunc(a.waiting, j.ID, byID)
	if !waits {
		a.waiting = slices.Delete(a.waiting, at, at+1)
		return
	}
	for k := range cluster.QuotaRunning {
		if least := j.standing.least[k]; len(a.waiting) == 0 || least < a.least[k] {
			a.least[k] = least
		}
	}
	a.waiting = slices.Insert(a.waiting, at, j)
}

// settleAll brings the accounts of jobs up to date after the policy has started tasks of them.
func (g *gate) settleAll(changed []*JobState) {
	if g.quotas == nil {
		return
	}
	for _, j := range changed {
		if j.standing != nil {
			g.settle(j)
		}
	}
}

// waitsForQuota reports whether tasks of j are withheld.
func (j *JobState) waitsForQuota() bool {
	return !j.Status.Ended() && slices.ContainsFunc(j.Progress[j.passed:], func(s StageState) bool {
		return s.Withheld > 0
	})
}

// claimOf is what a job counts for quotas: its tasks that were let through and have not ended, whether they have
// started or not.
func (st *standing) claimOf(j *JobState) (c [cluster.NumCounted]int64) {
	ended, tasks := j.Status.Ended(), 0
	for i := j.passed; i < len(j.Progress); i++ {
		s := &j.Progress[i]
		n := s.Booked + s.Running
		if !ended {
			n += s.Pending - s.Withheld
		}
		tasks += n
		for k := range cluster.QuotaRunning {
			if st.counted[k] {
				c[k] += j.Stages[i].Counts(k, n)
			}
		}
	}
	if tasks > 0 || j.begun && !ended {
		c[cluster.QuotaRunning] = 1
	}
	if !ended && !j.begun {
		c[cluster.QuotaWaiting] = 1
	}
	return c
}

// letThrough gives a job its turn.
func (g *gate) letThrough(p *Plan, j *JobState) {
	st := j.standing
	if st == nil {
		return
	}
	_, ready := j.NextStage()
	let := false
	for i := j.passed; i < len(j.Stages); i++ {
		if n := st.fits(j, i); n > 0 {
			j.Progress[i].Withheld -= n
			let = true
			g.settle(j)
		}
	}
	if let {
		if !ready {
			j.Waiting = cluster.Reason{}
		}
		if !ready && !st.fresh {
			j.Since = max(j.Since, p.now)
		}
		p.reopened(j)
	}
	st.fresh = false
	if _, ready = j.NextStage(); ready {
		return
	}
	p.giveBack(j)
	if stage, ok := j.withheldStage(); ok {
		p.Wait(j, stage, 0, st.why(j, stage))
	}
}

// fits returns how many of the withheld tasks of a stage may be let through now.
func (st *standing) fits(j *JobState, stage int) int {
	s := &j.Stages[stage]
	withheld := int64(j.Progress[stage].Withheld)
	if withheld == 0 || j.Status.Ended() || !j.open(stage) {
		return 0
	}
	n := withheld
	for _, a := range st.accounts {
		if st.claim[cluster.QuotaRunning] == 0 && a.taken[cluster.QuotaRunning] >= a.most[cluster.QuotaRunning] {
			return 0
		}
		for k := range cluster.QuotaRunning {
			if each := s.Counts(k, 1); each > 0 && a.most[k] != cluster.Unlimited {
				n = min(n, max(0, a.most[k]-a.taken[k])/each)
			}
		}
	}
	if s.Together && n < withheld {
		return 0
	}
	return int(n)
}

// withheldStage returns the first stage whose tasks could start, if a quota did not withhold them; ok is false if
// there is none.
func (j *JobState) withheldStage() (stage int, ok bool) {
	for i := j.passed; i < len(j.Progress); i++ {
		if j.Progress[i].Withheld > 0 && j.open(i) && !j.Status.Ended() {
			return i, true
		}
	}
	return 0, false
}

// why names the quota of which too little is left for a stage.
func (st *standing) why(j *JobState, stage int) cluster.Reason {
	n := 1
	if j.Stages[stage].Together {
		n = j.Progress[stage].Withheld
	}
	for _, a := range st.accounts {
		if st.claim[cluster.QuotaRunning] == 0 && a.taken[cluster.QuotaRunning] >= a.most[cluster.QuotaRunning] {
			return a.full(cluster.QuotaRunning)
		}
		for k := range cluster.QuotaRunning {
			if a.most[k] != cluster.Unlimited && j.Stages[stage].Counts(k, n) > a.most[k]-a.taken[k] {
				return a.full(k)
			}
		}
	}
	return st.accounts[0].full(cluster.QuotaRunning) // Its turn has not come yet.
}

func (a *account) full(k cluster.QuotaKind) cluster.Reason {
	return cluster.BecauseOverQuota(a.party.Queue, k, a.taken[k], a.most[k])
}

// Taken returns what each user and queue with a quota and with jobs takes. What no quota limits may be missing from it.
func (s *Snapshot) Taken() map[cluster.Party]cluster.Taken {
	all := make(map[cluster.Party]cluster.Taken, len(s.gate.accounts))
	for party, a := range s.gate.accounts {
		all[party] = a.taken
	}
	return all
}

// OverQuota returns a quota that jobs would exceed if they were submitted now: one of jobs that wait, or one that
// refuses what it does not let start at once. ok is false if there is none.
func (s *Snapshot) OverQuota(jobs ...*cluster.Job) (e cluster.Excess, ok bool) {
	more := map[cluster.Party][cluster.NumCounted]int64{}
	for _, j := range jobs {
		for _, party := range j.Parties() {
			needs := more[party]
			needs[cluster.QuotaRunning]++
			needs[cluster.QuotaWaiting]++
			for k := range cluster.QuotaRunning {
				needs[k] += min(j.MostAtOnce(k), cluster.Unlimited-needs[k])
			}
			more[party] = needs
			for k := range cluster.NumCounted {
				e = cluster.Excess{Party: party, Kind: k, Quota: s.gate.quotas.Of(party, k), Needs: needs[k]}
				if a := s.gate.accounts[party]; a != nil {
					e.Taken = a.taken[k]
				}
				if (e.Refuses || k == cluster.QuotaWaiting) && e.Needs > e.Most-e.Taken {
					return e, true
				}
			}
		}
	}
	return cluster.Excess{}, false
}
