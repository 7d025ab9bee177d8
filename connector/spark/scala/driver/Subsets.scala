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
    val held = (s: Running) => had.getOrElse(s.stage, Nil)
    val lacks = Division.divide(executors.size, stages.map { s =>
      Division.Claim(Division.weight(s.left, s.below), s.demand, held(s).size)
    })
    val some = stages.indices.filter(lacks(_) > 0) // of what may be many more than executors
    val next = mutable.HashMap.empty[String, Int]
    def give(i: Int, some: Iterator[String]): Unit =
      for (e <- some.filterNot(next.contains).take(lacks(i)).toList) {
        next(e) = stages(i).stage
        lacks(i) -= 1
      }
    val works = some.map(i => i -> stages(i).runs.toSeq.sortBy { case (e, tasks) => (-tasks, e) }.map(_._1))
    for ((i, on) <- works) {
      val own = held(stages(i))
      give(i, on.iterator.filter(own.toSet))
      give(i, own.iterator)
    }
    val all = executors.toSet
    for ((i, on) <- works) give(i, on.iterator.filter(all))
    val free = executors.iterator.filterNot(next.contains)
    for (i <- some) give(i, free)
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
