"""A driver of Spark that does what it reads, an object of JSON in each line of standard input, until that ends. It
answers each by a line on standard output, RESULT and an object with ok, or with error."""
import csv
import datetime
import decimal
import json
import os
import re
import sys
import threading
import time
import traceback

from pyspark import StorageLevel
from pyspark.sql import SparkSession

import tpch_data

HERE = os.path.dirname(os.path.abspath(__file__))
QUERIES = {int(number): text for number, text in re.findall(
    r"^-- query (\d+)\n(.*?)(?=^-- query|\Z)", open(os.path.join(HERE, "tpch.sql")).read(), re.M | re.S)}


def plain(value):
    """A value for JSON. Only floating numbers become numbers with a point."""
    if isinstance(value, (decimal.Decimal, datetime.date)):
        return str(value)
    return value


class Driver:
    spark = None
    cached = None
    taker = None
    failed = None

    def open(self, master, name, conf):
        """Begins an application, after the one before has ended. Returns the process of the JVM."""
        if self.spark:
            self.close()
        builder = SparkSession.builder.master(master).appName(name)
        for key, value in {"spark.sql.shuffle.partitions": 4, "spark.default.parallelism": 4, "spark.ui.enabled": False,
                           "spark.ui.showConsoleProgress": False, **(conf or {})}.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("WARN")
        return self.spark.sparkContext._gateway.proc.pid

    def close(self):
        self.spark.stop()
        self.spark = self.cached = None

    def make(self, folder, orders):
        """Writes the tables. Returns the number of their rows."""
        count = 0
        for name, rows in tpch_data.tables(orders).items():
            path = os.path.join(folder, name + ".csv")
            with open(path, "w", newline="") as f:
                csv.writer(f).writerows(rows)
            files = 1 if len(rows) < 1000 else 4
            read = self.spark.read.csv(path, tpch_data.TABLES[name]).repartition(files)
            read.write.parquet(os.path.join(folder, name))
            count += len(rows)
        return count

    def tables(self, folder):
        """Reads the tables."""
        for name in tpch_data.TABLES:
            self.spark.read.parquet(os.path.join(folder, name)).createOrReplaceTempView(name)

    def query(self, number):
        return [[plain(v) for v in row] for row in self.spark.sql(QUERIES[number]).collect()]

    def count(self, rows, keep):
        """Makes rows of 264 bytes, which may be kept in memory, and returns what all of them say."""
        self.cached = self.spark.range(0, rows, 1, 8).selectExpr("id", "repeat(md5(cast(id as string)), 8) as text")
        if keep:
            self.cached = self.cached.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        return self.again()

    def again(self):
        """Counts the same rows again."""
        return list(self.cached.selectExpr("count(*)", "sum(id)", "sum(crc32(cast(text as binary)))").collect()[0])

    def kept(self):
        """How many bytes are in the memory of executors, as far as this driver knows."""
        used, executors = 0, self.spark.sparkContext._jsc.sc().getExecutorMemoryStatus().values().iterator()
        while executors.hasNext():
            one = executors.next()
            used += one._1() - one._2()
        return used

    def ports(self):
        """Where this driver listens, and where block managers do, its own among them."""
        found, executors = [], self.spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keys().iterator()
        while executors.hasNext():
            found.append(int(executors.next().rpartition(":")[2]))
        return [int(self.spark.sparkContext.getConf().get("spark.driver.port"))] + found

    def pandas(self, what):
        """What a function of pandas computes from order lines: by rows, by groups, by groups as frames, or by batches;
        or what a frame of pandas has that the rows were collected into."""
        import pandas
        from pyspark.sql.functions import pandas_udf

        @pandas_udf("double")
        def price(paid: pandas.Series, discount: pandas.Series) -> pandas.Series:
            return paid.astype(float) * (1 - discount.astype(float))

        @pandas_udf("double")
        def spread(quantity: pandas.Series) -> float:
            return float(quantity.max() - quantity.min())

        def ranked(group: pandas.DataFrame) -> pandas.DataFrame:
            best = group.sort_values(["l_quantity", "l_orderkey", "l_linenumber"]).tail(3)
            return best[["l_returnflag", "l_orderkey", "l_quantity"]]

        def large(batches):
            for batch in batches:
                yield batch[batch["l_quantity"] > 49][["l_orderkey", "l_linenumber"]]

        lines = self.spark.table("lineitem")
        if what == "rows":
            frame = lines.select("l_orderkey", "l_linenumber", price("l_extendedprice", "l_discount"))
        elif what == "groups":
            frame = lines.groupBy("l_suppkey").agg(spread("l_quantity"))
        elif what == "frames":
            columns = "l_returnflag string, l_orderkey int, l_quantity double"
            frame = lines.groupBy("l_returnflag").applyInPandas(ranked, columns)
        elif what == "batches":
            frame = lines.mapInPandas(large, "l_orderkey int, l_linenumber int")
        else:
            collected = lines.groupBy("l_shipmode").avg("l_quantity").toPandas()
            return [[str(mode), float(mean)] for mode, mean in collected.itertuples(index=False)]
        return [[plain(v) for v in row] for row in frame.collect()]

    def function(self, name, text):
        """What a function of a class in a jar of this application says of a text and the number 1."""
        self.spark.udf.registerJavaFunction("f", name, "long")
        return self.spark.sql("select f('%s', id) from range(1, 2, 1, 1)" % text).collect()[0][0]

    def jvm(self):
        """The process in which a task runs."""
        process = "java_method('java.lang.ProcessHandle', 'current')"
        return int(self.spark.sql("select %s from range(0, 1, 1, 1)" % process).collect()[0][0])

    def stream(self, batches, folder):
        """Counts the numbers of a stream by remainders, in at least so many batches. Returns the counts."""
        numbers = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
        counts = numbers.selectExpr("value % 7 as remainder").groupBy("remainder").count()
        query = counts.writeStream.format("memory").queryName("counts").outputMode("complete") \
            .option("checkpointLocation", folder).start()
        while not query.lastProgress or query.lastProgress["batchId"] + 1 < batches:
            if query.awaitTermination(0.1):
                raise RuntimeError("the query has ended")
        query.stop()
        return sorted(list(row) for row in self.spark.table("counts").collect())

    def beside(self, folder, tasks):
        """Runs two jobs at once. A task of one waits, for 10 s at most, until the other has come nearly as far. Returns,
        for each job, the process of the JVM in which each task ran."""
        sc, ran = self.spark.sparkContext, {}

        def run(name, other):
            def task(n):
                open(os.path.join(folder, "%s-%d" % (name, n)), "w").close()
                awaited = [os.path.join(folder, "both")] + [os.path.join(folder, "%s-%d" % (other, n - 4))] * (n >= 4)
                for _ in range(1000):
                    if all(os.path.exists(path) for path in awaited):
                        break
                    time.sleep(0.01)
                with open("/proc/%d/stat" % os.getppid()) as f:
                    return int(f.read().rpartition(")")[2].split()[1])

            ran[name] = sc.parallelize(range(tasks), tasks).map(task).collect()

        threads = [threading.Thread(target=run, args=pair) for pair in (("a", "b"), ("b", "a"))]
        for thread in threads:
            thread.start()
        while len(sc.statusTracker().getActiveStageIds()) < 2 and any(thread.is_alive() for thread in threads):
            time.sleep(0.01)
        open(os.path.join(folder, "both"), "w").close()
        for thread in threads:
            thread.join()
        return [ran["a"], ran["b"]]

    def take(self, seconds):
        """Runs a job of one task every so often from now on."""
        self.stopping = threading.Event()

        def run():
            try:
                while not self.stopping.wait(seconds):
                    self.spark.range(0, 1, 1, 1).collect()
            except Exception:
                self.failed = traceback.format_exc()

        self.taker = threading.Thread(target=run)
        self.taker.start()

    def rest(self):
        self.stopping.set()
        self.taker.join()
        if self.failed:
            raise RuntimeError(self.failed)


driver = Driver()
for line in sys.stdin:
    order = json.loads(line)
    try:
        answer = {"ok": getattr(driver, order.pop("do"))(**order)}
    except Exception:
        answer = {"error": traceback.format_exc()}
    print("RESULT", json.dumps(answer), flush=True)
