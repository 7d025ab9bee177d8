package machine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/flags"
)

// quotaFlag is a flag for quotas that may be repeated: [NAME.]KIND=LIMIT, where NAME is a user or a queue. It maps
// what is before the = to what is behind it.
type quotaFlag map[string]string

// String implements pflag.Value.
func (v quotaFlag) String() string { return flags.Settings(v).String() }

// Type implements pflag.Value.
func (v quotaFlag) Type() string { return "quota" }

// Set implements pflag.Value.
func (v quotaFlag) Set(text string) error {
	what, limit, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("must be QUOTA=LIMIT or NAME.QUOTA=LIMIT, where QUOTA is one of %s",
			strings.Join(cluster.QuotaNames(), ", "))
	}
	_, kind, err := quotaOf(what)
	if err == nil {
		_, err = limitOf(kind, limit)
	}
	if err == nil {
		v[what] = limit
	}
	return err
}

// quotaOf reads what a quota is about: KIND, the default, or NAME.KIND. Names may have dots.
func quotaOf(what string) (name string, kind cluster.QuotaKind, err error) {
	text := what
	if at := strings.LastIndexByte(what, '.'); at >= 0 {
		if name, text = what[:at], what[at+1:]; !cluster.IsName(name) {
			return "", 0, errors.New("must have a name before the dot, or no dot")
		}
	}
	if err := kind.UnmarshalText([]byte(text)); err != nil {
		return "", 0, fmt.Errorf("must end with one of %s", strings.Join(cluster.QuotaNames(), ", "))
	}
	return name, kind, nil
}

// mostJobs is the largest number of jobs that a quota may permit.
const mostJobs = 1_000_000

// limitOf reads a limit: an amount, and then perhaps waits or refuses; or none.
func limitOf(kind cluster.QuotaKind, text string) (q cluster.Quota, err error) {
	if text == "none" {
		return cluster.Quota{Most: cluster.Unlimited}, nil
	}
	amount, how, _ := strings.Cut(text, " ")
	switch {
	case how == "refuses" || how == "" && kind >= cluster.QuotaWaiting:
		q.Refuses = true
	case how != "waits" && how != "":
		return q, errors.New("must be an amount, perhaps with waits or refuses behind it, or none")
	}
	var parsed resource.Amount
	switch kind {
	case cluster.QuotaMemory, cluster.QuotaOutput:
		parsed, err = resource.ParseMemory(amount)
	case cluster.QuotaCPU:
		parsed, err = resource.CPU.Parse(amount)
	default:
		var n int64
		if n, err = strconv.ParseInt(amount, 10, 64); err != nil || n < 1 || n > mostJobs {
			return q, fmt.Errorf("must be a number of jobs from 1 to %d", mostJobs)
		}
		parsed = resource.Amount(n)
	}
	if err == nil && parsed <= 0 {
		err = errors.New("must be above 0")
	}
	q.Most = int64(parsed)
	return q, err
}

// limits returns the quotas of users, or of queues, by name.
func (v quotaFlag) limits() map[string]cluster.Limits {
	if len(v) == 0 {
		return nil
	}
	all := map[string]cluster.Limits{}
	for what, text := range v {
		name, kind, _ := quotaOf(what) // Set has checked both
		limit, _ := limitOf(kind, text)
		if all[name] == nil {
			all[name] = cluster.Limits{}
		}
		all[name][kind] = limit
	}
	return all
}

// checkQueueQuota refuses what is no quota of queues.
func checkQueueQuota(text string) error {
	what, _, _ := strings.Cut(text, "=")
	if _, kind, err := quotaOf(what); err != nil || kind != cluster.QuotaOutput {
		return err
	}
	return fmt.Errorf("must not be %s, which is a quota of users only", cluster.QuotaOutput)
}

// quotas returns the quotas of users and queues.
func (o *upOptions) quotas() *cluster.Quotas {
	return &cluster.Quotas{Users: o.users.limits(), Queues: o.queues.limits()}
}
