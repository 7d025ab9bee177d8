package org.apache.spark.scheduler.bellows

import java.nio.ByteBuffer

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.TaskState.TaskState
import org.apache.spark.scheduler.{DirectTaskResult, ExecutorLossReason, ShuffleMapStage, Stage, TaskSet,
  TaskSetManager}

import BellowsSchedulerBackend.{jobKey, queryKey}

/** The scheduler of Spark, which tells its backend at once what executors it could use and which have become idle. */
private[spark] final class BellowsTaskScheduler(sc: SparkContext) extends StageScheduler(sc) {
  private val graphs = mutable.HashMap.empty[Int, JobGraph] // jobs that run; of the thread of the DAG scheduler

  private def bellows: BellowsSchedulerBackend = backend.asInstanceOf[BellowsSchedulerBackend]

  override protected def executors: Seq[String] = bellows.executors

  override protected def slots: Int = bellows.slots

  override protected def below(job: Int, stage: Int): Long = graphs.get(job).map(_.below(stage)).getOrElse(0L)

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
    val graph = graphOf(taskSet)
    val next = (taskSet.stageId +: dag.runningStages.iterator.map(_.id).toSeq).flatMap(graph.readers).distinct
      .flatMap(dag.stageIdToStage.get).filter(s => !isDue(s) && s.parents.forall(isDue))
    bellows.comes(jobKey(taskSet.priority), next.map(_.numTasks).sum)
    for (id <- Option(taskSet.properties).flatMap(p => Option(p.getProperty("spark.sql.execution.id")))) {
      val onlyShuffles = dag.jobIdToActiveJob.get(taskSet.priority).map(_.finalStage).exists {
        case map: ShuffleMapStage => map.id == taskSet.stageId
        case _ => false
      }
      bellows.comes(queryKey(id), if (onlyShuffles) taskSet.tasks.length else 0)
    }
  }

  private def graphOf(taskSet: TaskSet): JobGraph = {
    val dag = dagScheduler
    graphs --= graphs.keys.filterNot(dag.jobIdToActiveJob.contains).toList
    graphs.get(taskSet.priority).filter(_.contains(taskSet.stageId)).getOrElse {
      val all = dag.jobIdToStageIds.get(taskSet.priority).toSeq.flatten.flatMap(dag.stageIdToStage.get)
      val graph = new JobGraph(all.map(_.id).toIndexedSeq, dag.stageIdToStage(_).numTasks,
        dag.stageIdToStage(_).parents.map(_.id))
      graphs(taskSet.priority) = graph
      graph
    }
  }
}
