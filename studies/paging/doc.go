// Package paging measures whether a program should spill or page: how much longer it takes with less memory when it
// spills by itself, and when it is configured for enough memory and the kernel pages (YARN-ME, Fig. 2b; Pufferfish,
// Fig. 13).
package paging
