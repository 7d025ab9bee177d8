package org.apache.spark.executor.bellows

import scala.util.Random

/** Applications leave a JVM when memory is short, some for each that comes, and no more than needed. */
object RoomTest {
  import Room._

  def main(args: Array[String]): Unit = {
    // Memory that is short, or not, whatever leaves.
    for ((left, steady) <- Seq(LeastLeft - 1 -> AlwaysAttached, LeastLeft -> MostAttached); first <- 0 to MostAttached) {
      var attached = first
      for (n <- 1 to MostAttached) {
        attached = attached - leave(attached, left) + 1
        val want = if (first > steady) (first - n).max(steady) else (first + n).min(steady)
        require(attached == want, s"$left bytes are left: of $first, $attached after $n more, should be $want")
      }
    }
    // Applications that take memory, and give it back: the number becomes what the memory is enough for.
    val random = new Random(7)
    for (_ <- 1 to 1000) {
      val memory = random.nextInt(900).toLong << 20
      var sizes = Vector.fill(random.nextInt(MostAttached + 1))((7 + random.nextInt(40)).toLong << 20)
      val each = (7 + random.nextInt(40)).toLong << 20 // of those that come
      for (n <- 1 to 40) {
        val left = memory - sizes.sum
        val goes = leave(sizes.size, left)
        require(left >= LeastLeft || sizes.size < AlwaysAttached || goes > 0, s"none leaves of ${sizes.size}")
        sizes = sizes.drop(goes) :+ each
      }
      val enough = ((memory - LeastLeft) / each + 1).max(AlwaysAttached).min(MostAttached)
      require((sizes.size - enough).abs <= 1, s"$memory bytes, $each each: ${sizes.size} are attached, not $enough")
    }
    println("room: made")
  }
}
