package org.apache.spark.scheduler.bellows

import java.nio.ByteBuffer

import org.apache.spark.SparkContext
import org.apache.spark.TaskState.TaskState
import org.apache.spark.scheduler.{DirectTaskResult, ExecutorLossReason, ShuffleMapStage, Stage, TaskSchedulerImpl,
  TaskSet, TaskSetManager}

import BellowsSchedulerBackend.{jobKey, queryKey}

/** The scheduler of Spark, which tells its backend at once what executors it could use and which have become idle. */
private[spark] final class BellowsTaskScheduler(sc: SparkContext) extends TaskSchedulerImpl(sc) {
  private def bellows: BellowsSchedulerBackend = backend.asInstanceOf[BellowsSchedulerBackend]

  // While it is locked, no other thread finds that the tasks come no more, and are not there yet.
  override def submitTasks(taskSet: TaskSet): Unit = synchronized {
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
   * Finds out what comes when the tasks have ended. It is called in the thread of the DAG scheduler, so that it can
   * read what that knows: the stages of the job that wait for nothing but stages that run. A job of adaptive execution
   * that only makes a shuffle is followed by another one of the same query.
   */
  private def foresee(taskSet: TaskSet): Unit = {
    val dag = dagScheduler
    val runs = (s: Stage) => s.id == taskSet.stageId || dag.runningStages(s)
    val isDue = (s: Stage) => runs(s) || (s match {
      case map: ShuffleMapStage => map.isAvailable
      case _ => false
    })
    val all = dag.jobIdToStageIds.get(taskSet.priority).toSeq.flatten.flatMap(dag.stageIdToStage.get)
    val next = all.filter(s => !isDue(s) && s.parents.exists(runs) && s.parents.forall(isDue))
    bellows.comes(jobKey(taskSet.priority), next.map(_.numTasks).sum)
    for (id <- Option(taskSet.properties).flatMap(p => Option(p.getProperty("spark.sql.execution.id")))) {
      val onlyShuffles = dag.jobIdToActiveJob.get(taskSet.priority).map(_.finalStage).exists {
        case map: ShuffleMapStage => map.id == taskSet.stageId
        case _ => false
      }
      bellows.comes(queryKey(id), if (onlyShuffles) taskSet.tasks.length else 0)
    }
  }
}
