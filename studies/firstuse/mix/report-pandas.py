"""Groups a table by two of its columns, and joins it with itself."""
import sys

import pandas

table = pandas.read_csv(sys.argv[1], names=["n", "a", "b", "c"])
sums = table.assign(key=table.a % 1000).groupby("key", as_index=False).agg({"b": "sum", "c": "max"})
wide = table.merge(table.drop_duplicates("a")[["a", "b"]], on="a", suffixes=("", "_first"))
wide = wide.sort_values(["b_first", "n"])
sums["first"] = wide.groupby(wide.a % 1000).b_first.sum().reindex(sums.key).values
sums.to_csv("out/pandas", index=False)
