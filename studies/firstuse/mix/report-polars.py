"""Groups a table by two of its columns, and sorts it."""
import sys

import polars

source = sys.stdin.buffer if sys.argv[1] == "-" else sys.argv[1]
table = polars.read_csv(source, has_header=False, new_columns=["n", "a", "b", "c"])
table = table.sort(["b", "c", "n"]).with_columns((polars.col("a") % 1000).alias("key"))
sums = table.group_by("key").agg(polars.col("b").sum(), polars.col("c").max(), polars.col("n").first())
sums.sort("key").write_csv("out/polars")
