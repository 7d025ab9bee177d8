# Makes what the programs of disk.yaml read, in the current folder, with existing programs alone: the same files every
# time. $1 is how many tenths of their full size the files have.
set -eu
export LC_ALL=C
tenths=$1
# text SEED MB prints numbered lines of text that hardly repeat themselves; a compressor saves a quarter.
text() {
	openssl enc -aes-128-ctr -K 00 -iv "$1" -in /dev/zero 2>/dev/null | base64 -w 60 | cat -n | head -c $(($2 * tenths))00000
}
text 01 78 > gzip-1
text 02 78 > gzip-2
text 03 8 > gzip-small
text 04 100 > zstd-1
text 05 100 > zstd-2
text 06 15 > zstd-small
text 07 100 > openssl-1
text 08 100 > openssl-2
echo $((1000000 * tenths)) > iterations
text 09 140 | bzip2 -1 > sort.bz2
text 10 95 > python-1
text 11 95 > python-2
text 12 8 | openssl enc -base64 -A | fold -w 40 | sed 's/.*/"&",/; 1s/^/[/; $s/,$/]/' > python.json
# A database with one table.
text 13 125 > rows
sqlite3 database '.mode tabs' 'CREATE TABLE line (number INTEGER, text TEXT)' '.import rows line' > /dev/null
rm rows
# A tree of files, and a repository with such a tree in two versions.
mkdir tree repository
text 14 100 | split -b 128K - tree/part-
text 15 65 | split -b 64K - repository/part-
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
