package org.apache.spark.scheduler.bellows

import scala.collection.mutable

/**
 * Which executors of an application are given to which of the stages that run at once. The tasks of a stage stay
 * together on its own executors, where the code is compiled and the data are at hand (Mira, section III.D). It is pure;
 * its methods are called by one thread at a time.
 */
private[spark] final class Subsets {
  import Subsets._

  private var given = Map.empty[String, Int] // executors: the stage
  private var granted = Set.empty[Int] // stages that have some

  /** The stage to which an executor is given; None if it is given to none. */
  def stageOf(executor: String): Option[Int] = given.get(executor)

  /** Whether a stage has executors of its own. */
  def has(stage: Int): Boolean = granted(stage)

  /**
   * Divides executors among the stages that run. A stage keeps those that it has, as far as it is still granted so
   * many, and gets first those on which its tasks run.
   */
  def divide(executors: Seq[String], stages: IndexedSeq[Running]): Unit = {
    val had = executors.filter(given.contains).groupBy(given)
    val held = stages.map(s => had.getOrElse(s.stage, Nil))
    val shares = Division.divide(executors.size, stages.indices.map { i =>
      Division.Claim(Division.weight(stages(i).left, stages(i).below), stages(i).demand, held(i).size)
    })
    val next = mutable.HashMap.empty[String, Int]
    val lacks = shares.toArray
    def give(i: Int, some: Iterator[String]): Unit =
      for (e <- some.filterNot(next.contains).take(lacks(i)).toList) {
        next(e) = stages(i).stage
        lacks(i) -= 1
      }
    val works = stages.map(s => s.runs.toSeq.sortBy { case (e, tasks) => (-tasks, e) }.map(_._1))
    for (i <- stages.indices) {
      val own = held(i).toSet
      give(i, works(i).iterator.filter(own))
      give(i, held(i).iterator)
    }
    val all = executors.toSet
    for (i <- stages.indices) give(i, works(i).iterator.filter(all))
    val free = executors.iterator.filterNot(next.contains)
    for (i <- stages.indices) give(i, free)
    given = next.toMap
    granted = given.values.toSet
  }
}

private[spark] object Subsets {
  /**
   * A stage that runs. left are its tasks that have not ended, below is the weight of those that read what it writes
   * (see Division), demand is how many executors it could use, and runs says how many of its tasks run on which
   * executor.
   */
  final case class Running(stage: Int, left: Int, below: Long, demand: Int, runs: Map[String, Int])
}
