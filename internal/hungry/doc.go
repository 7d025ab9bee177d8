// Package hungry is programs whose memory comes and goes, and which check what they computed: demonstrations and studies run them
// in containers.
package hungry
