package org.apache.spark.scheduler.bellows

import java.util.{Arrays, Comparator}

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{Pool, Schedulable, SchedulingMode, TaskDescription, TaskLocality,
  TaskSchedulerImpl, TaskSet, TaskSetManager, WorkerOffer}

/**
 * The scheduler of Spark with the application scheduler of Mira: stages that run at once share the executors of the
 * application, each on its own ones. Spark alone starts all tasks of the first stage before any of the next, on all
 * executors. An executor of another stage gets a task
 *
 *   - whose data are there, or on its host if the stage has no executor there,
 *   - of a stage that has no executor of its own, in the order of Spark,
 *   - if it would be idle otherwise.
 *
 * An application that has asked for the FAIR mode of Spark has that.
 *
 * To divide takes time in proportion to the stages that run at once, as an offer does in Spark, which sorts and visits all
 * of them: with 20,000 it takes Spark some 25 ms, and this some 5 ms when a stage begins or ends.
 */
private[spark] abstract class StageScheduler(sc: SparkContext) extends TaskSchedulerImpl(sc) {
  /** The executors that can be given tasks. It is the same object as before if these are the same. */
  protected def executors: Seq[String]

  /** How many tasks an executor runs at once. */
  protected def slots: Int

  /** The weight of what comes after a stage of a job: see Division. It is called when the stage is submitted. */
  protected def below(job: Int, stage: Int): Long

  // What follows is guarded by this.
  private val subsets = new Subsets
  private var among: Seq[String] = Nil // the executors that were divided
  private var stale = false // stages have begun or ended, or have left executors to others
  private val places = mutable.HashMap.empty[String, String] // executors that were offered: their hosts
  private var hosts = Map.empty[Int, Set[String]] // stages: those of their executors
  private var open = false // what would be idle goes to any stage
  private var refused = false

  override def createTaskSetManager(taskSet: TaskSet, maxTaskFailures: Int): TaskSetManager = {
    stale = true
    new StageTasks(taskSet, maxTaskFailures, below(taskSet.priority, taskSet.stageId))
  }

  override def taskSetFinished(tasks: TaskSetManager): Unit = synchronized {
    stale = true
    super.taskSetFinished(tasks)
  }

  override def resourceOffers(offers: IndexedSeq[WorkerOffer],
      isAllFreeResources: Boolean = true): Seq[Seq[TaskDescription]] = synchronized {
    for (o <- offers if !places.get(o.executorId).contains(o.host)) {
      places(o.executorId) = o.host
      stale = true
    }
    divide()
    refused = false
    val started = super.resourceOffers(offers, isAllFreeResources)
    val at = started.flatten.groupBy(_.executorId)
    val idle = offers.map(o => o.copy(cores = o.cores - at.getOrElse(o.executorId, Nil).map(_.cpus).sum))
    if (!refused || idle.forall(_.cores < CPUS_PER_TASK)) started
    else {
      open = true
      val more = try super.resourceOffers(idle, isAllFreeResources) finally open = false
      stale ||= more.exists(_.nonEmpty)
      started ++ more
    }
  }

  private def divide(): Unit = {
    val now = executors
    if (stale || (now ne among)) {
      stale = false
      among = now
      subsets.divide(now, if (schedulingMode == SchedulingMode.FIFO) running.map(_.stage) else Vector.empty)
      places --= (places.keySet -- now).toList
      hosts = now.flatMap(e => subsets.stageOf(e).zip(places.get(e))).groupBy(_._1).map {
        case (stage, own) => stage -> own.map(_._2).toSet
      }
    }
  }

  /** The stages that run and that have executors of their own, in the order of Spark. */
  private def running: IndexedSeq[StageTasks] = {
    val all = mutable.ArrayBuffer.empty[StageTasks]
    each(rootPool) {
      case t: StageTasks if !t.isZombie && !t.isBarrier => all += t
      case _ =>
    }
    val sorted = all.toArray // Most have come in this order.
    Arrays.sort[StageTasks](sorted, StageScheduler.first)
    sorted.toIndexedSeq
  }

  /** Visits all sets of tasks that have not ended. The queue that Spark sorts has none of which all tasks run. */
  private def each(pool: Pool)(visit: TaskSetManager => Unit): Unit = {
    val all = pool.schedulableQueue.iterator()
    while (all.hasNext) all.next() match {
      case below: Pool => each(below)(visit)
      case t: TaskSetManager => visit(t)
    }
  }

  /** How many tasks run, or could run now. */
  def tasksLeft: Int = synchronized {
    var sum = 0
    each(rootPool)(sum += left(_))
    sum
  }

  private def left(t: TaskSetManager): Int =
    if (t.isZombie) t.runningTasks
    else (t.tasks.length - t.tasksSuccessful + t.speculatableTasks.count(!t.successful(_))).max(t.runningTasks)

  /** The tasks of a stage. */
  private final class StageTasks(taskSet: TaskSet, maxTaskFailures: Int, below: Long)
    extends TaskSetManager(this, taskSet, maxTaskFailures, healthTrackerOpt) {

    def stage: Subsets.Running = {
      val tasks = left(this)
      val runs = if (runningTasks == 0) Map.empty[String, Int]
      else runningTasksSet.toSeq.groupBy(taskInfos(_).executorId).map { case (e, some) => e -> some.size }
      Subsets.Running(stageId, tasks, below, (tasks + slots - 1) / slots, runs)
    }

    override protected def dequeueTaskHelper(executor: String, host: String, most: TaskLocality.Value,
        speculative: Boolean): Option[(Int, TaskLocality.Value, Boolean)] =
      super.dequeueTaskHelper(executor, host, limit(executor, host, most), speculative)

    /** How far from its data a task may be that starts on an executor. */
    private def limit(executor: String, host: String, most: TaskLocality.Value): TaskLocality.Value =
      if (open || isBarrier || !subsets.has(stageId) || subsets.stageOf(executor).forall(_ == stageId)) most
      else {
        val near = if (hosts.get(stageId).exists(_(host))) TaskLocality.PROCESS_LOCAL else TaskLocality.NODE_LOCAL
        refused ||= most > near
        if (most > near) near else most
      }
  }
}

private object StageScheduler {
  /** As Spark orders stages in the FIFO mode: by their jobs, and then by their numbers. */
  private val first: Comparator[Schedulable] = (a: Schedulable, b: Schedulable) => {
    val byJob = Integer.compare(a.priority, b.priority)
    if (byJob != 0) byJob else Integer.compare(a.stageId, b.stageId)
  }
}
