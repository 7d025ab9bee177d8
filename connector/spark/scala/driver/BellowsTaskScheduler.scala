package org.apache.spark.scheduler.bellows

import java.nio.ByteBuffer

import org.apache.spark.SparkContext
import org.apache.spark.TaskState.TaskState
import org.apache.spark.scheduler.{DirectTaskResult, ExecutorLossReason, ShuffleMapStage, TaskSchedulerImpl, TaskSet,
  TaskSetManager}

/** The scheduler of Spark, which tells its backend at once what executors it could use and which have become idle. */
private[spark] final class BellowsTaskScheduler(sc: SparkContext) extends TaskSchedulerImpl(sc) {
  private def bellows: BellowsSchedulerBackend = backend.asInstanceOf[BellowsSchedulerBackend]

  override def submitTasks(taskSet: TaskSet): Unit = {
    foresee(taskSet)
    bellows.settle(taskSet.tasks.length) // before Spark prepares the tasks: executors come meanwhile
    super.submitTasks(taskSet)
    bellows.settle()
  }

  override def statusUpdate(taskId: Long, state: TaskState, data: ByteBuffer): Unit = {
    super.statusUpdate(taskId, state, data)
    if (bellows.isAsked) bellows.settle() // an executor that others wait for need not wait for the result
  }

  override def handleSuccessfulTask(tasks: TaskSetManager, taskId: Long, result: DirectTaskResult[_]): Unit = {
    super.handleSuccessfulTask(tasks, taskId, result)
    bellows.settle()
  }

  override def handleFailedTask(tasks: TaskSetManager, taskId: Long, state: TaskState,
      reason: org.apache.spark.TaskFailedReason): Unit = {
    super.handleFailedTask(tasks, taskId, state, reason)
    bellows.settle()
  }

  override def taskSetFinished(tasks: TaskSetManager): Unit = {
    super.taskSetFinished(tasks)
    bellows.settle()
  }

  override def executorLost(executorId: String, reason: ExecutorLossReason): Unit = {
    super.executorLost(executorId, reason)
    bellows.settle()
  }

  /** How many tasks run, or could run now. */
  def tasksLeft: Int = synchronized {
    rootPool.getSortedTaskSetQueue.iterator.map { t =>
      if (t.isZombie) t.runningTasks
      else (t.tasks.length - t.tasksSuccessful + t.speculatableTasks.count(!t.successful(_))).max(t.runningTasks)
    }.sum
  }

  /**
   * Finds out which stages come when the tasks have ended. It is called in the thread of the DAG scheduler, so that it
   * can read what that knows: the stages of the job that wait for nothing but stages that run. A job of adaptive
   * execution that only makes a shuffle is followed by another one of the same query.
   */
  private def foresee(taskSet: TaskSet): Unit = {
    val dag = dagScheduler
    val query = Option(taskSet.properties).flatMap(p => Option(p.getProperty("spark.sql.execution.id")))
    bellows.stageComes(s"stage ${taskSet.stageId}", 0)
    query.foreach(id => bellows.stageComes(s"query $id", 0))
    for {
      stage <- dag.stageIdToStage.get(taskSet.stageId)
      ids <- dag.jobIdToStageIds.get(taskSet.priority)
    } {
      val isDue = (id: Int) => dag.stageIdToStage.get(id).exists { s =>
        s.id == stage.id || dag.runningStages(s) || (s match {
          case map: ShuffleMapStage => map.isAvailable
          case _ => false
        })
      }
      for (child <- ids.flatMap(dag.stageIdToStage.get) if child.parents.exists(_.id == stage.id)) {
        if (child.parents.forall(p => isDue(p.id))) bellows.stageComes(s"stage ${child.id}", child.numTasks)
      }
      val onlyShuffles = dag.jobIdToActiveJob.get(taskSet.priority).exists(_.finalStage eq stage) &&
        stage.isInstanceOf[ShuffleMapStage]
      if (onlyShuffles) query.foreach(id => bellows.stageComes(s"query $id", taskSet.tasks.length))
    }
  }
}
