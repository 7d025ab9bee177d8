# Makes what the programs of the first-use mix read, in the current folder, with existing programs alone: the same files
# every time. $1 is how many tenths of their full size the files have. The seeds are the second arguments of rows.
set -eu
export LC_ALL=C
tenths=$1
# rows THOUSANDS SEED prints lines of four numbers that are separated by commas: a count, and three below 65536.
rows() {
	openssl enc -aes-128-ctr -K 00 -iv "$2" -in /dev/zero 2> /dev/null | od -An -v -tu2 -w6 |
		head -n $(($1 * 100 * tenths)) | awk '{ print NR "," $1 "," $2 "," $3 }'
}
rows 7500 01 > numbers.txt
for name in sqlite pandas polars duckdb points; do
	case $name in
	sqlite) rows 2000 02 ;;
	pandas) rows 5000 03 ;;
	polars) rows 6000 04 ;;
	duckdb) rows 9000 05 ;;
	points) rows 1600 06 ;;
	esac > $name.csv
done
rows 600 07 > text
rows 1500 08 | sed 's/^/[/; s/$/],/; 1s/^/[/; $s/,$/]/' > table.json
# A photo, of noise.
side=$((2000 + 300 * tenths))
{
	printf 'P6\n%d %d\n255\n' $side $side
	openssl enc -aes-128-ctr -K 00 -iv 09 -in /dev/zero 2> /dev/null | head -c $((3 * side * side))
} > photo.ppm
ffmpeg -nostdin -y -loglevel error -f lavfi -i testsrc2=size=1920x1080:rate=25 -t $tenths -c:v mpeg2video -q:v 3 \
	-fflags +bitexact -flags +bitexact video.mkv
# A unit of C++ whose maps and vectors are of different types, and the classes of a program in Java.
{
	printf '#include <algorithm>\n#include <map>\n#include <string>\n#include <vector>\n'
	seq $((2 * tenths)) | awk '{
		printf "struct K%d { std::string s; bool operator<(const K%d &o) const { return s < o.s; } };\n", $1, $1
		printf "std::map<K%d, std::vector<std::map<K%d, int>>> m%d;\n", $1, $1, $1
		printf "int f%d(const std::string &s) { auto &v = m%d[K%d{s}]; v.resize(v.size() + 1); v.back()[K%d{s}]++;\n", \
			$1, $1, $1, $1
		printf "  std::sort(v.begin(), v.end()); return int(v.size()) + %d; }\n", $1
	}'
} > unit.cpp
mkdir -p java
seq $((6 * tenths)) | awk '{
	file = "java/C" $1 ".java"
	print "import java.util.*; import java.util.stream.*;\npublic class C" $1 " {" > file
	for (i = 0; i < 10; i++)
		print "  static Map<String, List<Integer>> m" i "(List<String> l) { return l.stream().filter(s -> s.length() > " i \
			").collect(Collectors.groupingBy(s -> s + " i ", TreeMap::new, Collectors.mapping(String::length, " \
			"Collectors.toList()))); }" > file
	print "}" > file
	close(file)
	print file
}' > sources.txt
zip -q -X -r java.zip java sources.txt
