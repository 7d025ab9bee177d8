package org.apache.spark.executor.bellows

import org.apache.spark.{SparkConf, SparkContext, SparkEnv}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.expressions.{Add, BoundReference, Literal}
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.types.LongType
import org.apache.spark.storage.StorageLevel

/**
 * Work that nobody needs, before an executor registers: it loads the classes of Spark, and the JVM compiles what runs
 * often. The first application would wait some seconds for that otherwise.
 */
private[bellows] object Training extends Logging {
  def run(): Unit =
    if (System.getProperty("bellows.training", "full") != "none") {
      val began = System.nanoTime
      logInfo("The training of this JVM begins")
      LogLevel.use(Some("WARN"))
      try work()
      catch { case e: Exception => logWarning("The training of this JVM failed: it is only slower at first", e) }
      LogLevel.use(None)
      logInfo(f"Trained for ${(System.nanoTime - began) / 1e9}%.1f s")
    }

  /** Jobs with a shuffle, cached data and a broadcast, as a Spark in this process, and code that is generated. */
  private def work(): Unit = {
    val conf = new SparkConf(false).setMaster("local[1]").setAppName("training").set("spark.ui.enabled", "false")
      .set("spark.driver.host", "localhost").set("spark.driver.bindAddress", "127.0.0.1")
    val context = new SparkContext(conf)
    try {
      for (_ <- 1 to Rounds) {
        val factor = context.broadcast(3)
        val pairs = context.parallelize(1 to 2000, 2).map(x => (x % 10, x * factor.value))
        pairs.reduceByKey(_ + _).persist(StorageLevel.MEMORY_AND_DISK_SER).sortByKey().collect()
      }
      GenerateUnsafeProjection.generate(Seq(Add(BoundReference(0, LongType, nullable = false), Literal(1L))))
    } finally {
      context.stop()
      SparkEnv.set(null)
    }
  }

  private val Rounds = 3
}
