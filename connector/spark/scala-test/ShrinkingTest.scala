package org.apache.spark.storage.bellows

import org.apache.spark.{SparkConf, SparkContext, SparkEnv}
import org.apache.spark.storage.{RDDBlockId, StorageLevel}

/** Cached data is bounded although a part of it is being read, and is there again when it is needed. */
object ShrinkingTest {
  private val Rows = 64
  private val RowBytes = 16384
  private val Partitions = 4

  def main(args: Array[String]): Unit = {
    val conf = new SparkConf(false).setMaster("local[1]").setAppName("shrinking").set("spark.ui.enabled", "false")
      .set("spark.driver.host", "localhost").set("spark.driver.bindAddress", "127.0.0.1")
    val context = new SparkContext(conf)
    context.setLogLevel("WARN")
    try {
      for (level <- Seq(StorageLevel.MEMORY_ONLY, StorageLevel.MEMORY_ONLY_SER, StorageLevel.MEMORY_AND_DISK,
        StorageLevel.MEMORY_AND_DISK_SER, StorageLevel.MEMORY_AND_DISK_2)) check(context, level)
    } finally context.stop()
  }

  private def check(context: SparkContext, level: StorageLevel): Unit = {
    val computed = context.longAccumulator
    val rows = context.parallelize(0 until Rows, Partitions).map { n =>
      computed.add(1)
      Array.fill(RowBytes)(n.toByte)
    }.persist(level)
    val want = rows.map(_.map(_.toLong).sum).sum()
    val env = SparkEnv.get
    val blocks = env.blockManager
    val shrinking = new Shrinking(blocks, env.memoryManager)
    def cached = (0 until Partitions).map(RDDBlockId(rows.id, _)).filter(blocks.memoryStore.contains)
    def is(what: String, is: Any, should: Any): Unit = require(is == should, s"$level: $what: $is, should be $should")
    is("partitions in memory", cached.size, Partitions)

    shrinking.tell(shrinking.shrink(Long.MaxValue, keep = true))
    is("partitions in memory, without a bound", cached.size, Partitions)

    val read = RDDBlockId(rows.id, 1)
    require(blocks.blockInfoManager.lockForReading(read).isDefined)
    val dropped = shrinking.shrink(0, keep = true)
    is("partitions in memory while one is read", cached, Seq(read))
    is("dropped", dropped.filter(_.isRDD).toSet, (0 until Partitions).map(RDDBlockId(rows.id, _)).toSet - read)
    shrinking.tell(dropped)
    val known = (0 until Partitions).flatMap { n =>
      blocks.master.getBlockStatus(RDDBlockId(rows.id, n), askStorageEndpoints = false).values
    }
    is("in memory, as the driver knows", known.map(_.memSize).sum, blocks.memoryStore.getSize(read))
    is("on disk, as the driver knows", known.count(_.diskSize > 0), if (level.useDisk) Partitions - 1 else 0)
    blocks.blockInfoManager.unlock(read)

    val before = computed.value
    is("sum", rows.map(_.map(_.toLong).sum).sum(), want)
    is("computed again", computed.value - before,
      if (level.useDisk) 0 else Rows / Partitions * (Partitions - 1))

    shrinking.tell(shrinking.shrink(0, keep = false))
    is("partitions in memory, of one that leaves", cached.size, 0)
    is("sum of one that leaves", rows.map(_.map(_.toLong).sum).sum(), want)
    rows.unpersist(blocking = true)
    println(s"${level.description}: bounded")
  }
}
