// Package firstuse measures what people get who run programs that they know, without any flag: twelve programs on a
// node that has memory for a few of them, under bellows, in boxes of their peak, under GNU parallel, and all at once.
package firstuse
