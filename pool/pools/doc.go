// Package pools keeps the pools of one daemon: their definitions, how many executors each has, and the secrets by
// which executors are known. An executor is an ordinary job of the owner of its pool, with one task, so that the
// policy of the machine, quotas, accounting and what explains jobs hold for it. What a pool does with its executors
// is the business of package pool.
package pools
