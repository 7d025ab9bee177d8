"""A client of Spark Connect. Arguments: the address of the server, and a folder. It prints a line RESULT, and an object
with the rows of several queries."""
import json
import os
import sys

import pandas
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, pandas_udf, udf

remote, folder = sys.argv[1], sys.argv[2]
spark = SparkSession.builder.remote(remote).create()
rows = lambda frame: [list(row) for row in frame.collect()]
numbers = spark.range(0, 3000, 1, 4)
out = {"groups": rows(numbers.groupBy((col("id") % 7).alias("k")).sum("id").orderBy("k"))}

# A file that this session alone has, and a function that needs it.
name = os.path.join(folder, "only_here.py")
with open(name, "w") as f:
    f.write("FACTOR = %d\n" % len(folder))
spark.addArtifacts(name, pyfile=True)


@udf("long")
def times(n):
    import only_here
    return n * only_here.FACTOR


@pandas_udf("long")
def doubled(n: pandas.Series) -> pandas.Series:
    return 2 * n


out["udf"] = rows(numbers.select(times("id").alias("n")).agg({"n": "sum"}))
out["pandas"] = rows(numbers.select(doubled("id").alias("n")).agg({"n": "sum"}))
numbers.createOrReplaceTempView("numbers")
out["view"] = rows(spark.sql("select count(*) from numbers where id % 2 = 0"))
out["frame"] = [[int(spark.table("numbers").toPandas()["id"].sum())]]
try:
    rows(spark.sql("select raise_error('as it should')"))
except Exception as e:
    out["error"] = "as it should" in str(e)
print("RESULT", json.dumps(out), flush=True)
spark.stop()
