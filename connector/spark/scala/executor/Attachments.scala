package org.apache.spark.executor.bellows

import java.io.IOException
import java.net.{InetSocketAddress, Socket, URI}
import java.util.concurrent.{Executors, LinkedBlockingQueue}

import scala.collection.mutable

import org.apache.spark.{SPARK_VERSION, SparkEnv}
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.bellows.Payload
import org.apache.spark.util.Utils

/**
 * The applications of this JVM. Some are attached, which means that they have an environment of Spark, and at most one
 * is served: SparkEnv.get is its. To serve another one that is attached, the JVM waits until no task runs, and sets
 * SparkEnv: a switch. One thread does all that, in the order of the orders of the launcher. What takes long and is not
 * waited for, such as to detach an application, has threads of its own.
 */
private[bellows] final class Attachments(reports: Reports, cores: Int) extends Ends with Logging {
  import Attachments._

  private val orders = new LinkedBlockingQueue[() => Unit]
  private val aside = Executors.newCachedThreadPool { (run: Runnable) =>
    val thread = new Thread(run, "bellows-aside")
    thread.setDaemon(true)
    thread
  }
  private val shared = new SharedLoader(Utils.getContextOrSparkClassLoader)

  // What follows is of the one thread.
  private val attached = mutable.LinkedHashMap.empty[String, Attached] // by keys; who was served last is last
  private val leaving = mutable.Set.empty[Attached] // which are being detached
  private var current: Option[Attached] = None // whose environment SparkEnv is
  private var serving = 0L // the attachment that is served; 0 if none
  private var switches = 0L

  /** Carries out orders until the JVM ends. */
  def run(): Unit = while (true) {
    try orders.take()()
    catch {
      case e: Throwable =>
        logError("An order of the launcher failed", e)
        reports.broken(e.toString)
    }
  }

  private def order(run: => Unit): Unit = orders.put(() => run)

  /** left is how much memory of the container is not used, in bytes. */
  def attach(attachment: Long, key: String, name: String, payload: Array[Byte], left: Long): Unit = order {
    val began = System.nanoTime
    if (leave()) {
      serve(attachment, key, name, payload, left).foreach { full =>
        reports.active(attachment, (System.nanoTime - began) / 1e9, full)
        switches += 1
        if (switches % AuditEvery == 0) aside.execute(() => reports.audit())
      }
    }
  }

  def park(): Unit = order { if (leave()) reports.parked() }

  def forget(key: String): Unit = order { attached.get(key).foreach(drop(_, "the application has ended")) }

  override def gone(application: Attached, why: String): Unit = order {
    if (attached.get(application.key).exists(_ eq application)) {
      logInfo(s"Application ${application.name} leaves: $why")
      if (current.contains(application) && serving != 0) {
        reports.left(serving, why)
        serving = 0
      }
      drop(application, why)
    }
  }

  /** Serves an application, and returns whether it was attached for that; None if that has failed. */
  private def serve(attachment: Long, key: String, name: String, payload: Array[Byte], left: Long): Option[Boolean] =
    try {
      val known = attached.remove(key)
      val application = known.getOrElse(attachAnew(attachment, key, name, Payload.parse(payload), left))
      attached(key) = application // as the last
      SparkEnv.set(application.env)
      if (!current.contains(application)) StateStores.forgetDriver()
      shrinkOthers(application)
      current = Some(application)
      shared.user = Some(application.backend)
      serving = attachment
      application.activate(attachment)
      if (known.isEmpty) reports.keeps(attached.keys)
      Some(known.isEmpty)
    } catch {
      case e: Refusal =>
        reports.failed(attachment, e.cause, e.getMessage)
        None
      case e: Exception =>
        logError(s"Application $name cannot be attached", e)
        reports.failed(attachment, "failed", s"the executor cannot be attached to application $name: ${e.getMessage}")
        None
    }

  private def attachAnew(attachment: Long, key: String, name: String, payload: Payload, left: Long): Attached = {
    if (payload.spark != SPARK_VERSION || payload.scala != Payload.scala) {
      throw new Refusal("refused", s"application $name has Spark ${payload.spark} with Scala ${payload.scala}, and " +
        s"executors of this pool have Spark $SPARK_VERSION with Scala ${Payload.scala}: they must be the same")
    }
    probe(name, payload.url)
    makeRoom(left)
    // The id of an executor must be a number that fits an Int, and the pool's numbers begin at random.
    val executorId = (attachment % Int.MaxValue).toString
    val application = new Attached(key, name, executorId, payload, cores, shared, this, handler)
    try application.attach(AttachSeconds)
    catch {
      case e: Throwable =>
        restore()
        detach(application)
        throw e
    }
    application
  }

  /** Detaches those who were not served for longest, if another one has no room beside them. */
  private def makeRoom(left: Long): Unit = {
    val heap = Runtime.getRuntime
    val leave = Room.leave(attached.size, left - (heap.maxMemory - heap.totalMemory))
    attached.values.filterNot(current.contains).take(leave).toList.foreach(drop(_, "there is no room"))
  }

  /** Fails if the driver does not listen: an attempt to attach would leave threads behind. */
  private def probe(name: String, url: String): Unit = {
    val at = new URI(url)
    val socket = new Socket()
    try socket.connect(new InetSocketAddress(at.getHost, at.getPort), ProbeMillis)
    catch {
      case e: IOException =>
        throw new Refusal("unreachable", s"the driver of application $name cannot be reached at " +
          s"${at.getHost}:${at.getPort}: ${e.getMessage}")
    } finally socket.close()
  }

  /**
   * Leaves what is served: waits until no task runs, and ends those that go on, because nobody takes their results. It
   * returns false if they do not end, and the JVM is of no more use.
   */
  private def leave(): Boolean = {
    serving = 0
    val applications = current.toSeq ++ leaving
    val ended = Patience.awaitEnd(KillAfterMillis, GiveUpMillis)(applications.exists(_.running > 0)) {
      applications.foreach(_.kill("the executor serves another application"))
    }
    if (!ended) reports.broken(s"tasks have not ended ${GiveUpMillis / 1000} s after they were killed")
    ended
  }

  /**
   * Bounds what applications keep in memory that are not served, before tasks of another one run: each believes that
   * the heap is its own. All of them together keep a tenth of what Spark divides, and those that leave keep nothing.
   */
  private def shrinkOthers(served: Attached): Unit = {
    val others = attached.values.filterNot(_ eq served).toVector
    val most = ((Runtime.getRuntime.maxMemory - ReservedBytes) / 10).max(0) / others.size.max(1)
    for (other <- leaving) Utils.tryLogNonFatalError(other.shrink(0, keep = false))
    for (other <- others) Utils.tryLogNonFatalError {
      other.shrink(most, keep = true).foreach(later => aside.execute(() => Utils.tryLogNonFatalError(later())))
    }
  }

  /** Sets SparkEnv when nothing is served. What is parked still serves blocks, for which Spark looks at any of them. */
  private def restore(): Unit = SparkEnv.set(current.orElse(attached.values.lastOption).map(_.env).orNull)

  private def drop(application: Attached, why: String): Unit = {
    attached -= application.key
    reports.keeps(attached.keys)
    logInfo(s"Application ${application.name} is detached: $why")
    detach(application)
  }

  private def detach(application: Attached): Unit = {
    leaving += application
    aside.execute { () =>
      val ended = application.detach(DetachSeconds)
      order {
        leaving -= application
        if (current.contains(application)) {
          current = None
          shared.user = None
          restore()
        }
      }
      if (!ended) reports.broken(s"tasks of application ${application.name} do not end")
      reports.audit()
    }
  }

  /** What ends a thread by an exception that nobody catches. After an error of the JVM nothing in it can be trusted. */
  private val handler: Thread.UncaughtExceptionHandler = (thread: Thread, e: Throwable) => e match {
    case fatal: VirtualMachineError if !fatal.isInstanceOf[StackOverflowError] =>
      try {
        logError(s"Thread ${thread.getName} has failed: the JVM ends", fatal)
        reports.broken(fatal.toString)
      } finally Runtime.getRuntime.halt(if (fatal.isInstanceOf[OutOfMemoryError]) 52 else 50)
    case other => logError(s"Thread ${thread.getName} has failed", other)
  }
}

private[bellows] object Attachments {
  private val AttachSeconds = 60L
  private val DetachSeconds = 10L
  private val ProbeMillis = 5000
  private val KillAfterMillis = 200L
  private val GiveUpMillis = 10000L
  private val AuditEvery = 100L
  private val ReservedBytes = 300L << 20 // of the heap, which Spark leaves to itself

  private final class Refusal(val cause: String, message: String) extends Exception(message)
}
