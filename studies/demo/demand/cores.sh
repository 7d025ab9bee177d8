# Makes what the programs of cores.yaml read, in the current folder, with existing programs alone: the same files every
# time. $1 is how many tenths of their full size the files have.
set -eu
export LC_ALL=C
tenths=$1
# text SEED MB prints numbered lines of text that hardly repeat themselves; a compressor saves a quarter.
text() {
	openssl enc -aes-128-ctr -K 00 -iv "$1" -in /dev/zero 2>/dev/null | base64 -w 60 | cat -n | head -c $(($2 * tenths))00000
}
text 21 77 > xz-1
text 22 42 > xz-2
text 23 91 > xz-3
text 24 35 > zstd-1
text 25 18 > zstd-2
text 26 105 > zstd-3
text 27 70 > go-1
text 28 42 | bzip2 -1 > mirror.bz2
text 29 154 > index
text 30 84 > site
text 31 63 > report-1
text 32 31 > report-2
text 33 70 > python-1
text 34 10 | openssl enc -base64 -A | fold -w 40 | sed 's/.*/"&",/; 1s/^/[/; $s/,$/]/' > python.json
text 35 63 > python-2
text 36 84 > bzip2-1
text 37 91 > bzip2-2
echo $((4200000 * tenths)) > iterations
# A database with one table.
text 38 70 > rows
sqlite3 database '.mode tabs' 'CREATE TABLE line (number INTEGER, text TEXT)' '.import rows line' > /dev/null
rm rows
# A tree of files, and a repository with such a tree in two versions.
mkdir tree repository
text 39 84 | split -b 128K - tree/part-
text 40 35 | split -b 64K - repository/part-
cd repository
git init -q .
git config core.autocrlf false
commit() {
	git add -A
	GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' \
		git -c user.name=a -c user.email=a@example.com commit -q -m "$1"
}
commit first
for part in part-*a; do
	tr ab ba < "$part" > changed
	mv changed "$part"
done
commit second
git -c pack.threads=1 repack -q -a -d
