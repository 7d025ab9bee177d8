// Package api has the types of what a daemon shows of its jobs, tasks and nodes, and of the errors with which it
// refuses. The driver makes them, and the API sends them as JSON: who only reads them needs no driver.
package api
