package org.apache.spark.scheduler.bellows

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
   * weights fits into 63 bits.
   */
  def divide(executors: Int, claims: IndexedSeq[Claim]): IndexedSeq[Int] = {
    val granted = claims.map(_.demand.min(executors)).toArray // if all can be
    var open: IndexedSeq[Int] = claims.indices
    var rest = executors.toLong
    while (open.map(granted(_).toLong).sum > rest) {
      val weights = open.map(claims(_).weight).sum
      // Shares and bounds are in units of 1/weights of an executor.
      val share = (i: Int) => claims(i).weight * rest
      val bound = (i: Int) => granted(i) * weights
      val (full, others) = open.partition(i => share(i) >= bound(i))
      rest -= full.map(granted(_)).sum
      open = others
      if (full.isEmpty) {
        open.foreach(i => granted(i) = (share(i) / weights).toInt)
        val left = rest - open.map(granted(_)).sum
        open.filter(share(_) % weights > 0).sortBy { i =>
          (claims(i).held <= granted(i), -part(share(i) % weights, weights), i)
        }.take(left.toInt).foreach(granted(_) += 1)
        return granted.toIndexedSeq
      }
    }
    granted.toIndexedSeq
  }

  /** The quotient of a rest and a divisor, which is greater, in units of 2 to the power of -32. */
  private def part(rest: Long, divisor: Long): Long = {
    val high = rest << 16
    (high / divisor << 16) + (high % divisor << 16) / divisor
  }
}
