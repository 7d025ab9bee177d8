package admission

import (
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// Span is the time for which a quota of submissions limits their number.
const Span = time.Minute

// pace has the times of the submissions of the last minute of each user and each queue with a quota of them. It is
// not a part of the loop, so that many submissions are refused without it.
type pace struct {
	mu    sync.Mutex
	times map[cluster.Party][]timeline.Time // ascending
	swept timeline.Time                     // when parties without submissions in the last minute were last forgotten
}

// enter counts submissions, unless a quota has too little left for them: then it returns the quota, and how long
// until enough is left. If there are more than the whole quota, that is how long until all of it is.
func (p *pace) enter(now timeline.Time, q *cluster.Quotas, jobs []*cluster.Job) (over *cluster.Excess,
	wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	added := map[cluster.Party]int64{}
	for _, j := range jobs {
		for _, party := range j.Parties() {
			if q.Of(party, cluster.QuotaSubmissions).Most != cluster.Unlimited {
				added[party]++
			}
		}
	}
	for _, party := range partiesOf(jobs) {
		needs := added[party]
		quota := q.Of(party, cluster.QuotaSubmissions)
		recent := p.recent(party, now)
		taken := int64(len(recent))
		if needs == 0 || needs <= quota.Most-taken {
			continue
		}
		e := &cluster.Excess{Party: party, Kind: cluster.QuotaSubmissions, Quota: quota, Taken: taken, Needs: needs}
		needed := Span
		if n := min(taken, taken+needs-quota.Most); n > 0 { // the first n must be older than a minute
			needed -= now.Sub(recent[n-1])
		}
		if over == nil || needed > wait {
			over, wait = e, needed
		}
	}
	if over != nil {
		return over, wait
	}
	for party, n := range added {
		for range n {
			p.times[party] = append(p.times[party], now)
		}
	}
	return nil, 0
}

// begin counts the submissions of the last minute before the driver began.
func (p *pace) begin(now timeline.Time, q *cluster.Quotas, submitted []store.Submitted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	for i := range submitted {
		s := &submitted[i]
		j := cluster.Job{Owner: api.OwnerOf(cluster.Credentials{UID: s.UID, User: s.User}).Name, Queue: s.Queue}
		for _, party := range j.Parties() {
			if q.Of(party, cluster.QuotaSubmissions).Most != cluster.Unlimited {
				p.times[party] = append(p.times[party], s.At)
			}
		}
	}
}

// partiesOf returns the users and queues of jobs, each once, in the order of the jobs.
func partiesOf(jobs []*cluster.Job) (all []cluster.Party) {
	seen := map[cluster.Party]bool{}
	for _, j := range jobs {
		for _, party := range j.Parties() {
			if !seen[party] {
				seen[party] = true
				all = append(all, party)
			}
		}
	}
	return all
}

// recent returns the submissions of the last minute, and forgets others.
func (p *pace) recent(party cluster.Party, now timeline.Time) []timeline.Time {
	all := p.times[party]
	old := 0
	for old < len(all) && now.Sub(all[old]) >= Span {
		old++
	}
	if all = all[old:]; old > 0 {
		p.times[party] = all
	}
	return all
}

// count returns how many submissions of the last minute count for a quota.
func (p *pace) count(party cluster.Party, now timeline.Time) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.recent(party, now)))
}

// sweep forgets, once a minute, the parties without submissions in the last minute.
func (p *pace) sweep(now timeline.Time) {
	if p.times == nil {
		p.times = map[cluster.Party][]timeline.Time{}
	}
	if now.Sub(p.swept) < Span {
		return
	}
	p.swept = now
	for party := range p.times {
		if len(p.recent(party, now)) == 0 {
			delete(p.times, party)
		}
	}
}

// TooFast is the error of a submission that a quota refuses.
func TooFast(j *cluster.Job, over *cluster.Excess, wait time.Duration) error {
	if over.Needs > over.Most {
		return api.Errorf(api.OverQuota, "job %q %w", j.Name, over)
	}
	e := api.Errorf(api.OverQuota, "job %q %w: try again in %v", j.Name, over,
		(wait + time.Second - 1).Truncate(time.Second))
	e.Retry = wait
	return e
}
