package org.apache.spark.storage.bellows

import java.io.IOException
import java.nio.channels.{Channels, WritableByteChannel}

import scala.reflect.ClassTag

import org.apache.spark.internal.Logging
import org.apache.spark.memory.{MemoryManager, MemoryMode}
import org.apache.spark.storage.{BlockId, BlockInfo, BlockManager, BlockStatus, StorageLevel}

/**
 * Bounds what the blocks of an application have in memory while it is not served. Spark's evictBlocksToFreeSpace evicts
 * nothing if it cannot evict enough, as when a block is being read, and waits for the driver at each block, which may
 * not answer. This one waits for nothing but the disk.
 */
private[spark] final class Shrinking(blocks: BlockManager, memory: MemoryManager) extends Logging {
  /**
   * Drops blocks from memory until those on the heap, and those outside of it, have at most so many bytes: broadcasts
   * at last. If keep, what its storage level has on disk is written there; the rest is lost, and computed again. Blocks
   * that are being read stay. It returns the blocks that are in memory as far as the driver knows: see tell.
   */
  def shrink(most: Long, keep: Boolean): Seq[BlockId] = {
    val dropped = Vector.newBuilder[BlockId]
    for (mode <- Seq(MemoryMode.ON_HEAP, MemoryMode.OFF_HEAP) if used(mode) > most) {
      val there = blocks.blockInfoManager.entries.filter { case (id, info) =>
        (if (info.level.useOffHeap) MemoryMode.OFF_HEAP else MemoryMode.ON_HEAP) == mode &&
          blocks.memoryStore.contains(id)
      }.toVector
      for ((id, _) <- there.sortBy { case (id, info) => (id.isBroadcast, -info.size) } if used(mode) > most) {
        for (info <- blocks.blockInfoManager.lockForWriting(id, blocking = false)) {
          drop(id, info, keep)
          if (info.tellMaster) dropped += id
        }
      }
    }
    dropped.result()
  }

  private def used(mode: MemoryMode): Long =
    if (mode == MemoryMode.ON_HEAP) memory.onHeapStorageMemoryUsed else memory.offHeapStorageMemoryUsed

  /** Drops a block that is locked for writing, and lets go of the lock. */
  private def drop(id: BlockId, info: BlockInfo, keep: Boolean): Unit = {
    try {
      if (keep && info.level.useDisk && !blocks.diskStore.contains(id)) write(id, info)
    } catch {
      case e: IOException => logWarning(s"Block $id cannot be written, and is lost: $e")
    } finally {
      blocks.memoryStore.remove(id)
      if (blocks.diskStore.contains(id)) blocks.blockInfoManager.unlock(id)
      else blocks.blockInfoManager.removeBlock(id)
    }
  }

  private def write(id: BlockId, info: BlockInfo): Unit =
    if (info.level.deserialized) {
      for (values <- blocks.memoryStore.getValues(id)) {
        blocks.diskStore.put(id) { (channel: WritableByteChannel) =>
          blocks.serializerManager.dataSerializeStream(id, Channels.newOutputStream(channel),
            values.asInstanceOf[Iterator[Any]])(info.classTag.asInstanceOf[ClassTag[Any]])
        }
      }
    } else blocks.memoryStore.getBytes(id).foreach(blocks.diskStore.putBytes(id, _))

  /** Tells the driver where blocks are, of which it may not know. It waits for the driver. */
  def tell(dropped: Seq[BlockId]): Unit = for (id <- dropped if !blocks.memoryStore.contains(id)) {
    val disk = blocks.diskStore
    blocks.reportBlockStatus(id,
      if (disk.contains(id)) BlockStatus(StorageLevel.DISK_ONLY, 0, disk.getSize(id)) else BlockStatus.empty)
  }
}
