// Package paging measures whether a program should spill or page: what less memory costs it where it spills by itself, and what it
// costs where it is left to think that it has enough while the kernel pages (YARN-ME, Fig. 2b; Pufferfish, Fig. 13).
package paging
