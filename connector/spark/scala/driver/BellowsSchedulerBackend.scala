package org.apache.spark.scheduler.bellows

import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.concurrent.Future

import org.apache.spark.{SparkEnv, SparkException, SPARK_VERSION}
import org.apache.spark.rpc.{RpcAddress, RpcCallContext, RpcEndpointAddress}
import org.apache.spark.scheduler.{ExecutorKilled, ExecutorProcessLost, LossReasonPending, SparkListener,
  SparkListenerEvent, SparkListenerJobEnd}
import org.apache.spark.scheduler.cluster.CoarseGrainedClusterMessages.{IsExecutorAlive, ReviveOffers}
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.util.{ThreadUtils, Utils}

/**
 * The executors of an application in a pool of bellows. An executor registers with Spark once, and stays registered:
 * while the application has given it back it is parked, which means that it gets no tasks, and still serves the blocks
 * and shuffle files that it has.
 *
 * Locks are taken in the order of Spark: the scheduler, this, the session.
 */
private[spark] final class BellowsSchedulerBackend(scheduler: BellowsTaskScheduler, enrolment: Enrolment, place: Place)
  extends CoarseGrainedSchedulerBackend(scheduler, scheduler.sc.env.rpcEnv) with PoolListener {

  import BellowsSchedulerBackend._

  // The constructor of the superclass creates the endpoint, which may use what follows before it is set otherwise.
  private lazy val session = new Session
  // tasks of stages that come when those that run have ended, by job or query; guarded by this
  private lazy val coming = mutable.HashMap.empty[String, Int]
  private lazy val disconnected = mutable.HashMap.empty[String, Long] // executors: since when; guarded by this
  private lazy val client = new PoolClient(place, enrolment, session, this)
  private lazy val timer = ThreadUtils.newDaemonSingleThreadScheduledExecutor("bellows-reasons")
  private lazy val application = s"bellows-${enrolment.pool}-${System.currentTimeMillis}-${enrolment.key.take(8)}"

  @volatile private var size = PoolSize(1, Long.MaxValue, 1)
  @volatile private var started = false

  override def applicationId(): String = application

  override def start(): Unit = {
    super.start()
    scheduler.sc.addSparkListener(ends)
    client.size() match {
      case Some(s) =>
        size = s
        Settings.check(conf, enrolment.pool, s)
        logInfo(s"Pool ${enrolment.pool} of $place: at most ${s.most} executors of $s")
      case None => logInfo(s"Pool ${enrolment.pool} of $place does not say what its executors have")
    }
    val url = RpcEndpointAddress(conf.get("spark.driver.host"), conf.get("spark.driver.port").toInt,
      CoarseGrainedSchedulerBackend.ENDPOINT_NAME).toString
    val settings = conf.getAll.filter { case (key, _) => key.startsWith("spark.") }.toSeq
    client.start(Payload(url, SPARK_VERSION, Payload.scala, settings,
      SparkEnv.get.securityManager.getIOEncryptionKey(), application).bytes)
    started = true
  }

  override def stop(): Unit = {
    started = false
    client.close() // first, so that what the executors report of their end is no news
    timer.shutdownNow()
    super.stop()
  }

  override def defaultParallelism(): Int =
    conf.getInt("spark.default.parallelism", (size.most.toLong * size.cores).min(MostParallelism).toInt.max(2))

  override def isExecutorActive(id: String): Boolean = isRegistered(id) && session.usable(id)

  private def isRegistered(id: String): Boolean = super.isExecutorActive(id)

  /** Whether the pool waits for an executor. */
  def isAsked: Boolean = session.isAsked

  /** So many tasks of a job or query will wait for executors when the stages that run have ended. */
  def comes(next: String, tasks: Int): Unit = synchronized {
    if (tasks > 0) coming(next) = tasks else coming -= next
  }

  /** Nothing of a job or query comes any more, however it has ended. */
  private object ends extends SparkListener {
    override def onJobEnd(end: SparkListenerJobEnd): Unit = forget(jobKey(end.jobId))

    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case end: SparkListenerSQLExecutionEnd => forget(queryKey(end.executionId.toString))
      case _ =>
    }

    private def forget(next: String): Unit =
      if (BellowsSchedulerBackend.this.synchronized(coming.remove(next).nonEmpty)) settle()
  }

  /** The executors that can be given tasks: the same object while they are the same. */
  def executors: Vector[String] = session.executors

  /** How many tasks an executor runs at once. */
  def slots: Int = (BigDecimal(size.cores) / scheduler.CPUS_PER_TASK).toInt.max(1) // Spark 4.3 has parts of cores.

  private def executorsFor(tasks: Int): Int = (tasks + slots - 1) / slots

  /**
   * Tells the pool how many executors are needed, and gives back what is idle and not needed, or asked for. What is
   * idle between two stages is kept until the pool asks for it. more is of tasks that the scheduler will have at once.
   */
  def settle(more: Int = 0): Unit = if (started) {
    val news = scheduler.synchronized {
      synchronized {
        val needed = executorsFor(scheduler.tasksLeft + more)
        val changed = session.demands(needed, executorsFor(coming.values.sum))
        session.giveBackIdle(needed + session.keeps, scheduler.isExecutorBusy) || changed
      }
    }
    if (news) client.wake()
  }

  private def later(at: Long)(run: => Unit): Unit =
    try {
      timer.schedule((() => Utils.tryLogNonFatalError(run)): Runnable, (at - System.nanoTime).max(0),
        TimeUnit.NANOSECONDS)
    } catch {
      case _: java.util.concurrent.RejectedExecutionException => // The application ends.
    }

  override def happened(effects: Seq[Effect]): Unit = {
    effects.foreach {
      case Effect.Use(_) => reviveOffers()
      case Effect.Asked(attachment, why) =>
        logDebug(s"The pool waits for attachment $attachment: $why")
      case Effect.Lost(executorId, change) => lost(executorId, change)
    }
    settle()
  }

  /**
   * The pool says that an attachment has ended. What ran there may run no more, and the executor may be another
   * application's. If nothing ran, the executor is parked: it keeps its files, and may come back.
   */
  private def lost(executorId: Option[String], change: Change): Unit = {
    val text = s"Executor ${change.attachment.executor} of pool ${enrolment.pool} serves this application no more: " +
      change.why
    if (change.failed) logWarning(text) else logInfo(text)
    for (id <- executorId) {
      val wasUsed = scheduler.synchronized {
        synchronized { disconnected.remove(id).isDefined || scheduler.isExecutorBusy(id) }
      }
      if (wasUsed) removeExecutor(id, ExecutorProcessLost(change.why, None, isOwnFault(change)))
    }
    if (change.cause == "refused") ended(change.why) // The others would refuse it, too.
  }

  override def ended(why: String): Unit = {
    try scheduler.error(s"the pool ${enrolment.pool} has ended this application: $why")
    catch { case _: SparkException => } // No job runs.
    if (!scheduler.sc.stopped.get) scheduler.sc.stopInNewThread()
  }

  /** The connection to an executor has ended. The pool will say why, if the executor served the application. */
  private def connectionEnded(id: String): Unit = {
    val attachment = session.attachmentOf(id)
    if (attachment.isEmpty) {
      removeExecutor(id, ExecutorProcessLost("it has left the application", None, causedByApp = false))
    } else {
      val since = System.nanoTime
      synchronized {
        executorsPendingLossReason += id
        disconnected(id) = since
      }
      scheduler.executorLost(id, LossReasonPending)
      later(since + TimeUnit.SECONDS.toNanos(ReasonPatience)) {
        if (synchronized(disconnected.get(id).contains(since) && disconnected.remove(id).isDefined)) {
          attachment.foreach(session.giveBack)
          client.wake()
          val why = "its connection has ended, and the pool does not say why"
          removeExecutor(id, ExecutorProcessLost(why, None, causedByApp = false))
        }
      }
    }
  }

  override protected def doKillExecutors(executorIds: Seq[String]): Future[Boolean] = {
    executorIds.foreach { id =>
      session.attachmentOf(id).foreach(session.giveBack)
      removeExecutor(id, ExecutorKilled)
    }
    client.wake()
    Future.successful(true)
  }

  override def createDriverEndpoint(): DriverEndpoint = new Endpoint

  private final class Endpoint extends DriverEndpoint {
    private lazy val own: PartialFunction[Any, Unit] = {
      case Active(executorId, attachment) =>
        if (session.active(executorId, attachment).nonEmpty) superReceive(ReviveOffers)
        settle()
    }

    private def superReceive: PartialFunction[Any, Unit] = super.receive

    override def receive: PartialFunction[Any, Unit] = own.orElse(super.receive)

    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] =
      ({
        // A parked executor is alive: one that is told otherwise ends its JVM.
        case IsExecutorAlive(executorId) => context.reply(isRegistered(executorId))
      }: PartialFunction[Any, Unit]).orElse(super.receiveAndReply(context))

    override def onDisconnected(remote: RpcAddress): Unit =
      addressToExecutorId.get(remote).foreach(connectionEnded)
  }
}

private[spark] object BellowsSchedulerBackend {
  private val ReasonPatience = 10L // seconds
  private val MostParallelism = 10000L

  /** What names a job, and a query of SQL, among what comes. */
  private[bellows] def jobKey(id: Int): String = s"job $id"
  private[bellows] def queryKey(id: String): String = s"query $id"

  /**
   * Whether Spark is to count the end of an executor as a failure of the tasks that ran there: if they have ended it,
   * as far as can be told, and not if bellows has taken or lost it.
   */
  private[bellows] def isOwnFault(change: Change): Boolean = change.cause match {
    case "memory" | "failed" => true
    case "" => change.failed && change.why.toLowerCase(java.util.Locale.ROOT).contains("memory")
    case _ => false
  }
}
