package org.apache.spark.scheduler.bellows

import java.util.Arrays

/**
 * Divides the executors of an application among the stages that run at once, as the application scheduler of Mira does
 * (Kaufmann et al., section III.D). It is the rule that the pool follows for applications whose stages it starts, and
 * agrees with it in each case: both are tested with the same vectors.
 */
private[spark] object Division {
  /**
   * What a stage may have: weight is its part relative to others, from 1 to MostWeight, and demand how many executors
   * it could use, with the ones that it holds.
   */
  final case class Claim(weight: Long, demand: Int, held: Int)

  val MostWeight = 1000000000L

  private val IndexBits = 20
  private val LastIndex = (1 << IndexBits) - 1 // of a stage, among those that share

  /**
   * The weight of a stage: the tasks on all paths from it to the end. A task that several paths share counts once for
   * each of them. left are its own, and below is the sum of the weights of the stages that read what it writes.
   */
  def weight(left: Int, below: Long): Long = (left + below).min(MostWeight).max(1)

  /**
   * For each stage, the sum of the weights of the stages that read what it writes. left are their own tasks, and
   * parents the stages whose results they read; there is no cycle.
   */
  def below(left: Int => Int, parents: IndexedSeq[Seq[Int]]): Array[Long] = {
    val sums = new Array[Long](parents.size)
    val unknown = new Array[Int](parents.size) // how many of those that read it have no weight yet
    parents.foreach(_.foreach(unknown(_) += 1))
    var next = parents.indices.filter(unknown(_) == 0).toList
    while (next.nonEmpty) {
      val stage = next.head
      next = next.tail
      for (p <- parents(stage)) {
        sums(p) += weight(left(stage), sums(stage))
        unknown(p) -= 1
        if (unknown(p) == 0) next ::= p
      }
    }
    sums
  }

  /**
   * How many of executors each stage is granted, by weighted max-min fairness: none more than it demands, and what one
   * leaves is divided among the others by their weights. Of stages that could be granted the next higher whole number,
   * those come first that hold as many already, then those with the greater rest. executors times the sum of the
   * weights fits into 63 bits. It takes time in proportion to the stages, and makes a few arrays of them.
   */
  def divide(executors: Int, claims: IndexedSeq[Claim]): Array[Int] = {
    val weights = new Array[Long](claims.size)
    val granted = new Array[Int](claims.size) // if all can be
    val open = Array.range(0, claims.size) // the first ones are not decided
    var opened = open.length
    var rest = executors.toLong
    var sum, all = 0L // of what is granted, and of the weights of those that are open
    for (i <- open) {
      weights(i) = claims(i).weight
      granted(i) = claims(i).demand.min(executors)
      sum += granted(i)
      all += weights(i)
    }
    while (sum > rest) {
      // Shares and bounds are in units of 1/all of an executor.
      var still, k = 0
      var full, fullWeights = 0L
      while (k < opened) {
        val i = open(k)
        if (weights(i) * rest >= granted(i) * all) {
          full += granted(i)
          fullWeights += weights(i)
        } else {
          open(still) = i
          still += 1
        }
        k += 1
      }
      if (still == opened) {
        round(rest, all, claims, weights, open.take(opened), granted)
        return granted
      }
      opened = still
      rest -= full
      sum -= full
      all -= fullWeights
    }
    granted
  }

  /** Grants stages that are open whole executors. */
  private def round(rest: Long, all: Long, claims: IndexedSeq[Claim], weights: Array[Long], open: Array[Int],
      granted: Array[Int]): Unit = {
    val keys = new Array[Long](open.length) // of those that could be granted one more
    var count = 0
    var left = rest
    for (i <- open) {
      granted(i) = (weights(i) * rest / all).toInt
      left -= granted(i)
      val over = weights(i) * rest % all
      if (over > 0) {
        val holds = if (claims(i).held > granted(i)) 1L << 62 else 0L
        keys(count) = holds | part(over, all) << IndexBits | (LastIndex - i)
        count += 1
      }
    }
    Arrays.sort(keys, 0, count)
    for (k <- count - left.toInt until count) granted(LastIndex - (keys(k) & LastIndex).toInt) += 1
  }

  /** The quotient of a rest and a divisor, which is greater, in units of 2 to the power of -32. */
  private def part(rest: Long, divisor: Long): Long = {
    val high = rest << 16
    (high / divisor << 16) + (high % divisor << 16) / divisor
  }
}
