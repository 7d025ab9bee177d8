package org.apache.spark.scheduler.bellows

/**
 * The stages of a job of Spark, by their ids. It is made once for a job, so that what a stage costs that begins does
 * not depend on how many there are, or have been. tasks says how many tasks a stage has, and parents which stages it
 * reads.
 */
private[spark] final class JobGraph(stages: IndexedSeq[Int], tasks: Int => Int, parents: Int => Seq[Int]) {
  private val places = stages.zipWithIndex.toMap
  private val read = stages.map(s => parents(s).flatMap(places.get).distinct)
  private val next = { // for each stage, those that read it
    val all = Array.fill(stages.size)(List.empty[Int])
    for (i <- stages.indices; p <- read(i)) all(p) ::= stages(i)
    all
  }
  private val sums = Division.below(i => tasks(stages(i)), read)

  def contains(stage: Int): Boolean = places.contains(stage)

  /** The stages that read what a stage writes. */
  def readers(stage: Int): Seq[Int] = places.get(stage).map(next(_)).getOrElse(Nil)

  /** The sum of the weights of the stages that read what a stage writes, none of which has begun: see Division. */
  def below(stage: Int): Long = places.get(stage).map(sums(_)).getOrElse(0L)
}
