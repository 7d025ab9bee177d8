package org.apache.spark.scheduler.bellows

import scala.collection.mutable

/**
 * How often executors are attached while an application runs stages one after the other, in a pool that keeps executors
 * between stages as mira does. Time is virtual. It prints what differs, and ends with status 1.
 */
object StagesTest {
  /** Tasks of a stage take so many ms; most is how many executors there are. */
  private final case class Job(name: String, most: Int, stages: Seq[Seq[Int]], attachments: Int)

  private val Gap = 30 // ms from the end of a stage to the begin of the next: what the DAG scheduler takes

  private val jobs = Seq(
    Job("one stage", 2, Seq(Seq(100, 100)), 2),
    Job("two stages", 2, Seq(Seq(100, 100), Seq.fill(8)(20)), 2),
    Job("a next stage of 200 tasks", 2, Seq(Seq(100, 100), Seq.fill(200)(5)), 2),
    Job("a last task, and 200 tasks", 2, Seq(Seq(100, 600), Seq.fill(200)(5)), 2),
    Job("a next stage of one task", 4, Seq(Seq.fill(8)(50), Seq(50)), 4),
    Job("three stages", 4, Seq(Seq.fill(8)(50), Seq.fill(100)(10), Seq.fill(4)(10)), 4),
    // What is kept is bounded: 2 s of one executor for a stage.
    Job("a last task of 10 s", 2, Seq(Seq(10000, 100), Seq.fill(200)(5)), 3),
    Job("a last task of 10 s on the executor that is asked for", 2, Seq(Seq(100, 10000), Seq.fill(200)(5)), 4))

  def main(args: Array[String]): Unit = {
    val wrong = jobs.flatMap { job =>
      val attachments = new Run(job).attachments
      println(s"${job.name}: $attachments attachments, want ${job.attachments}")
      if (attachments == job.attachments) None else Some(job.name)
    }
    if (wrong.nonEmpty) sys.exit(1)
  }

  private final class Run(job: Job) {
    private val session = new Session
    private val lease = session.enrolled()
    private val busy = mutable.HashMap.empty[String, Int] // executors: until when their tasks run
    private var tasks = List.empty[Int] // of the stage that runs, which wait
    private var left = job.stages.toList // stages that have not begun
    private var begins = 0
    private var now = 0

    // What the pool knows.
    private var demand, coming, number, next = 0
    private val attached = mutable.LinkedHashMap.empty[Long, Attachment]
    private val kept = mutable.HashMap.empty[Long, Int] // attachments: until when
    private val asked = mutable.Set.empty[Long]
    private val free = mutable.SortedSet.from(0 until job.most)

    def attachments: Int = {
      while (left.nonEmpty || tasks.nonEmpty || busy.nonEmpty) {
        busy.filterInPlace((_, until) => until > now)
        if (tasks.isEmpty && busy.isEmpty && now >= begins && left.nonEmpty) {
          tasks = left.head.toList
          left = left.tail
        }
        step()
        if (tasks.nonEmpty || busy.nonEmpty) begins = now + Gap
        now += 1
      }
      step()
      require(attached.isEmpty, s"${job.name}: ${attached.values} are not given back")
      next
    }

    /** The driver settles, and pool and driver tell each other everything. */
    private def step(): Unit = {
      val before = next + asked.size
      val needed = tasks.size + busy.size
      session.demands(needed, left.headOption.map(_.size).getOrElse(0))
      session.giveBackIdle(needed + session.keeps, busy.contains)
      for (g <- session.growth()) {
        session.grew(g)
        g.demand.foreach(demand = _)
        g.coming.foreach(coming = _)
        for (n <- g.givesBack; a <- attached.remove(n)) {
          free += a.executor
          kept -= n
          asked -= n
          tell(Change.Ended, a)
        }
      }
      decide()
      for (id <- attached.values.map(_.executor.toString) if session.usable(id) && !busy.contains(id)) {
        tasks match {
          case first :: rest =>
            busy(id) = now + first
            tasks = rest
          case Nil =>
        }
      }
      if (next + asked.size != before) step()
    }

    /** Decides as mira does with one application. */
    private def decide(): Unit = {
      while (free.nonEmpty && attached.size < demand) {
        val a = Attachment(next + 1, free.head, 0)
        free -= a.executor
        next += 1
        attached(a.number) = a
        tell(Change.Assigned, a)
        session.active(a.executor.toString, a.number)
      }
      val spare = attached.values.filterNot(a => asked(a.number)).toVector.reverse.dropRight(demand)
      kept.filterInPlace((n, _) => spare.exists(_.number == n))
      for (a <- spare) {
        if (coming > 0) kept.getOrElseUpdate(a.number, now + 2000 / coming)
        if (kept.get(a.number).forall(_ <= now)) {
          asked += a.number
          tell(Change.Asked, a)
        }
      }
    }

    private def tell(what: String, a: Attachment): Unit = {
      number += 1
      session.take(lease, Seq(Change(number.toLong, what, a, failed = false, "", "")))
    }
  }
}
