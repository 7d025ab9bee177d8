package org.apache.spark.storage.bellows

import scala.util.Try

import org.apache.spark.shuffle.MigratableResolver
import org.apache.spark.storage.BlockManager

private[spark] object Binding {
  /**
   * What finds the files of shuffles for a block manager, which looks for its shuffle manager in the current
   * environment, when it is first used. None if shuffles have no files here.
   */
  def resolver(blocks: BlockManager): Option[MigratableResolver] = Try(blocks.migratableResolver).toOption
}
