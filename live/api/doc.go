// Package api has the types of what a daemon shows and is asked, and of the errors with which it refuses. The driver
// and the pools make them, and the API sends them as JSON: who only reads them needs no driver.
package api
