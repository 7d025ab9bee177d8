package org.apache.spark.storage.bellows

import org.apache.spark.storage.BlockManager

private[spark] object Binding {
  /** Makes a block manager, whose resolver is of files, look for its shuffle manager in the current environment. */
  def bind(blocks: BlockManager): Unit = blocks.migratableResolver
}
