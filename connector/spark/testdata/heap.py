"""A query whose one task holds all of its rows in the heap, and cannot spill them. Arguments: rows, and how often."""
import json
import sys
import time

from pyspark.sql import SparkSession

rows, times = int(sys.argv[1]), int(sys.argv[2])
spark = SparkSession.builder.appName("heap").getOrCreate()
say = lambda name, value: print("RESULT", json.dumps({name: value}), flush=True)
process = "java_method('java.lang.ProcessHandle', 'current')"  # as a text: the number of the process
began = time.monotonic()
say("jvm", spark.sql("SELECT %s FROM range(0, 1, 1, 1)" % process).collect()[0][0])
say("first_seconds", time.monotonic() - began)
query = "SELECT aggregate(collect_list(id), 0L, (sum, id) -> sum + id) FROM range(0, %d, 1, 1)" % rows
for n in range(times):
    say("sum_%d" % n, spark.sql(query).collect()[0][0])
say("seconds", time.monotonic() - began)
spark.stop()
