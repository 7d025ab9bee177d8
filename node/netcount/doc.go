// Package netcount counts the bytes that the processes of one control group receive from the network and send to it.
//
// Two small programs in the kernel, attached to the group's directory in the version 2 hierarchy, add the length of
// each IP packet to two counters. The length includes the headers of IP, TCP and UDP, but no link headers. Where the
// kernel segments or merges packets (GSO, GRO), the headers of a large packet count once. Packets of the loopback
// device do not count, because no link carries them; nor do packets of sockets that are neither IPv4 nor IPv6, or
// that a process has from outside of the group. Retransmitted packets count again. What the descendants of the group
// transfer counts, too.
//
// The programs belong to the group and not to the process that attached them: they count on when it is killed, Attach
// finds them again, and they are gone with the group. Nothing is pinned in a file system.
package netcount
