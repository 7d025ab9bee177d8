"""Groups a table by its rows, and ranks them."""
import sys

import duckdb

duckdb.execute(
    "COPY (SELECT a % 1000 AS key, sum(b), max(rank) FROM (SELECT a, b, row_number() OVER "
    "(PARTITION BY a % 100 ORDER BY b, c, n) AS rank FROM read_csv(?, header = false, names = ['n', 'a', 'b', 'c'])) "
    "GROUP BY key ORDER BY key) TO 'out/duckdb'",
    [sys.argv[1]],
)
