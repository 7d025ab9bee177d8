.mode csv
CREATE TABLE t (n INTEGER, a INTEGER, b INTEGER, c INTEGER);
.import sqlite.csv t
CREATE INDEX byA ON t (a, b, c, n);
CREATE INDEX byB ON t (b, c, a, n);
CREATE INDEX byC ON t (c, a, b, n);
.output out/sqlite
SELECT a % 1000, sum(b), max(c), count(DISTINCT b) FROM t GROUP BY 1 ORDER BY 1;
