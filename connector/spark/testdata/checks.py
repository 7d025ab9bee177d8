"""Checks of a Spark on warm executors. Arguments: a folder for marks, and 1 for a slow query at the end."""
import json
import os
import subprocess
import sys
import time
from operator import add

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, udf
from pyspark.sql.types import LongType

marks, slow = sys.argv[1], sys.argv[2] == "1"
spark = SparkSession.builder.appName("checks").config("spark.sql.shuffle.partitions", 3).getOrCreate()
sc = spark.sparkContext
say = lambda name, value: print("RESULT", json.dumps({name: value}), flush=True)
application = sc.applicationId
say("id", application)


def jvm(_):
    """The process id of the JVM of this executor: the parent of the daemon that starts workers."""
    print("a task of", application, file=sys.stderr, flush=True)
    with open("/proc/%d/stat" % os.getppid()) as f:
        return int(f.read().rpartition(")")[2].split()[1])


def mark_and_wait(n):
    open(os.path.join(marks, "task-%d" % n), "w").close()
    time.sleep(1)
    return n


def attachments():
    """How many attachments of executors to this application have ended, once none is left."""
    while True:
        said = subprocess.check_output([os.environ["BELLOWS"], "pool", "top", "sp", "--once", "--json"])
        own = [a for a in json.loads(said)["enrolled"] if a["state"] == "open"]
        if sum(a["running"] for a in own) == 0:
            return sum(a["ended"] for a in own)
        time.sleep(0.01)


began = time.monotonic()
first = sc.parallelize([0], 1).map(jvm).collect()[0]
say("first_seconds", time.monotonic() - began)
say("jvm", first)
say("rdd", sorted(sc.parallelize(range(1000), 8).map(lambda x: (x % 7, x)).reduceByKey(add, 3).collect()))
numbers = spark.range(10000).withColumn("k", col("id") % 5)
names = spark.createDataFrame([(n, "name-%d" % n) for n in range(5)], ["k", "name"])
rows = numbers.groupBy("k").sum("id").join(names.hint("merge"), "k").orderBy("k")
say("sql", [[r["name"], r["sum(id)"]] for r in rows.collect()])
cubed = udf(lambda x: x ** 3, LongType())
say("udf", [r[0] for r in spark.range(6).select(cubed("id")).collect()])
before = attachments()
spark.conf.set("spark.sql.adaptive.enabled", False)  # so that it is one job, of two stages
spark.conf.set("spark.sql.shuffle.partitions", 400)
say("stages", sorted(r["count"] for r in spark.range(0, 1000, 1, 2).groupBy(col("id") % 3).count().collect()))
say("attachments", attachments() - before)
if slow:
    query = sc.parallelize(range(12), 12).map(mark_and_wait).map(lambda n: (n % 3, n)).reduceByKey(add, 3)
    say("slow", sorted(query.collect()))
    say("jvm_after", sc.parallelize([0], 1).map(jvm).collect()[0])
spark.stop()
