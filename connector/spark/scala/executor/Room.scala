package org.apache.spark.executor.bellows

/** How many applications a JVM stays attached to. It is pure. */
private[bellows] object Room {
  // An attachment takes some 7 MB of the heap, and as much besides; one that has used Python 40 MB more.
  val MostAttached = 16
  val AlwaysAttached = 4 // at most, however little is left besides the heap
  val LeastLeft = 96L << 20 // bytes of the container besides the heap, for one more

  private val LeaveAtOnce = 2

  /**
   * How many of the applications that are attached leave before another one comes. left is the memory of the container
   * that is free while the heap is full, in bytes. What an application takes differs by an order of magnitude, and what
   * it has given back is known when the next one comes: so two leave for each that comes, until enough is left, or
   * until there are AlwaysAttached.
   */
  def leave(attached: Int, left: Long): Int =
    (attached + 1 - (if (left < LeastLeft) AlwaysAttached else MostAttached)).max(0).min(LeaveAtOnce)
}
