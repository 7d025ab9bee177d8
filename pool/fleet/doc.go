// Package fleet keeps the executors of all pools of a daemon: the definitions of pools, how many executors each has,
// and the secrets by which these are known. An executor is an ordinary job of the owner of its pool, with one task, so
// that the policy of the machine, quotas, accounting and what explains jobs hold for it. What a pool does with its
// executors is the business of package pool.
package fleet
