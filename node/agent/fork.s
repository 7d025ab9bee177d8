// This file is empty: it lets the package declare the functions of the runtime that fork.go is linked with.
